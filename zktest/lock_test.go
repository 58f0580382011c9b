package zktest_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// blows are what may hit a session at a step. Those that last are left to last: whoever is hit has to get over it.
var blows = map[string]func(srv *zktest.Server, session int64) zktest.Fault{
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
		time.AfterFunc(18*time.Second, func() { srv.Heal(session) }) // the client has given up and the server has not
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

// room is what a lock protects.
type room struct {
	pause  time.Duration // before one goes in
	mu     sync.Mutex    // guards inside
	inside []*lock.Hold
}

// enter fails the test if somebody is inside who has not been told to leave.
func (r *room) enter(t *testing.T, h *lock.Hold) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if h.Context().Err() != nil {
		return // told in time not to go in
	}
	for _, other := range r.inside {
		if other.Context().Err() == nil {
			t.Errorf("two holders at once: %s and %s", other.Path(), h.Path())
		}
		if other.Token() >= h.Token() {
			t.Errorf("token %d after %d", h.Token(), other.Token())
		}
	}
	r.inside = append(r.inside, h)
}

func (r *room) leave(h *lock.Hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, other := range r.inside {
		if other == h {
			r.inside = append(r.inside[:i], r.inside[i+1:]...)
			return
		}
	}
}

// visit takes the lock, trying again after failures, stays for a while or until it is told to leave, and leaves.
func visit(ctx context.Context, t *testing.T, r *room, m *lock.Mutex, stay time.Duration) {
	t.Helper()
	for {
		h, err := m.Lock(ctx)
		if ctx.Err() != nil {
			t.Errorf("no lock in an hour: %v", err)
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
		_ = h.Unlock() // a hold that was lost says so; that is what may happen here
		return
	}
}

// contend lets two clients take turns, and hits the first one at the given step. It reports whether there was such a step.
func contend(t *testing.T, srv *zktest.Server, path string, step int, blow func(*zktest.Server, int64) zktest.Fault) (reached bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	// A session that the server ends for no reason at all is told so at the same instant as the next in line, not before.
	room := room{pause: time.Millisecond}
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
		return blow(srv, victim)
	})
	for _, client := range clients {
		m, err := lock.NewMutex(client, path, lock.Config{})
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for _, stay := range []time.Duration{time.Minute, time.Second, time.Minute} { // sessions end after 20 seconds
				visit(ctx, t, &room, m, stay)
			}
		})
		synctest.Wait() // the victim is in first: it is hit while it holds, and later while it waits
	}
	wg.Wait()
	srv.Control(nil)
	srv.Heal()
	for _, client := range clients {
		_ = client.Close() // it fails if that is what was hit
	}
	srv.NoNodes(t, path)
	srv.NoWatches(t)
	return reached
}

func TestLockIsExclusiveAndLeavesNothingWhateverHitsItAtWhicheverStep(t *testing.T) {
	t.Parallel()
	for name, blow := range blows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var n zktest.Net
				srv := zktest.Run(t, zktest.On(&n))
				steps := 0
				for contend(t, srv, fmt.Sprintf("/locks/%d", steps+1), steps+1, blow) {
					steps++
				}
				if steps < 6 {
					t.Errorf("the lock has made %d requests, want more", steps)
				}
			})
		})
	}
}
