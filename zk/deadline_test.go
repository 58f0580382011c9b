package zk_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/zk"
)

// Promise: 2
func TestSilentServerEndsTheSessionAtItsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			if p.nth == 0 {
				p.open()
			}
			for range p.in { // takes everything, says nothing
			}
		})
		start := time.Now()
		_, s := f.open(f.config())
		if got, want := s.Deadline().Sub(start), 7500*time.Millisecond; got != want {
			t.Errorf("deadline after %v, want %v: a quarter before the timeout", got, want)
		}
		_, _, err := s.Get(t.Context(), "/a")
		wantCause(t, s, zk.ErrLost)
		if got, want := time.Since(start), 7500*time.Millisecond; got != want {
			t.Errorf("lost after %v, want %v", got, want)
		}
		if err == nil || zk.OutcomeOf(err) != zk.Unknown {
			t.Errorf("request to a silent server: got %v, want unknown outcome", err)
		}
		_, _, err = s.Get(t.Context(), "/a")
		wantFailure(t, err, zk.ErrLost, zk.NotSent)
	})
}

// A server counts from when it received the request, which may be as early as it was sent, not from its reply.
//
// Promise: 2
func TestDeadlineAndCertaintyCountFromTheSendingOfWhatWasAnsweredLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const late = time.Second
		connects := make(chan time.Time, 3)
		f := newFake(t, func(p *peer) {
			req, ok := p.connect()
			if !ok {
				return
			}
			connects <- time.Now()
			time.Sleep(late)
			p.grant(req)
			p.loop(func(request) bool { time.Sleep(late); return false })
		})
		_, s := f.open(f.config())
		check := func(what string, got, since time.Time, want time.Duration) {
			t.Helper()
			if after := got.Sub(since); after != want {
				t.Errorf("%s: %v after it was sent, want %v", what, after, want)
			}
		}
		const window = 7500 * time.Millisecond
		first := <-connects
		check("deadline of the connect request", s.Deadline(), first, window)
		check("certainty of the connect request", s.Certain(), first, window)
		time.Sleep(300 * time.Millisecond)
		sent := time.Now()
		if _, _, err := s.Get(t.Context(), "/a"); err != nil {
			t.Fatal(err)
		}
		check("deadline of a read", s.Deadline(), sent, window)
		check("certainty, to which a read adds nothing", s.Certain(), first, window)
		time.Sleep(3500 * time.Millisecond)
		sent = time.Now()
		if _, err := s.Set(t.Context(), "/a", nil, -1); err != nil {
			t.Fatal(err)
		}
		check("deadline of a write", s.Deadline(), sent, window)
		certain := s.Certain()
		check("certainty of a write alone", certain, sent, 2500*time.Millisecond)
		after(s, f.cut)
		again := <-connects
		waitState(s, zk.Connected)
		check("deadline of the next connect request", s.Deadline(), again, window)
		check("certainty, to which a connect request adds nothing", s.Certain(), certain, 0)
		if _, err := s.Set(t.Context(), "/a", nil, -1); err != nil {
			t.Fatal(err)
		}
		check("certainty of the next connect request, which a write proves", s.Certain(), again, window)
	})
}

// Promise: 2
func TestSessionWithoutAnyServerEndsAtItsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(nil)
		})
		c, s := f.open(f.config())
		deadline := s.Deadline()
		f.refuse(errors.New("no route"))
		f.cut()
		waitState(s, zk.Suspended)
		_, err := s.Create(t.Context(), "/a", nil, zk.Persistent)
		wantFailure(t, err, zk.ErrLost, zk.NotSent)
		wantCause(t, s, zk.ErrLost)
		if late := time.Since(deadline); late != 0 {
			t.Errorf("lost %v after the deadline", late)
		}
		if c.LastError() == nil {
			t.Error("no LastError without a server")
		}
	})
}

// Promise: 2
func TestServersThatHangUpOnTheHandshakeEndTheSessionInLoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // a server that is behind what the client has seen does that
		f := newFake(t, func(p *peer) {
			if p.nth == 0 {
				p.open()
				p.next()
			}
		})
		_, s := f.open(f.config())
		_, _, _ = s.Get(t.Context(), "/a")
		wantCause(t, s, zk.ErrLost)
	})
}

func TestHandshakesAreBoundedByWhatTheSessionHasLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			switch {
			case p.nth == 0:
				p.open()
				p.next()
			case p.nth < 4: // accept and say nothing
				for range p.in {
				}
			default:
				p.open()
				p.loop(nil)
			}
		})
		_, s := f.open(f.config())
		_, _, _ = s.Get(t.Context(), "/a")
		if _, _, err := s.Get(t.Context(), "/a"); err != nil {
			t.Errorf("after three silent servers: %v, want the session resumed in time", err)
		}
	})
}

// Promise: 2
func TestOneLostPingEndsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pings := 0
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(func(r request) bool {
				if r.Op != wire.OpPing {
					return false
				}
				pings++
				return pings%4 == 1
			})
		})
		_, s := f.open(f.config())
		time.Sleep(12 * time.Second)
		if state, _ := s.State(); state != zk.Connected || f.dials != 1 {
			t.Errorf("state %v after %d connections, want connected on the first", state, f.dials)
		}
		if pings < 5 {
			t.Errorf("%d pings in 12s of a 10s session, want at least 5", pings)
		}
	})
}

func TestIdleSessionLivesOnPings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(nil)
		})
		_, s := f.open(f.config())
		time.Sleep(time.Hour)
		if state, _ := s.State(); state != zk.Connected {
			t.Errorf("state %v after an idle hour, want connected", state)
		}
	})
}

func TestSilentConnectionIsLeftForAnotherServerInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			p.open()
			if p.nth == 0 {
				for range p.in {
				}
			}
			p.loop(nil)
		})
		_, s := f.open(f.config())
		after(s, func() {})
		waitState(s, zk.Connected)
		if left := time.Until(s.Deadline()); left < 5*time.Second {
			t.Errorf("resumed with %v left, want a new window", left)
		}
	})
}

// Promise: 2
func TestConnectionsThatDoNotLastDoNotEndTheSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const short = 30
		f := newFake(t, func(p *peer) {
			p.open()
			if p.nth == 0 || p.nth > short {
				p.loop(nil)
			}
		})
		cfg := f.config()
		cfg.Timeout = time.Second
		_, s := f.open(cfg)
		after(s, f.cut)
		time.Sleep(time.Minute)
		if state, _ := s.State(); state != zk.Connected || f.dials != short+2 {
			t.Errorf("state %v after %d connections, want connected by the last of %d", state, f.dials, short+2)
		}
		f.cut() // and one that lasted is followed at once
		time.Sleep(time.Second / 32)
		synctest.Wait()
		if state, _ := s.State(); state != zk.Connected {
			t.Errorf("state %v after the end of a connection that had lasted, want connected", state)
		}
	})
}

// Promise: 2
func TestLostSessionThatIsGoneAtTheServerIsLeftAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		f := newFake(t, func(p *peer) {
			req, ok := p.connect()
			switch {
			case !ok:
			case req.SessionID == 7:
				asked.Add(1)
				p.expire()
			default:
				p.grantAs(int64(7+p.nth), req.Timeout)
				p.loop(nil)
			}
		})
		_, s := f.open(f.config())
		f.refuse(errors.New("no route"))
		f.cut()
		wantCause(t, s, zk.ErrLost)
		f.refuse(nil)
		time.Sleep(time.Minute)
		if n := asked.Load(); n != 1 {
			t.Errorf("asked %d times for the session, want once", n)
		}
	})
}

func TestLostSessionIsClosedAtTheServerWhenItsMarginIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		closed := make(chan int64, 1)
		f := newFake(t, func(p *peer) {
			req, ok := p.connect()
			switch {
			case !ok:
				return
			case req.SessionID == 0:
				p.grantAs(int64(7+p.nth), req.Timeout)
			default:
				p.grant(req)
			}
			p.loop(func(r request) bool {
				if r.Op == wire.OpCloseSession && req.SessionID == 7 {
					closed <- req.SessionID
				}
				return false
			})
		})
		_, s := f.open(f.config())
		f.refuse(errors.New("no route"))
		f.cut()
		wantCause(t, s, zk.ErrLost)
		f.refuse(nil)
		lost := time.Now()
		<-closed
		if took := time.Since(lost); took < 2500*time.Millisecond || took > 3*time.Second {
			t.Errorf("closed %v after the loss, want soon after the margin of 2.5s, which is the holders'", took)
		}
	})
}
