//go:build unix

package cli_test

import (
	"math"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

func TestLineOfOthersNearTheWrapIsRefusedWithWhatToDo(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	sess := srv.Session(t, time.Minute)
	others := map[string]string{"/x": "lock", "/y": "latch"}
	for path, kind := range others {
		if _, err := sess.Create(t.Context(), path, nil, zk.Persistent); err != nil {
			t.Fatal(err)
		}
		srv.PresetSequence(path, math.MaxInt32-100)
		node, err := sess.Create(t.Context(), path+"/_c_0f8fad5b-d9cb-469f-a165-70867728950e-"+kind+"-", []byte("10.0.0.1"), zk.EphemeralSequential)
		if err != nil {
			t.Fatal(err)
		}
		others[path] = node.Path
	}
	for _, c := range []struct {
		command, path string
		more          []string
	}{
		{"lock", "/x", nil},
		{"lock", "/x", []string{"--shared"}},
		{"lock", "/x", []string{"--layout", "both"}},
		{"lock", "/x", []string{"/free"}},
		{"elect", "/y", nil},
	} {
		args := append([]string{c.command, "--connect", srv.Addr()}, c.more...)
		r := start(t, append(args, c.path, "--", "true")...)
		r.wantCode(70)
		for _, want := range []string{c.path, "delete the path", "turnstile who shows them", "zkCli.sh deleteall", "another PATH"} {
			r.wantStderr(want)
		}
	}
	// As it says.
	if err := sess.Delete(t.Context(), others["/x"], -1); err != nil {
		t.Fatal(err)
	}
	wantContenders(t, sess, "/x", 0)
	if err := sess.Delete(t.Context(), "/x", -1); err != nil {
		t.Fatal(err)
	}
	start(t, "lock", "--connect", srv.Addr(), "/x", "--", "true").wantCode(0)
}
