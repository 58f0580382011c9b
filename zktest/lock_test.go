package zktest_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// stepFaults are the faults that can hit a session at a step. The victim must recover even if the fault lasts to the
// end.
var stepFaults = map[string]func(srv *zktest.Server, session int64) zktest.Fault{
	"Nothing":   func(*zktest.Server, int64) zktest.Fault { return zktest.Pass },
	"Refuse":    func(*zktest.Server, int64) zktest.Fault { return zktest.Refuse },
	"CutBefore": func(*zktest.Server, int64) zktest.Fault { return zktest.CutBefore },
	"DropReply": func(*zktest.Server, int64) zktest.Fault { return zktest.DropReply },
	"CutAfter":  func(*zktest.Server, int64) zktest.Fault { return zktest.CutAfter },
	"Mute":      func(*zktest.Server, int64) zktest.Fault { return zktest.Mute },
	"SlowReply": func(*zktest.Server, int64) zktest.Fault { return zktest.DelayReply(12 * time.Second) },
	"CutOff": func(srv *zktest.Server, session int64) zktest.Fault {
		srv.Cut(session)
		return zktest.Pass
	},
	"HalfOpen": func(srv *zktest.Server, session int64) zktest.Fault {
		srv.HalfOpen(session)
		return zktest.Pass
	},
	"HalfOpenForAWhile": func(srv *zktest.Server, session int64) zktest.Fault {
		srv.HalfOpen(session)
		time.AfterFunc(6*time.Second, func() { srv.Heal(session) })
		return zktest.Pass
	},
	"FrozenForAWhile": func(srv *zktest.Server, session int64) zktest.Fault {
		srv.Freeze(session)
		time.AfterFunc(6*time.Second, func() { srv.Heal(session) })
		return zktest.Pass
	},
	"FrozenForTooLong": func(srv *zktest.Server, session int64) zktest.Fault {
		srv.Freeze(session)
		time.AfterFunc(18*time.Second, func() { srv.Heal(session) }) // between the client's timeout and the server's
		return zktest.Pass
	},
	"MutedForGood": func(srv *zktest.Server, session int64) zktest.Fault {
		srv.Mute(session)
		return zktest.Pass
	},
	"WatchesHeld": func(srv *zktest.Server, session int64) zktest.Fault {
		srv.HoldWatches(session)
		time.AfterFunc(6*time.Second, func() { srv.ReleaseWatches(session) })
		return zktest.Pass
	},
	"Expired": func(srv *zktest.Server, session int64) zktest.Fault {
		time.AfterFunc(0, func() { srv.ExpireSession(session) }) // not here: the server may wait for this request
		return zktest.Pass
	},
	"ExpiredAndReplyLost": func(srv *zktest.Server, session int64) zktest.Fault {
		time.AfterFunc(0, func() { srv.ExpireSession(session) })
		return zktest.DropReply
	},
}

// resource is what a lock protects.
type resource struct {
	pause  time.Duration // before use
	mu     sync.Mutex    // guards inside
	inside []*lock.Hold
}

// enter fails the test if another holder is inside whose hold has not ended.
func (r *resource) enter(t *testing.T, h *lock.Hold) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if h.Context().Err() != nil {
		return // the hold ended before use
	}
	for _, other := range r.inside {
		if other.Context().Err() == nil {
			t.Errorf("got two holders at once: %s and %s", other.Path(), h.Path())
		}
		if other.Token() >= h.Token() {
			t.Errorf("got token %d after %d, want a larger one", h.Token(), other.Token())
		}
	}
	r.inside = append(r.inside, h)
}

func (r *resource) leave(h *lock.Hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, other := range r.inside {
		if other == h {
			r.inside = append(r.inside[:i], r.inside[i+1:]...)
			return
		}
	}
}

// useOnce acquires the lock, retrying after failures, keeps it for the time stay or until the hold ends, and releases
// it.
func useOnce(ctx context.Context, t *testing.T, r *resource, m *lock.Mutex, stay time.Duration) {
	t.Helper()
	for {
		h, err := m.Lock(ctx)
		if ctx.Err() != nil {
			t.Errorf("got no lock within an hour: %v", err)
			return
		}
		if err != nil {
			continue
		}
		<-time.After(r.pause)
		r.enter(t, h)
		select {
		case <-h.Context().Done():
		case <-time.After(stay):
		}
		r.leave(h)
		_ = h.Unlock() // it may return that the hold was lost
		return
	}
}

// contend lets two clients acquire the lock in turns and injects the fault into the first one at the given step. It
// reports whether there was such a step.
func contend(
	t *testing.T, srv *zktest.Server, path string, step int, fault func(*zktest.Server, int64) zktest.Fault,
) (reached bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	// When the server expires a session without a reason, its client learns of it at the same instant as the next
	// contender.
	shared := resource{pause: time.Millisecond}
	var wg sync.WaitGroup
	var clients []*zk.Client
	for range 2 {
		clients = append(clients, srv.Client(t, 20*time.Second))
	}
	s, err := clients[0].Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	victim, requests := s.ID(), 0
	srv.Control(func(r zktest.Request) zktest.Fault {
		if r.Session != victim || r.Seq == 0 || reached {
			return zktest.Pass
		}
		if requests++; requests < step {
			return zktest.Pass
		}
		reached = true
		return fault(srv, victim)
	})
	for _, client := range clients {
		m, err := lock.NewMutex(client, path, lock.Config{})
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			// The sessions' timeout is 20 s.
			for _, stay := range []time.Duration{30 * time.Second, time.Second, 30 * time.Second} {
				useOnce(ctx, t, &shared, m, stay)
			}
		})
		synctest.Wait() // the victim is first: the fault hits it while it holds, and later while it waits
	}
	wg.Wait()
	srv.Control(nil)
	srv.Heal()
	for _, client := range clients {
		_ = client.Close() // it may fail because of the fault
	}
	srv.NoNodes(t, path)
	srv.NoWatches(t)
	return reached
}

// Promise: 1, 4
func TestLockIsExclusiveAndLeavesNothingWhateverHitsItAtWhicheverStep(t *testing.T) {
	t.Parallel()
	for name, fault := range stepFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
				steps := 0
				for step := range soak.Steps(name, stepFaults) {
					if !contend(t, srv, fmt.Sprintf("/locks/%d", step), step, fault) {
						break
					}
					steps = step
				}
				if steps < 6 {
					t.Errorf("got %d requests of the lock, want more", steps)
				}
			})
		})
	}
}
