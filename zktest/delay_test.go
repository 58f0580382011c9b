package zktest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/zktest"
)

// wantAfter fails the test unless exactly d has passed since start.
func wantAfter(t *testing.T, start time.Time, d time.Duration) {
	t.Helper()
	if got := time.Since(start); got != d {
		t.Errorf("got %v elapsed, want %v", got, d)
	}
}

func TestDelayOfARequestHoldsWhatIsBehindIt(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		r := newRaw(t, srv.Link)
		srv.Control(func(q zktest.Request) zktest.Fault {
			if q.Op == zktest.OpCreate {
				return zktest.Delay(time.Second) // all of them together, not one after the other
			}
			return zktest.Pass
		})
		start := time.Now()
		r.send(exists("/"), create("/a"), create("/b"), exists("/b"))
		r.want(1, wire.OK)
		wantAfter(t, start, 0)
		for xid := int32(2); xid <= 4; xid++ {
			r.want(xid, wire.OK)
			wantAfter(t, start, time.Second)
		}
	})
}

func TestDelayOfAReplyHoldsWhatIsBehindIt(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		r, other := newRaw(t, srv.Link), newRaw(t, srv.Link)
		srv.Control(once(zktest.OpCreate, zktest.DelayReply(time.Second)))
		start := time.Now()
		r.send(create("/a"), exists("/a"))
		synctest.Wait()
		other.wantDo(wire.OK, exists("/a"))
		wantAfter(t, start, 0)
		r.want(1, wire.OK)
		r.want(2, wire.OK)
		wantAfter(t, start, time.Second)
	})
}

func TestDelayedLinkHasThatMuchMoreLatency(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		r, other := newRaw(t, srv.Link), newRaw(t, srv.Link)
		srv.Delay(10*time.Millisecond, r.SessionID)
		start := time.Now()
		r.send(exists("/"), exists("/"))
		r.want(1, wire.OK)
		r.want(2, wire.OK)
		wantAfter(t, start, 20*time.Millisecond)
		other.wantDo(wire.OK, exists("/"))
		wantAfter(t, start, 20*time.Millisecond)
		srv.Heal()
		r.wantDo(wire.OK, exists("/"))
		wantAfter(t, start, 20*time.Millisecond)
	})
}

func TestHeldReplyIsSilenceUntilItIsReleased(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		r := dialRaw(t, srv.Link)
		if err := r.connect(0, nil); err != nil {
			t.Fatal(err)
		}
		ctx, release := context.WithCancel(t.Context())
		defer release()
		srv.Control(once(zktest.OpCreate, zktest.ReplyUntil(ctx)))
		srv.StopClock()
		r.send(create("/a"))
		wantSilence(t, r.conn)
		release()
		r.want(1, wire.OK)
	}, zktest.SessionTimeouts(time.Second, 24*time.Hour))
}

func TestHalfOpenLinkIsSilentOnBothSides(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		srv.StopClock()
		r, other := newRaw(t, srv.Link), newRaw(t, srv.Link)
		r.wantDo(wire.OK, watch("/"))
		srv.HalfOpen(r.SessionID)
		r.send(create("/a"))
		other.wantDo(wire.OK, set("/", "changed"))
		wantSilence(t, r.conn)
		other.wantDo(wire.NoNode, exists("/a"))
		srv.Heal()
		r.wantEnd()
	})
}

func TestMutedRequestIsSilenceWhileAllIsApplied(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		srv.StopClock()
		r, other := newRaw(t, srv.Link), newRaw(t, srv.Link)
		srv.Control(once(zktest.OpCreate, zktest.Mute))
		r.send(create("/a"), create("/b"))
		wantSilence(t, r.conn)
		other.wantDo(wire.OK, exists("/a"))
		other.wantDo(wire.OK, exists("/b"))
	})
}

func TestFrozenLinkDeliversEverythingInOrderInTheEnd(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		srv.StopClock()
		r, other := newRaw(t, srv.Link), newRaw(t, srv.Link)
		r.wantDo(wire.OK, watch("/"))
		srv.Freeze(r.SessionID)
		r.send(create("/a"), create("/b"))
		other.wantDo(wire.OK, set("/", "changed"))
		wantSilence(t, r.conn)
		other.wantDo(wire.NoNode, exists("/a"))
		srv.Heal()
		r.wantEvent(wire.EventDataChanged, "/")
		r.want(2, wire.OK)
		r.want(3, wire.OK)
		other.wantDo(wire.OK, exists("/b"))
	})
}

func TestRequestOfAClientThatHasLongGoneArrivesLate(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		r, other := newRaw(t, srv.Link), newRaw(t, srv.Link)
		srv.Freeze(r.SessionID)
		r.send(create("/late"))
		_ = r.conn.Close()
		pass(5 * time.Second)
		other.wantDo(wire.NoNode, watchFor("/late"))
		srv.Heal(r.SessionID)
		other.wantEvent(wire.EventCreated, "/late")
	})
}
