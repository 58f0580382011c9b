//go:build unix

package cli_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// Promise: 9
func TestEndOfTheNumbersIsRefusedWithWhatToDo(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	sess := srv.Session(t, time.Minute)
	others := map[string]string{"/x": "lock", "/y": "latch"}
	for path, kind := range others {
		if _, err := sess.Create(t.Context(), path, nil, zk.Persistent); err != nil {
			t.Fatal(err)
		}
		srv.PresetSequence(path, math.MaxInt32-100)
		node, err := sess.Create(t.Context(), path+"/_c_0f8fad5b-d9cb-469f-a165-70867728950e-"+kind+"-",
			[]byte("10.0.0.1"), zk.EphemeralSequential)
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
		for _, want := range []string{
			"delete " + c.path + " once it has no children", "turnstile who shows",
			"zkCli.sh delete", "another path",
		} {
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

func TestWhoWarnsFromTheMiddleOfTheNumbersOn(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	sess := srv.Session(t, time.Minute)
	for _, path := range []string{"/lock", "/election", "/permits", "/permits/locks", "/permits/leases"} {
		if _, err := sess.Create(t.Context(), path, nil, zk.Persistent); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := sess.Create(t.Context(), "/election/latch-", nil, zk.EphemeralSequential); err != nil {
		t.Fatal(err)
	}
	const end = math.MaxInt32 - 1<<20
	paths := []string{"/lock", "/election", "/permits"}
	counted := []string{"/lock", "/election", "/permits/locks"}
	for _, c := range []struct {
		next int32
		low  bool
	}{{1<<30 - 1, false}, {1 << 30, true}, {math.MaxInt32, true}} {
		left := max(0, end-int(c.next))
		var warnings, fields []string
		for _, path := range counted {
			srv.PresetSequence(path, c.next)
			fields = append(fields, fmt.Sprintf(`"numbers":{"path":"%s","left":%d,"low":%t}}`, path, left, c.low))
			if c.low {
				warnings = append(warnings, fmt.Sprintf("turnstile: warning: only %d sequence numbers are left at %s, "+
					"after which new contenders are refused; delete %s when it is empty (zkCli.sh delete), "+
					"so that its numbers start at 0 again\n", left, path, path))
			}
		}
		r := start(t, append([]string{"who", "--connect", srv.Addr()}, paths...)...)
		r.wantCode(0)
		if got, want := r.stderr.String(), strings.Join(warnings, ""); got != want {
			t.Errorf("at %d: got %q, want %q", c.next, got, want)
		}
		r = start(t, append([]string{"who", "--connect", srv.Addr(), "--json"}, paths...)...)
		r.wantCode(0)
		for i, line := range strings.Split(strings.TrimSpace(r.rest()), "\n") {
			if !strings.HasSuffix(line, fields[i]) {
				t.Errorf("at %d: got %s, want it to end with %s", c.next, line, fields[i])
			}
		}
		if got := r.stderr.String(); got != "" {
			t.Errorf("at %d, with --json: it says %q", c.next, got)
		}
	}
}
