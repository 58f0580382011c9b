package zk_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/zk"
)

// Promise: 8
func TestQueuedCreateIsNeverExecutedUnderTheNextSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var created []string
		f := newFake(t, func(p *peer) {
			req, ok := p.connect()
			if !ok {
				return
			}
			if req.SessionID != 0 {
				p.expire()
				return
			}
			p.grantAs(int64(7+p.nth), req.Timeout)
			p.loop(func(r request) bool {
				if r.Op == wire.OpCreate2 {
					mu.Lock()
					defer mu.Unlock()
					created = append(created, r.path())
				}
				return false
			})
		})
		c, s := f.open(f.config())
		f.refuse(errors.New("no route"))
		f.cut()
		waitState(s, zk.Suspended)
		b := s.Batch()
		queued := b.Create("/of-the-first", nil, zk.Ephemeral)
		b.Send()
		f.refuse(nil)
		_, err := queued.Get(t.Context())
		wantFailure(t, err, zk.ErrExpired, zk.NotSent)
		wantCause(t, s, zk.ErrExpired)
		next, err := c.Session(t.Context())
		if err != nil || next == s || next.ID() == s.ID() {
			t.Fatalf("next session: %v, %v; want a new one", next, err)
		}
		if _, err := next.Create(t.Context(), "/of-the-second", nil, zk.Ephemeral); err != nil {
			t.Fatal(err)
		}
		_, err = s.Create(t.Context(), "/too-late", nil, zk.Ephemeral)
		wantFailure(t, err, zk.ErrExpired, zk.NotSent)
		mu.Lock()
		defer mu.Unlock()
		if want := []string{"/of-the-second"}; !slices.Equal(created, want) {
			t.Errorf("created %v, want %v", created, want)
		}
	})
}

// Promise: 8
func TestAnotherSessionInPlaceOfTheOldOneIsALoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // what ClickHouse Keeper does
		f := newFake(t, func(p *peer) {
			req, ok := p.connect()
			if ok {
				p.grantAs(int64(7+p.nth), req.Timeout)
				p.loop(nil)
			}
		})
		_, s := f.open(f.config())
		f.cut()
		wantCause(t, s, zk.ErrLost)
	})
}

// Promise: 8
func TestRequestsWaitWhileSuspendedAndLeaveInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got []string
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(func(r request) bool {
				if r.Op == wire.OpGetData {
					got = append(got, r.path())
				}
				return false
			})
		})
		_, s := f.open(f.config())
		f.refuse(errors.New("no route"))
		f.cut()
		waitState(s, zk.Suspended)
		b := s.Batch()
		b.Get("/1")
		b.Get("/2")
		last := b.Get("/3")
		b.Send()
		f.refuse(nil)
		if _, err := last.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := []string{"/1", "/2", "/3"}; !slices.Equal(got, want) {
			t.Errorf("sent %v, want %v", got, want)
		}
	})
}

// Promise: 8
func TestRequestsThatAreCancelledWhileSuspendedAreNotSentAndTheOthersAreInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const requests = 200
		var got []string
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(func(r request) bool {
				if r.Op == wire.OpGetData {
					got = append(got, r.path())
				}
				return false
			})
		})
		_, s := f.open(f.config())
		f.refuse(errors.New("no route"))
		f.cut()
		waitState(s, zk.Suspended)
		var wg sync.WaitGroup
		var want []string
		cancels := make([]context.CancelFunc, requests)
		for i := range requests {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			cancels[i] = cancel
			path := fmt.Sprintf("/%s%d", strings.Repeat("x", i%7), i) // frames of different sizes
			if i%5 == 0 {
				want = append(want, path)
			}
			wg.Go(func() {
				_, _, w, err := s.GetW(ctx, path)
				switch {
				case i%5 > 0:
					wantFailure(t, err, context.Canceled, zk.NotSent)
				case err != nil:
					t.Errorf("%s: %v", path, err)
				default:
					w.Close()
				}
			})
			synctest.Wait() // so that they queue in this order
		}
		for _, i := range rand.Perm(requests) {
			if i%5 > 0 {
				cancels[i]()
			}
		}
		synctest.Wait()
		f.refuse(nil)
		wg.Wait()
		if !slices.Equal(got, want) {
			t.Errorf("sent %v, want %v", got, want)
		}
	})
}

// Promise: 8
func TestSentRequestOfABrokenConnectionHasUnknownOutcomeAndIsNotSentAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		creates := 0
		f := newFake(t, func(p *peer) {
			p.open()
			for p.nth == 0 {
				if r, _ := p.next(); r.Op == wire.OpCreate2 {
					creates++
					return
				}
			}
			p.loop(func(r request) bool {
				if r.Op == wire.OpCreate2 {
					creates++
				}
				return false
			})
		})
		_, s := f.open(f.config())
		_, err := s.Create(t.Context(), "/a", nil, zk.Persistent)
		wantFailure(t, err, zk.ErrConnectionLost, zk.Unknown)
		if _, _, err := s.Get(t.Context(), "/a"); err != nil {
			t.Fatal(err)
		}
		if creates != 1 {
			t.Errorf("the server saw %d creates, want 1", creates)
		}
	})
}

// Promise: 8
func TestStatesShowTheLatestAndEndWithTheSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(nil)
		})
		c, s := f.open(f.config())
		var got []zk.State
		for state := range s.States(t.Context()) {
			got = append(got, state)
			switch len(got) {
			case 1: // the connection breaks and comes back several times before the next check
				for range 3 {
					f.cut()
					time.Sleep(time.Second)
				}
				f.refuse(errors.New("no route"))
				f.cut()
				synctest.Wait()
			case 2:
				if err := c.Close(); err == nil {
					t.Error("Close of a suspended session returned nil, want an error: the server keeps it")
				}
			}
		}
		if want := []zk.State{zk.Connected, zk.Suspended, zk.Ended}; !slices.Equal(got, want) {
			t.Errorf("states %v, want %v", got, want)
		}
		wantCause(t, s, zk.ErrClosed)
	})
}

func TestCloseEndsTheSessionAtTheServerAfterWhatWasQueued(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ops []wire.Op
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(func(r request) bool {
				ops = append(ops, r.Op)
				return false
			})
		})
		c, s := f.open(f.config())
		b := s.Batch()
		b.Delete("/a", -1)
		b.Send()
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if want := []wire.Op{wire.OpDelete, wire.OpCloseSession}; !slices.Equal(ops, want) {
			t.Errorf("the server saw %v, want %v", ops, want)
		}
		wantCause(t, s, zk.ErrClosed)
		if _, err := c.Session(t.Context()); !errors.Is(err, zk.ErrClosed) {
			t.Errorf("Session after Close: %v, want ErrClosed", err)
		}
		if err := c.Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
	})
}

func TestCloseDoesNotWaitForASilentServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			p.open()
			for range p.in {
			}
		})
		c, _ := f.open(f.config())
		start := time.Now()
		if err := c.Close(); err == nil {
			t.Error("Close without an answer returned nil, want an error")
		}
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("Close took %v, want at most 3s", took)
		}
	})
}

func TestSessionWaitsForAServerUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(nil)
		})
		down := errors.New("no route")
		f.refuse(down)
		c := f.client(f.config())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := c.Session(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, down) {
			t.Errorf("Session without a server: %v, want the context's error and why", err)
		}
		f.refuse(nil)
		if _, err := c.Session(t.Context()); err != nil {
			t.Errorf("Session with a server: %v", err)
		}
		if err := c.LastError(); err != nil {
			t.Errorf("LastError with a server: %v", err)
		}
	})
}
