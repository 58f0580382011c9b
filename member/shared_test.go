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

// A member leaves and joins again while its first node is being removed. Once Join has returned it is seen without a
// break.
//
// Promise: 16
func TestMemberThatJoinsAgainDoesNotVanish(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		sess := srv.Session(t, time.Hour)
		g := group(t, srv.Client(t, time.Minute), member.GroupMember)
		first := join(t, g, "a", nil)
		for range 50 { // the look of the one and the removal by the other meet in either order
			held, release := context.WithCancel(t.Context())
			var once sync.Once
			arrived := make(chan struct{})
			srv.Control(func(r zktest.Request) zktest.Fault {
				if r.Op != zktest.OpDelete || !strings.HasPrefix(r.Path, "/__fence-") {
					return zktest.Pass
				}
				once.Do(func() { close(arrived) })
				return zktest.Until(held)
			})
			first.Leave()
			<-arrived
			again := make(chan *member.Membership, 1)
			go func() {
				m, err := g.Join(within(t), "a", nil)
				if err != nil {
					t.Error(err)
				}
				again <- m
			}()
			synctest.Wait() // it waits, or its requests are behind those of the removal
			release()
			second := <-again
			if second == nil {
				return
			}
			_, joined := mustGet(t, sess, second.Node())
			if err := first.LeaveWait(within(t)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if _, now := mustGet(t, sess, second.Node()); now.Czxid != joined.Czxid {
				t.Fatal("the member has vanished and come back")
			}
			first = second
		}
		if err := first.LeaveWait(within(t)); err != nil {
			t.Fatal(err)
		}
	}, zktest.SessionTimeouts(100*time.Millisecond, time.Hour))
}

// After a creation of unknown outcome, a Node that is closed looks for a node that comes late. It leaves that of a Node
// which the client has begun meanwhile.
//
// Promise: 16
func TestLookForALateNodeLeavesThatOfAMemberThatJoinsAgain(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		sess := srv.Session(t, time.Hour)
		if _, err := sess.Create(t.Context(), "/app", nil, zk.Persistent); err != nil {
			t.Fatal(err)
		}
		if _, err := sess.Create(t.Context(), "/app/group", nil, zk.Persistent); err != nil {
			t.Fatal(err)
		}
		client := srv.Client(t, time.Minute)
		own, err := client.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		srv.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpCreate && r.Nth == 1 {
				return zktest.DropReply
			}
			return zktest.Pass
		})
		g := group(t, client, member.GroupMember)
		if err := join(t, g, "a", nil).LeaveWait(within(t)); err != nil {
			t.Fatal(err)
		}
		m := join(t, g, "a", nil)
		_, joined := mustGet(t, sess, m.Node())
		time.Sleep(20 * own.Timeout()) // in the bubble no time passes
		if _, now := mustGet(t, sess, m.Node()); now.Czxid != joined.Czxid {
			t.Error("the member has vanished and come back")
		}
		if err := m.LeaveWait(within(t)); err != nil {
			t.Fatal(err)
		}
		if _, there, err := sess.Exists(t.Context(), m.Node()); there || err != nil {
			t.Errorf("there after Leave: %v, %v", there, err)
		}
	}, zktest.SessionTimeouts(100*time.Millisecond, time.Hour))
}

// What comes late without another Node is removed.
//
// Promise: 16
func TestNodeThatIsCreatedAfterCloseIsRemoved(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		client := srv.Client(t, time.Second)
		own, err := client.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		srv.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpCreate && r.Nth == 1 {
				return zktest.CutBefore
			}
			return zktest.Pass
		})
		n := keep(t, client, "/node", "x", member.NodeConfig{})
		if err := n.Await(within(t)); err != nil {
			t.Fatal(err)
		}
		if err := n.CloseWait(within(t)); err != nil {
			t.Fatal(err)
		}
		if _, err := own.Create(t.Context(), "/node", []byte("x"), zk.Ephemeral); err != nil { // the late one
			t.Fatal(err)
		}
		awaitNode(t, own, "/node", gone)
	}, zktest.SessionTimeouts(100*time.Millisecond, time.Hour))
}

// Two Nodes of one client keep one node. Closing one leaves the node to the other, and the last one removes it.
//
// Promise: 16
func TestNodeThatTwoKeepIsRemovedByTheLast(t *testing.T) {
	t.Parallel()
	for _, mode := range []member.NodeMode{member.Ephemeral, member.Persistent} {
		srv := server(t)
		sess := srv.Session(t, time.Minute)
		client := srv.Client(t, time.Minute)
		one := keep(t, client, "/node", "one", member.NodeConfig{Mode: mode})
		if err := one.Await(within(t)); err != nil {
			t.Fatal(err)
		}
		two := keep(t, client, "/node", "two", member.NodeConfig{Mode: mode})
		if err := two.Await(within(t)); err != nil {
			t.Fatal(err)
		}
		_, before := mustGet(t, sess, "/node")
		if err := one.CloseWait(within(t)); err != nil {
			t.Fatal(err)
		}
		if data, after := mustGet(t, sess, "/node"); after.Czxid != before.Czxid || data != "two" {
			t.Errorf("mode %d: the node was removed, or has %q", mode, data)
		}
		if err := two.CloseWait(within(t)); err != nil {
			t.Fatal(err)
		}
		if _, there, err := sess.Exists(t.Context(), "/node"); there || err != nil {
			t.Errorf("mode %d: there after both were closed: %v, %v", mode, there, err)
		}
	}
}

// The program closes the Node when the session that has created the node has ended, and there is no other yet.
//
// Promise: 16
func TestPersistentNodeIsRemovedIfItIsClosedBetweenSessions(t *testing.T) {
	t.Parallel()
	for _, mode := range []member.NodeMode{member.Persistent, member.PersistentSequential} {
		srv := server(t)
		sess := srv.Session(t, time.Minute)
		client := srv.Client(t, time.Minute)
		n := keep(t, client, "/dir/node", "x", member.NodeConfig{Mode: mode})
		if err := n.Await(within(t)); err != nil {
			t.Fatal(err)
		}
		resume := betweenSessions(t, srv, client, n)
		n.Close()
		resume()
		if err := n.CloseWait(within(t)); err != nil {
			t.Fatal(err)
		}
		if _, there, err := sess.Exists(t.Context(), n.Path()); there || err != nil {
			t.Errorf("mode %d: there after Close: %v, %v", mode, there, err)
		}
	}
}

// betweenSessions ends the client's session, and waits until the Node has noticed. The next one begins with resume.
func betweenSessions(t *testing.T, srv *zktest.Server, client *zk.Client, n *member.Node) (resume func()) {
	t.Helper()
	own, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	held, resume := context.WithCancel(t.Context())
	srv.Control(func(r zktest.Request) zktest.Fault {
		if r.Op == zktest.OpConnect && r.Session == 0 {
			return zktest.Until(held)
		}
		return zktest.Pass
	})
	srv.ExpireSession(own.ID())
	<-own.Context().Done()
	awaitNotInPlace(t, n)
	return resume
}

// Promise: 16
func TestDataOfOthersStaysUnderTheNextSession(t *testing.T) {
	t.Parallel()
	for _, mode := range []member.NodeMode{member.Persistent, member.PersistentSequential} {
		srv := server(t)
		sess := srv.Session(t, time.Minute)
		client := srv.Client(t, time.Minute)
		n := keep(t, client, "/dir/node", "x", member.NodeConfig{Mode: mode})
		if err := n.Await(within(t)); err != nil {
			t.Fatal(err)
		}
		if _, err := sess.Set(t.Context(), n.Path(), []byte("theirs"), -1); err != nil {
			t.Fatal(err)
		}
		betweenSessions(t, srv, client, n)()
		if err := n.Await(within(t)); err != nil {
			t.Fatal(err)
		}
		if data, _ := mustGet(t, sess, n.Path()); data != "theirs" {
			t.Errorf("mode %d: data %q", mode, data)
		}
	}
}

// awaitNotInPlace waits until the Node has noticed that its session has ended.
func awaitNotInPlace(t *testing.T, n *member.Node) {
	t.Helper()
	for ctx := within(t); n.InPlace(); {
		if ctx.Err() != nil {
			t.Fatal("the Node is in place still")
		}
	}
}
