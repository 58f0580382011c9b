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
	if _, err := sess.Create(t.Context(), "/x", nil, zk.Persistent); err != nil {
		t.Fatal(err)
	}
	srv.PresetSequence("/x", math.MaxInt32-100)
	theirs, err := sess.Create(t.Context(), "/x/_c_0f8fad5b-d9cb-469f-a165-70867728950e-lock-", []byte("10.0.0.1"), zk.EphemeralSequential)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"/x", "--", "true"}, {"--shared", "/x", "--", "true"}, {"--layout", "both", "/x", "--", "true"}, {"/free", "/x", "--", "true"},
	} {
		r := start(t, append([]string{"lock", "--connect", srv.Addr()}, args...)...)
		r.wantCode(70)
		for _, want := range []string{"/x", "delete the path", "turnstile who shows them", "zkCli.sh deleteall", "another PATH"} {
			r.wantStderr(want)
		}
	}
	// As it says.
	if err := sess.Delete(t.Context(), theirs.Path, -1); err != nil {
		t.Fatal(err)
	}
	wantContenders(t, sess, "/x", 0)
	if err := sess.Delete(t.Context(), "/x", -1); err != nil {
		t.Fatal(err)
	}
	start(t, "lock", "--connect", srv.Addr(), "/x", "--", "true").wantCode(0)
}
