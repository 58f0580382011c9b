//go:build unix

package cli_test

import (
	"encoding/json"
	"syscall"
	"testing"

	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// wantState reads lines of "turnstile locks --watch --json" until one has what is wanted of path; it may miss others.
func (r *running) wantState(path, place string, holding, waiting int) {
	r.t.Helper()
	for {
		var got struct {
			Path, Place      string
			Holding, Waiting int
		}
		line := r.line()
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			r.t.Fatalf("%q: %v", line, err)
		}
		if got.Path == path && got.Place == place && got.Holding == holding && got.Waiting == waiting {
			return
		}
	}
}

func TestLocksAreWatchedUntilASignalComes(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	plain := start(t, "locks", "--watch", "--connect", srv.Addr())
	objects := start(t, "locks", "--watch", "--json", "--connect", srv.Addr())
	holder := start(t, "lock", "--connect", srv.Addr(), "/a", "--", "puppet")
	holder.ready()
	objects.wantState("/a", "lock", 1, 0)
	waiter := start(t, "lock", "--connect", srv.Addr(), "/a", "--", "puppet")
	objects.wantState("/a", "lock", 1, 1)
	holder.signal(syscall.SIGTERM)
	holder.wantCode(3)
	waiter.ready()
	objects.wantState("/a", "lock", 1, 0)
	srv.Drop() // connections end once
	waiter.signal(syscall.SIGTERM)
	waiter.wantCode(3)
	objects.wantState("/a", "free", 0, 0)
	for line := ""; line == "" || line[0] != '/'; { // a headline, the columns' names, or that there is none yet
		line = plain.line()
	}
	plain.signal(syscall.SIGINT)
	plain.wantCode(128 + 2)
	objects.signal(syscall.SIGTERM)
	objects.wantCode(128 + 15)
}

// Nothing changes while a wait becomes a long one.
func TestLocksThatAreStuckAreTold(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	holder := start(t, "lock", "--connect", srv.Addr(), "/a", "--", "puppet")
	holder.ready()
	objects := start(t, "locks", "--watch", "--stuck", "2s", "--json", "--connect", srv.Addr())
	waiter := start(t, "lock", "--connect", srv.Addr(), "/a", "--", "puppet")
	objects.wantState("/a", "lock", 1, 1)
	for _, r := range []*running{objects, waiter} {
		r.signal(syscall.SIGTERM)
		r.wantCode(128 + 15)
	}
	holder.signal(syscall.SIGTERM)
	holder.wantCode(3)
}

// What these credentials may not read ends the watch as it ends the list.
func TestLocksThatMayNotBeReadAreNotWatched(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	forbid(t, srv, "/private")
	r := start(t, "locks", "--watch", "--connect", srv.Addr(), "/private")
	r.wantCode(77)
}

func forbid(t *testing.T, srv *zktest.Server, path string) {
	t.Helper()
	sess := srv.Session(t, patience)
	node := zk.Node{Path: path, ACL: []zk.ACL{{Perms: zk.PermAll, ID: zk.ID{Scheme: "ip", ID: "10.1.1.1"}}}}
	if _, err := sess.CreateNode(t.Context(), node); err != nil {
		t.Fatal(err)
	}
}
