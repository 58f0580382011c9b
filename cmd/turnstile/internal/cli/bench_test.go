//go:build unix

package cli_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// The parents of the locks are containers in one layout, and stay until they are deleted in the others.
func TestBenchLeavesNothingBehindButWhatWasThere(t *testing.T) {
	t.Parallel()
	for _, layout := range []string{"curator", "kazoo", "both"} {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			srv := newServer(t)
			sess := srv.Session(t, time.Minute)
			if _, err := sess.Create(t.Context(), "/theirs", nil, zk.Persistent); err != nil {
				t.Fatal(err)
			}
			bench := func(more ...string) *running {
				args := []string{"bench", "lock", "--connect", srv.Addr(), "--layout", layout, "--goroutines", "2"}
				return start(t, append(args, more...)...)
			}
			cycles := false
			for d := 100 * time.Millisecond; !cycles; d *= 2 { // none may end in so short a time
				r := bench("--prefix", "/theirs/made/by/us", "--locks", "2", "--duration", d.String())
				cycles = r.wait() == 0
				if !cycles && !strings.Contains(r.stderr.String(), "no cycle was completed") {
					t.Fatalf("got exit code %d", r.wait())
				}
				if left := contendersAt(t, sess, "/theirs"); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
			}
			interrupted := bench("--prefix", "/theirs/made/by/processes", "--processes", "2", "--duration", "1h")
			wantContenders(t, sess, "/theirs/made/by/processes", 1)
			interrupted.signal(syscall.SIGTERM)
			interrupted.wantCode(143)
			if left := contendersAt(t, sess, "/theirs"); len(left) > 0 {
				t.Errorf("left behind after a signal: %v", left)
			}
		})
	}
}

// The processes that it starts measure the same layout.
func TestBenchNamesItsNodesAsTheLayoutSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		layout string
		names  []string
	}{
		{"curator", []string{"-lock-"}}, {"kazoo", []string{"-__lock__"}}, {"both", []string{"-lock-", "-__lock__"}},
	} {
		t.Run(c.layout, func(t *testing.T) {
			t.Parallel()
			srv := newServer(t)
			sess := srv.Session(t, time.Minute)
			r := start(t, "bench", "lock", "--connect", srv.Addr(), "--layout", c.layout, "--processes", "2",
				"--duration", "1h")
			wantContenders(t, sess, "/turnstile-bench", 1)
			var nodes []string
			// there are none for a moment between two holders
			for end := time.Now().Add(patience); len(nodes) == 0 && time.Now().Before(end); {
				nodes = contendersAt(t, sess, "/turnstile-bench/0")
			}
			for _, name := range c.names {
				if !slices.ContainsFunc(nodes, func(node string) bool { return strings.Contains(node, name) }) {
					t.Errorf("got the nodes %v, want one with %s", nodes, name)
				}
			}
			for _, node := range nodes {
				if !slices.ContainsFunc(c.names, func(name string) bool { return strings.Contains(node, name) }) {
					t.Errorf("got the node %s, want %v alone", node, c.names)
				}
			}
			r.signal(syscall.SIGTERM)
			r.wantCode(143)
		})
	}
}
