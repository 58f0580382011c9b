package member_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/member"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// A creation that comes late, with old data, makes the node in place of one that another client has deleted.
//
// Promise: 16
func TestOldDataOfALateCreationIsReplaced(t *testing.T) {
	t.Parallel()
	srv := server(t)
	sess := srv.Session(t, time.Minute)
	client := srv.Client(t, time.Minute)
	n := keep(t, client, "/node", "one", member.NodeConfig{})
	if err := n.Await(within(t)); err != nil {
		t.Fatal(err)
	}
	if err := n.Set(within(t), []byte("two")); err != nil {
		t.Fatal(err)
	}
	own, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := own.Multi(t.Context(),
		zk.DeleteOp("/node", -1), zk.CreateOp("/node", []byte("one"), zk.Ephemeral)); err != nil {
		t.Fatal(err)
	}
	awaitNode(t, sess, "/node", is("two"))
}

// The session's server may lag behind, and show data that another program has replaced by now.
func TestNodeLooksAtWhatIsThereBehindASync(t *testing.T) {
	t.Parallel()
	srv := server(t)
	sess := srv.Session(t, time.Minute)
	if _, err := sess.Create(t.Context(), "/node", []byte("ours"), zk.Persistent); err != nil {
		t.Fatal(err)
	}
	client := srv.Client(t, time.Minute)
	arrived, release := holdSync(t, srv, sessionOf(t, client).ID())
	n := keep(t, client, "/node", "ours", member.NodeConfig{Mode: member.Persistent})
	placed := make(chan error, 1)
	go func() { placed <- n.Await(within(t)) }()
	select {
	case <-arrived:
	case err := <-placed:
		t.Fatalf("in place without a sync: %v", err)
	}
	if _, err := sess.Set(t.Context(), "/node", []byte("theirs"), -1); err != nil {
		t.Fatal(err)
	}
	release()
	if err := <-placed; err != nil {
		t.Fatal(err)
	}
	if data, _ := mustGet(t, sess, "/node"); data != "ours" {
		t.Errorf("%q", data)
	}
}

// A Set names the version that was read. So one that comes late, after another, does not bring back its old data.
func TestSetIsRefusedIfTheDataHasChangedSinceItWasRead(t *testing.T) {
	t.Parallel()
	srv := server(t)
	sess := srv.Session(t, time.Minute)
	n := keep(t, srv.Client(t, time.Minute), "/node", "one", member.NodeConfig{})
	if err := n.Await(within(t)); err != nil {
		t.Fatal(err)
	}
	arrived := make(chan struct{})
	held, release := context.WithCancel(t.Context())
	var mu sync.Mutex
	sets := 0
	srv.Control(func(r zktest.Request) zktest.Fault {
		if r.Op != zktest.OpSetData || r.Session == sess.ID() {
			return zktest.Pass
		}
		mu.Lock()
		defer mu.Unlock()
		if sets++; sets > 1 {
			return zktest.Pass
		}
		close(arrived)
		return zktest.Until(held)
	})
	set := make(chan error, 1)
	go func() { set <- n.Set(within(t), []byte("two")) }()
	<-arrived
	if _, err := sess.Set(t.Context(), "/node", []byte("theirs"), -1); err != nil {
		t.Fatal(err)
	}
	release()
	if err := <-set; err != nil {
		t.Fatal(err)
	}
	data, stat := mustGet(t, sess, "/node")
	mu.Lock()
	defer mu.Unlock()
	if data != "two" || sets != 2 || stat.Version != 2 {
		t.Errorf("%q, version %d after %d sets of ours, want the first one refused", data, stat.Version, sets)
	}
}

// Another program has replaced a lasting node. It is not ours any more, not even if the removal is on its way.
//
// Promise: 16
func TestCloseLeavesANodeThatHasReplacedOurs(t *testing.T) {
	t.Parallel()
	for i := range 4 {
		before, unsure := i%2 == 0, i < 2
		srv := server(t)
		sess := srv.Session(t, time.Minute)
		srv.Control(func(r zktest.Request) zktest.Fault {
			if unsure && r.Op == zktest.OpCreate && r.Nth == 1 {
				return zktest.DropReply
			}
			return zktest.Pass
		})
		n := keep(t, srv.Client(t, time.Minute), "/node", "one", member.NodeConfig{Mode: member.Persistent})
		if err := n.Await(within(t)); err != nil {
			t.Fatal(err)
		}
		arrived := make(chan struct{})
		held, release := context.WithCancel(t.Context())
		var once sync.Once
		srv.Control(func(r zktest.Request) zktest.Fault {
			at := r.Path == "/node"
			if before {
				at = strings.HasPrefix(r.Path, "/__fence-") // the request before the look
			}
			if r.Op == zktest.OpDelete && at && r.Session != sess.ID() {
				once.Do(func() { close(arrived) })
				return zktest.Until(held)
			}
			return zktest.Pass
		})
		n.Close()
		<-arrived
		if _, err := sess.Multi(t.Context(), zk.DeleteOp("/node", -1),
			zk.CreateOp("/node", nil, zk.Persistent), zk.SetOp("/node", []byte("one"), 0)); err != nil {
			t.Fatal(err)
		}
		release()
		if err := n.CloseWait(within(t)); err != nil {
			t.Fatal(err)
		}
		if data, _ := mustGet(t, sess, "/node"); data != "one" {
			t.Errorf("%q", data)
		}
	}
}

// The child is touched twice in each TTL, so that one touch may fail, and goes when it is touched no more.
//
// Promise: 16
func TestNodeWithATTLGoesAfterTheLastTouch(t *testing.T) {
	t.Parallel()
	withATTL(t, func(t *testing.T, sess *zk.Session, n *member.Node, ttl time.Duration) {
		_, first := mustGet(t, sess, "/node/touch")
		time.Sleep(10*ttl + ttl/4) // in the bubble no time passes
		if _, now := mustGet(t, sess, "/node/touch"); now.Czxid != first.Czxid || now.Version-first.Version != 20 {
			t.Errorf("touched %d times in ten TTLs", now.Version-first.Version)
		}
		if err := n.CloseWait(within(t)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * ttl)
		if _, there, err := sess.Exists(t.Context(), "/node"); there || err != nil {
			t.Errorf("there after the TTL: %v, %v", there, err)
		}
	})
}

func TestTouchedChildThatIsDeletedComesBack(t *testing.T) {
	t.Parallel()
	withATTL(t, func(t *testing.T, sess *zk.Session, _ *member.Node, ttl time.Duration) {
		_, node := mustGet(t, sess, "/node")
		if _, err := sess.Create(t.Context(), "/node/other", nil, zk.Persistent); err != nil { // so that the node stays
			t.Fatal(err)
		}
		if err := sess.Delete(t.Context(), "/node/touch", -1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(ttl)
		mustGet(t, sess, "/node/touch")
		if _, now := mustGet(t, sess, "/node"); now.Czxid != node.Czxid {
			t.Error("the node was created again")
		}
	})
}

// withATTL runs a test in a bubble, with a node that has a TTL and is there, and a session of another client.
func withATTL(t *testing.T, test func(t *testing.T, sess *zk.Session, n *member.Node, ttl time.Duration)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		const ttl = 10 * time.Second
		var net zktest.Net
		srv := zktest.Run(t, zktest.On(&net), zktest.SessionTimeouts(100*time.Millisecond, time.Hour))
		sess := srv.Session(t, time.Hour)
		n := keep(t, srv.Client(t, time.Minute), "/node", "x", member.NodeConfig{Mode: member.Persistent, TTL: ttl})
		if err := n.Await(within(t)); err != nil {
			t.Fatal(err)
		}
		test(t, sess, n, ttl)
	})
}

// The server never removes a container that has had no child, so the child comes with it (GH-1258).
//
// Promise: 16
func TestNodeWithATTLGoesAlsoIfItsProgramDiesWhileItIsCreated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const ttl = 10 * time.Second
		var net zktest.Net
		srv := zktest.Run(t, zktest.On(&net), zktest.SessionTimeouts(100*time.Millisecond, time.Hour))
		sess := srv.Session(t, time.Hour)
		created := make(chan struct{})
		dead := false
		srv.Control(func(r zktest.Request) zktest.Fault {
			switch {
			case r.Session == sess.ID():
			case dead:
				return zktest.Refuse
			case r.Op == zktest.OpCreate, r.Op == zktest.OpMulti:
				dead = true
				close(created)
			}
			return zktest.Pass
		})
		n := keep(t, srv.Client(t, time.Minute), "/node", "x", member.NodeConfig{Mode: member.Persistent, TTL: ttl})
		<-created
		synctest.Wait()
		if _, there, err := sess.Exists(t.Context(), "/node"); !there || err != nil {
			t.Fatalf("there after its creation: %v, %v", there, err)
		}
		n.Close()
		time.Sleep(30 * ttl)
		if _, there, err := sess.Exists(t.Context(), "/node"); there || err != nil {
			t.Errorf("there after the TTL: %v, %v", there, err)
		}
	})
}

// The reply to a creation is lost, and the node is kept. When its Node has ended, what the session makes there is not
// of that creation.
func TestNodeThatComesAfterAKeptOneStays(t *testing.T) {
	t.Parallel()
	for _, data := range []string{"a", "b"} {
		t.Run(data, func(t *testing.T) {
			t.Parallel()
			zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
				client := srv.Client(t, 20*time.Second)
				lost := false
				srv.Control(func(r zktest.Request) zktest.Fault {
					if lost || r.Path != "/x" || r.Op != zktest.OpCreate {
						return zktest.Pass
					}
					lost = true
					return zktest.DropReply
				})
				n := keep(t, client, "/x", "a", member.NodeConfig{})
				if err := errors.Join(n.Await(within(t)), n.CloseWait(within(t))); err != nil || !lost {
					t.Fatal(err, lost)
				}
				sess, err := client.Session(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				made, err := sess.Create(t.Context(), "/x", []byte(data), zk.Ephemeral)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(16 * time.Minute)
				if _, stat := mustGet(t, sess, "/x"); stat.Czxid != made.Stat.Czxid {
					t.Errorf("got a node of %#x, want %#x", stat.Czxid, made.Stat.Czxid)
				}
			}, zktest.SessionTimeouts(time.Second, time.Minute))
		})
	}
}
