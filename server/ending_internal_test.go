package server

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// manyEphemerals creates n nodes of c's session.
func (c *rawClient) manyEphemerals(t *testing.T, n int) {
	t.Helper()
	c.ephemerals(t, "/e", n)
}

func (c *rawClient) ephemerals(t *testing.T, prefix string, n int) {
	t.Helper()
	for first := 0; first < n; first += 1000 {
		req := new(wire.MultiRequest)
		for i := first; i < min(n, first+1000); i++ {
			create := &wire.CreateRequest{Path: prefix + strconv.Itoa(i), ACL: openACL, Flags: wire.FlagEphemeral}
			req.Ops = append(req.Ops, wire.SubRequest{Op: wire.OpCreate, Request: create})
		}
		c.mustCall(t, wire.OpMulti, req)
	}
}

// Others are served between the pieces, and the client hears of the end when all of its nodes are gone.
func TestEndOfASessionWithManyNodesLetsOthersPass(t *testing.T) {
	t.Parallel()
	onEachStore(t, Config{}, func(t *testing.T, s *Server) {
		t.Helper()
		c, other := mustConnect(t, s, wire.ConnectRequest{}), mustConnect(t, s, wire.ConnectRequest{})
		const n = 20 * endAtOnce
		c.manyEphemerals(t, n)
		_ = s.do(func(o *owner) {
			o.closeSession(&item{kind: itemRequest, conn: o.sessions[c.session].conn, op: wire.OpCloseSession, xid: 1})
			if got := o.tree.EphemeralCount(); got != n-endAtOnce || len(o.endings) != 1 || len(o.sessions) != 1 {
				t.Errorf("after the first piece: got %d nodes and %d sessions, want %d and one", got, len(o.sessions),
					n-endAtOnce)
			}
		})
		for left := int32(n); left > 0; {
			var root wire.Children2Response
			if err := other.call(wire.OpGetChildren2, &wire.PathWatchRequest{Path: "/"}, &root); err != nil {
				t.Fatal(err)
			}
			left = root.Stat.NumChildren - 1
		}
		if h, err := c.reply(nil); err != nil || h.Err != wire.OK || h.Xid != 1 || !c.ended() {
			t.Errorf("got %+v %v, want the reply to closeSession and the end", h, err)
		}
		if _, err := c.resume(s); !errors.Is(err, errGone) {
			t.Errorf("resume: got %v, want %v", err, errGone)
		}
	})
}

// What a program ends, too.
func TestExpireSessionDeletesManyNodesInPieces(t *testing.T) {
	t.Parallel()
	onEachStore(t, Config{}, func(t *testing.T, s *Server) {
		t.Helper()
		const n = 20 * endAtOnce
		c := mustConnect(t, s, wire.ConnectRequest{})
		c.manyEphemerals(t, n)
		var before int64
		_ = s.do(func(o *owner) { before = o.zxid })
		if !s.ExpireSession(c.session) || s.ExpireSession(c.session) {
			t.Error("got another result, want true for the live session, then false")
		}
		_ = s.do(func(o *owner) {
			if left, pieces := o.tree.EphemeralCount(), o.zxid-before; left != 0 || pieces < n/endAtOnce {
				t.Errorf("got %d nodes left after %d pieces, want none after %d", left, pieces, n/endAtOnce)
			}
		})
	})
}

// allExpire has all sessions wait for their end, as if they had expired, whenever their readers touch them.
func allExpire(o *owner) {
	for _, sess := range o.sessions {
		o.expiry.remove(sess)
		o.expired = append(o.expired, sess)
		sess.timeout.Store(-int64(time.Hour))
	}
}

// One turn deletes only so many nodes of all sessions together, one commit few more. Those that wait are whole.
func TestSessionsThatExpireTogetherLetOthersPass(t *testing.T) {
	t.Parallel()
	onEachStore(t, Config{}, func(t *testing.T, s *Server) {
		t.Helper()
		const sessions, each = 10, endAtOnce - 1
		const inCommit = largeShare/endCost + endAtOnce
		for i := range sessions {
			mustConnect(t, s, wire.ConnectRequest{}).ephemerals(t, fmt.Sprintf("/e%d-", i), each)
		}
		_ = s.do(func(o *owner) {
			allExpire(o)
			deleted := func() int { return sessions*each - o.tree.EphemeralCount() }
			for o.mayEnd() {
				before := deleted()
				o.endSessions()
				if n := deleted() - before; n > endAtOnce {
					t.Errorf("a turn deleted %d nodes, want at most %d", n, endAtOnce)
					return
				}
				if left := o.tree.EphemeralCount(); left < len(o.sessions)*each {
					t.Errorf("got %d nodes of %d live sessions, want all", left, len(o.sessions))
					return
				}
			}
			if n := deleted(); o.store != nil && n > inCommit {
				t.Errorf("one commit deletes %d nodes, want at most %d", n, inCommit)
			}
		})
		other := mustConnect(t, s, wire.ConnectRequest{})
		for left := int32(1); left > 0; {
			var root wire.Children2Response
			if err := other.call(wire.OpGetChildren2, &wire.PathWatchRequest{Path: "/"}, &root); err != nil {
				t.Fatal(err)
			}
			left = root.Stat.NumChildren - 1
		}
	})
}

func TestManySessionsThatExpireAtOnceEndInPieces(t *testing.T) {
	t.Parallel()
	bubble(t, Config{TickTime: 2 * time.Second}, func(t *testing.T, s *Server, l *memListener) {
		t.Helper()
		for i := range 3*expireAtOnce + 1 {
			c := l.connect(t, 10_000)
			if _, err := c.create(fmt.Sprintf("/e%d", i), nil, wire.FlagEphemeral); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(13 * time.Second)
		synctest.Wait()
		_ = s.do(func(o *owner) {
			if len(o.sessions) != 0 || o.tree.EphemeralCount() != 0 || len(o.expired) != 0 {
				t.Errorf("got %d sessions and %d nodes, want none", len(o.sessions), o.tree.EphemeralCount())
			}
		})
	})
}

// A session that was resumed while it waited for its end goes on.
func TestSessionResumedBeforeItsEndGoesOn(t *testing.T) {
	t.Parallel()
	bubble(t, Config{}, func(t *testing.T, s *Server, l *memListener) {
		t.Helper()
		c := l.connect(t, 10_000)
		_ = s.do(func(o *owner) {
			sess := o.sessions[c.session]
			o.expiry.remove(sess)
			o.expired = append(o.expired, sess, sess)
			o.expiry.add(sess, o.clock.now()) // as resumeSession does
			o.endSessions()
			if o.sessions[c.session] == nil || len(o.expired) != 0 {
				t.Error("the session has ended, want it to go on")
			}
		})
		c.ping(t)
	})
}

// So does one whose client sent something meanwhile: it was answered, and counts on its timeout from then on.
func TestSessionHeardBeforeItsEndGoesOn(t *testing.T) {
	t.Parallel()
	bubble(t, Config{}, func(t *testing.T, s *Server, l *memListener) {
		t.Helper()
		c := l.connect(t, 10_000)
		time.Sleep(9 * time.Second)
		var sess *session
		_ = s.do(func(o *owner) { // the tick in which it expires has come, but not its turn
			sess = o.sessions[c.session]
			o.expiry.remove(sess)
			o.expiry.next = o.expiry.due(sess) + 1
		})
		c.ping(t)
		_ = s.do(func(o *owner) {
			o.expired = append(o.expired, sess)
			o.endSessions()
			if o.sessions[c.session] == nil || !o.expiry.has(sess) {
				t.Error("the session has ended, want it to go on")
			}
		})
		c.ping(t)
	})
}

// Sessions that have expired and endings that have begun take turns: neither waits for all of the others.
func TestEndingsAndExpiredSessionsTakeTurns(t *testing.T) {
	t.Parallel()
	bubble(t, Config{}, func(t *testing.T, s *Server, l *memListener) {
		t.Helper()
		const each = 3
		for range each {
			l.connect(t, 10_000)
		}
		_ = s.do(func(o *owner) {
			allExpire(o)
			for i := range each {
				o.endings = append(o.endings, ending{id: -1 - int64(i)})
			}
			var begun []bool
			for range 2 * each {
				e, ok := o.nextEnding()
				if !ok {
					t.Error("a session goes on that has expired")
					return
				}
				begun = append(begun, e.id < 0)
			}
			for i := range begun[1:] {
				if begun[i] == begun[i+1] {
					t.Errorf("endings that had begun: %v, want every other one", begun)
					return
				}
			}
			if len(o.expired)+len(o.endings) > 0 {
				t.Errorf("%d expired and %d endings are left, want none", len(o.expired), len(o.endings))
			}
		})
	})
}

// Endings that wait for a commit do not keep the owner awake: the end of the commit wakes it.
func TestOwnerSleepsWhileEndingsWaitForACommit(t *testing.T) {
	t.Parallel()
	bubble(t, Config{}, func(t *testing.T, s *Server, l *memListener) {
		t.Helper()
		l.connect(t, 10_000)
		_ = s.do(func(o *owner) {
			idle := o.nextDue()
			o.endings = []ending{{id: -1}}
			defer func() { o.endings = nil }()
			o.largeNext = time.Now().Add(-time.Second)
			if got := o.nextDue(); got != idle {
				t.Errorf("the owner sleeps for %v, want %v as without endings", got, idle)
			}
			o.largeNext = time.Now().Add(time.Millisecond)
			if got := o.nextDue(); got != time.Millisecond {
				t.Errorf("the owner sleeps for %v, want 1ms until large writes may go on", got)
			}
			o.largeNext = time.Time{}
		})
	})
}
