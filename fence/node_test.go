package fence_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/fence"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// inBubble runs a test in a bubble of its own, with a server and a session.
func inBubble(t *testing.T, test func(t *testing.T, srv *zktest.Server)) {
	t.Helper()
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		test(t, srv)
	}, zktest.SessionTimeouts(time.Second, time.Minute))
}

func node(t *testing.T, path string) *fence.Node {
	t.Helper()
	n, err := fence.NewNode(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Promise: 12
func TestNodeRefusesSmallerTokensInTheSameTransactionAsTheWrite(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server) {
		sess := srv.Session(t, 10*time.Second)
		n := node(t, "/fences/shop/stock")
		if got, err := n.Newest(t.Context(), sess); got != 0 || err != nil {
			t.Errorf("got newest %d, %v before any token, want 0", got, err)
		}
		results, err := n.Write(t.Context(), sess, 5, zk.CreateOp("/stock", []byte("10"), zk.Persistent))
		if err != nil || len(results) != 1 || results[0].Path != "/stock" {
			t.Fatalf("first write: got %v, %v", results, err)
		}
		for _, token := range []fence.Token{5, 5, 8} {
			write := zk.SetOp("/stock", []byte(fence.FormatToken(token)), -1)
			if _, err := n.Write(t.Context(), sess, token, write); err != nil {
				t.Errorf("token %d: %v", token, err)
			}
		}
		_, err = n.Write(t.Context(), sess, 7, zk.SetOp("/stock", []byte("late"), -1))
		wantStale(t, err, 7, 8)
		if data, _, _ := sess.Get(t.Context(), "/stock"); string(data) != "8" {
			t.Errorf("got data %s of the late write", data)
		}
		if got, err := n.Newest(t.Context(), sess); got != 8 || err != nil {
			t.Errorf("got newest %d, %v, want 8", got, err)
		}
	})
}

// Promise: 12
func TestRefusedOperationRaisesNoTokenAndKeepsItsOwnNumber(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server) {
		sess := srv.Session(t, 10*time.Second)
		n := node(t, "/fence")
		if err := n.Raise(t.Context(), sess, 1); err != nil {
			t.Fatal(err)
		}
		_, err := n.Write(t.Context(), sess, 2, zk.CreateOp("/a", nil, zk.Persistent), zk.DeleteOp("/missing", -1))
		multi, ok := errors.AsType[*zk.MultiError](err)
		if !ok || multi.Index != 1 || multi.Path != "/missing" || len(multi.Results) != 2 ||
			!errors.Is(err, zk.NoNode) || zk.OutcomeOf(err) != zk.Refused {
			t.Errorf("got %#v, want operation 1 refused with NoNode", err)
		}
		if got, _ := n.Newest(t.Context(), sess); got != 1 {
			t.Errorf("got newest %d after a refused write, want no change", got)
		}
	})
}

// Another client raises the token between Write's read and its multi.
//
// Promise: 12
func TestNodeSeesATokenThatIsRaisedBehindItsBack(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server) {
		sess, other := srv.Session(t, 10*time.Second), srv.Session(t, 10*time.Second)
		n := node(t, "/fence")
		for _, c := range []struct{ before, token fence.Token }{
			{0, 1}, // creates the node
			{3, 4}, // raises the token
			{3, 3}, // leaves the node as it is
		} {
			if c.before > 0 {
				if err := n.Raise(t.Context(), other, c.before); err != nil {
					t.Fatal(err)
				}
			}
			held, release := context.WithCancel(t.Context())
			srv.Control(func(r zktest.Request) zktest.Fault {
				if r.Op == zktest.OpMulti && r.Session == sess.ID() {
					return zktest.Until(held)
				}
				return zktest.Pass
			})
			done := make(chan error, 1)
			go func() { done <- n.Raise(t.Context(), sess, c.token) }()
			synctest.Wait()
			if err := n.Raise(t.Context(), other, 5); err != nil {
				t.Fatal(err)
			}
			srv.Control(nil)
			release()
			wantStale(t, <-done, c.token, 5)
			if err := sess.Delete(t.Context(), "/fence", -1); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Writers show random tokens concurrently. No token is written after a larger one, and the last one written is the
// largest.
//
// Promise: 12
func TestNodeAdmitsTokensInOrderFromManyWriters(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server) {
		n := node(t, "/fence")
		if _, err := srv.Session(t, 10*time.Second).Create(t.Context(), "/log", nil, zk.Persistent); err != nil {
			t.Fatal(err)
		}
		const tokens, at = 60, 6 // writes at a time
		var writers sync.WaitGroup
		var next atomic.Int64
		for range at {
			sess := srv.Session(t, 10*time.Second)
			writers.Go(func() {
				for token := fence.Token(next.Add(1)); token <= tokens; token = fence.Token(next.Add(1)) {
					entry := zk.CreateOp("/log/"+fence.FormatToken(token)+"-", nil, zk.PersistentSequential)
					_, err := n.Write(t.Context(), sess, token, entry)
					if err != nil && !errors.Is(err, fence.ErrStale) {
						t.Errorf("token %d: %v", token, err)
					}
				}
			})
		}
		writers.Wait()
		log, _, err := srv.Session(t, 10*time.Second).Children(t.Context(), "/log")
		if err != nil {
			t.Fatal(err)
		}
		wantAscending(t, log)
		// A refused token was in flight together with a larger one that was admitted, and at most that many are in
		// flight at a time.
		if len(log) < tokens/at {
			t.Errorf("got %d of %d tokens admitted, want at least %d", len(log), tokens, tokens/at)
		}
	})
}

// wantAscending checks names of the form TOKEN-SEQUENCE: in the order of the sequence numbers, the tokens must not
// fall.
func wantAscending(t *testing.T, names []string) {
	t.Helper()
	const digits = 10
	slices.SortFunc(names, func(a, b string) int {
		if a[len(a)-digits:] < b[len(b)-digits:] {
			return -1
		}
		return 1
	})
	var last fence.Token
	for _, name := range names {
		token, err := fence.ParseToken(name[:len(name)-digits-1])
		if err != nil {
			t.Fatal(err)
		}
		if token < last {
			t.Errorf("token %d admitted after %d", token, last)
		}
		last = token
	}
	if len(names) == 0 {
		t.Error("got no node")
	}
}

// The fence tells apart what the guard cannot: two holds of one process that share a node.
//
// Promise: 12
func TestNodeTellsApartHoldsThatShareANode(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server) {
		m, err := lock.NewMutex(srv.Client(t, 10*time.Second), "/lock", lock.Config{Retain: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		n := node(t, "/fence")
		first, err := m.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sess := first.Session()
		first.Unlock()
		second, err := m.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if second.Path() != first.Path() {
			t.Fatalf("got holds with different nodes %s and %s, want a shared one", first.Path(), second.Path())
		}
		if err := n.Raise(t.Context(), sess, second.Token()); err != nil {
			t.Fatal(err)
		}
		_, err = n.Write(t.Context(), sess, first.Token(), first.Guard())
		wantStale(t, err, first.Token(), second.Token())
		second.Unlock()
	})
}

// Promise: 12
func TestNodeThatIsSomethingElseIsLeftAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server) {
		sess := srv.Session(t, 10*time.Second)
		if _, err := sess.Create(t.Context(), "/config", []byte("colour=blue"), zk.Persistent); err != nil {
			t.Fatal(err)
		}
		if err := node(t, "/config").Raise(t.Context(), sess, 1); !errors.Is(err, fence.ErrBadToken) {
			t.Errorf("got %v, want an error", err)
		}
		if _, err := sess.Create(t.Context(), "/holder", []byte("5"), zk.Ephemeral); err != nil {
			t.Fatal(err)
		}
		if err := node(t, "/holder").Raise(t.Context(), sess, 9); !errors.Is(err, zk.NodeExists) {
			t.Errorf("got %v at an ephemeral node, want zk.NodeExists", err)
		}
		if data, _, _ := sess.Get(t.Context(), "/config"); string(data) != "colour=blue" {
			t.Errorf("got data %s, want it unchanged", data)
		}
		if _, err := fence.NewNode("/a//b", nil); err == nil {
			t.Error("got a fence at an invalid path")
		}
		for _, path := range []string{"/", "/zookeeper", "/zookeeper/quota"} {
			if _, err := fence.NewNode(path, nil); err == nil {
				t.Errorf("got a fence at %s, want an error", path)
			}
		}
		if err := node(t, "/fence").Raise(t.Context(), sess, 0); !errors.Is(err, fence.ErrBadToken) {
			t.Errorf("token 0: got %v, want ErrBadToken", err)
		}
	})
}

// The reply to the write is lost. The caller learns that the outcome is unknown, and nothing is written twice.
//
// Promise: 12
func TestNodeDoesNotRepeatAWriteOfUnknownOutcome(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *zktest.Server) {
		sess := srv.Session(t, 10*time.Second)
		n := node(t, "/fence")
		if err := n.Raise(t.Context(), sess, 1); err != nil {
			t.Fatal(err)
		}
		srv.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpMulti {
				return zktest.DropReply
			}
			return zktest.Pass
		})
		_, err := n.Write(t.Context(), sess, 2, zk.CreateOp("/a-", nil, zk.PersistentSequential))
		if err == nil || zk.OutcomeOf(err) != zk.Unknown || errors.Is(err, fence.ErrStale) {
			t.Errorf("got %v, want an unknown outcome", err)
		}
		srv.Control(nil)
		children, _, err := sess.Children(t.Context(), "/")
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		for _, c := range children {
			if strings.HasPrefix(c, "a-") {
				count++
			}
		}
		if count != 1 {
			t.Errorf("got %d executions, want 1: %v", count, children)
		}
		// The write was executed, so its token counts, and its holder may continue.
		wantStale(t, n.Raise(t.Context(), sess, 1), 1, 2)
		if err := n.Raise(t.Context(), sess, 2); err != nil {
			t.Errorf("after the lost reply: got %v, want nil", err)
		}
	})
}
