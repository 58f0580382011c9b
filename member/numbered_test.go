package member_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/member"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

var numbered = []member.NodeMode{member.EphemeralSequential, member.PersistentSequential}

// only returns the path of the only child of dir.
func only(t *testing.T, sess *zk.Session, dir string) string {
	t.Helper()
	children, _, err := sess.Children(t.Context(), dir)
	if err != nil || len(children) != 1 {
		t.Fatalf("got %v, %v, want one node", children, err)
	}
	return dir + "/" + children[0]
}

// Promise: 16
func TestNumberedNodeKeepsItsName(t *testing.T) {
	t.Parallel()
	for _, mode := range numbered {
		srv := server(t)
		sess := srv.Session(t, time.Minute)
		client := srv.Client(t, time.Minute)
		n := keep(t, client, "/dir/node-", "x", member.NodeConfig{Mode: mode})
		if err := n.Await(within(t)); err != nil {
			t.Fatal(err)
		}
		path := n.Path()
		_, first := mustGet(t, sess, path)
		if lasting := mode == member.PersistentSequential; lasting != (first.EphemeralOwner == 0) {
			t.Errorf("mode %d: owner %x", mode, first.EphemeralOwner)
		}
		if err := sess.Delete(t.Context(), path, -1); err != nil {
			t.Fatal(err)
		}
		awaitNode(t, sess, path, is("x"))
		own, err := client.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		srv.ExpireSession(own.ID())
		if mode == member.PersistentSequential {
			if err := sess.Delete(t.Context(), path, -1); err != nil {
				t.Fatal(err)
			}
		}
		awaitNode(t, sess, path, func(_ []byte, s zk.Stat, there bool) bool {
			return there && s.EphemeralOwner != own.ID()
		})
		if at := only(t, sess, "/dir"); at != path || n.Path() != path {
			t.Errorf("mode %d: %s, then %s at %s", mode, path, at, n.Path())
		}
		if err := n.CloseWait(within(t)); err != nil {
			t.Fatal(err)
		}
		srv.NoNodes(t, "/dir")
	}
}

// The node that a creation has made whose reply is lost is the Node's: there is never a second one (CURATOR-190).
//
// Promise: 16
func TestNumberedNodeIsFoundAfterALostReply(t *testing.T) {
	t.Parallel()
	for _, mode := range numbered {
		for _, expire := range []bool{false, true} {
			srv := server(t)
			sess := srv.Session(t, time.Minute)
			if _, err := sess.Create(t.Context(), "/dir", nil, zk.Persistent); err != nil {
				t.Fatal(err)
			}
			var mu sync.Mutex
			var creations []int64 // the sessions
			srv.Control(func(r zktest.Request) zktest.Fault {
				mu.Lock()
				defer mu.Unlock()
				if expire && r.Op == zktest.OpConnect && len(creations) == 1 && r.Session == creations[0] {
					go srv.ExpireSession(r.Session)
				}
				if r.Op != zktest.OpCreate {
					return zktest.Pass
				}
				if creations = append(creations, r.Session); len(creations) > 1 {
					return zktest.Pass
				}
				return zktest.DropReply
			})
			n := keep(t, srv.Client(t, time.Minute), "/dir/node-", "x", member.NodeConfig{Mode: mode})
			if err := n.Await(within(t)); err != nil {
				t.Fatal(err)
			}
			if !expire || mode == member.PersistentSequential {
				mu.Lock()
				if len(creations) != 1 {
					t.Errorf("mode %d: %d creations", mode, len(creations))
				}
				mu.Unlock()
				if at := only(t, sess, "/dir"); at != n.Path() {
					t.Errorf("mode %d: %s, and the Node says %s", mode, at, n.Path())
				}
			}
			if err := n.CloseWait(within(t)); err != nil {
				t.Fatal(err)
			}
			srv.NoNodes(t, "/dir")
		}
	}
}

// A partition may deliver a creation when the client has given it up and has used another name.
//
// Promise: 16
func TestNumberedNodeThatIsCreatedLateIsRemoved(t *testing.T) {
	t.Parallel()
	for _, closed := range []bool{false, true} {
		zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
			sess := srv.Session(t, time.Hour)
			if _, err := sess.Create(t.Context(), "/dir", nil, zk.Persistent); err != nil {
				t.Fatal(err)
			}
			given := make(chan string, 1)
			ctx, release := context.WithCancel(t.Context())
			defer release()
			var once sync.Once
			srv.Control(func(r zktest.Request) zktest.Fault {
				fault := zktest.Pass
				if r.Op == zktest.OpCreate {
					once.Do(func() {
						given <- r.Path
						fault = zktest.CutBefore
					})
				}
				if closed && r.Op == zktest.OpDelete && strings.HasPrefix(r.Path, "/__fence-") {
					return zktest.Until(ctx)
				}
				return fault
			})
			n := keep(t, srv.Client(t, time.Second), "/dir/node-", "x",
				member.NodeConfig{Mode: member.PersistentSequential})
			prefix := <-given
			if closed { // before the Node knows what became of the creation
				synctest.Wait()
				n.Close()
				release()
				if err := n.CloseWait(within(t)); err != nil {
					t.Fatal(err)
				}
			} else if err := n.Await(within(t)); err != nil {
				t.Fatal(err)
			}
			late, err := sess.Create(t.Context(), prefix, []byte("x"), zk.PersistentSequential)
			if err != nil {
				t.Fatal(err)
			}
			awaitNode(t, sess, late.Path, gone)
			if !closed {
				if at := only(t, sess, "/dir"); at != n.Path() {
					t.Errorf("%s is left, and the Node is %s", at, n.Path())
				}
			}
		}, zktest.SessionTimeouts(100*time.Millisecond, time.Hour))
	}
}
