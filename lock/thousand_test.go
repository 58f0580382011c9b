package lock_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zktest"
)

// A thousand goroutines that want one mutex at once do no more work each than a hundred do: work is counted here, not
// time (CURATOR-716). What passes in memory costs the server nothing; with a node for each, each costs the same few
// requests and events.
//
// Promise: 6
func TestThousandGoroutinesOnOneMutexCostNoMoreEachThanAHundred(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg  lock.Config
		each int // requests of a goroutine, at most
	}{
		"handed over in memory": {lock.Config{}, 0},
		"a node for each":       {lock.Config{Handoff: lock.StrictFIFO}, 8},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				for _, n := range []int{100, 1000} {
					requests, events := w.workOf(w.mutex(c.cfg), n)
					// At the bounds of the hand-off, every 64 turns, it looks who else waits.
					if limit := c.each*n + n/32 + 20; requests > limit {
						t.Errorf("%d goroutines sent %d requests, want %d at most", n, requests, limit)
					}
					// One for each that waited for another's node, and one for the watch on its own if that is not
					// taken back in time.
					if limit := 2 * n; events > limit || c.each == 0 && events > 2 {
						t.Errorf("%d goroutines got %d events", n, events)
					}
				}
			})
		})
	}
}

// workOf has n goroutines take m and give it back, each once, and returns what that costs the server.
func (w *world) workOf(m *lock.Mutex, n int) (requests, events int) {
	w.t.Helper()
	unlock(w.t, acquire(w.t, m))
	time.Sleep(time.Second)
	before := w.Traffic()
	hold := acquire(w.t, m) // while all of them come
	var wg sync.WaitGroup
	inside := 0
	for range n {
		wg.Go(func() {
			h, err := m.Lock(w.t.Context())
			if err != nil {
				w.t.Error(err)
				return
			}
			inside++ // the race detector sees to it that one at a time is here
			if err := h.Unlock(); err != nil {
				w.t.Error(err)
			}
		})
	}
	synctest.Wait()
	unlock(w.t, hold)
	wg.Wait()
	time.Sleep(time.Second)
	if inside != n {
		w.t.Errorf("%d of %d goroutines had the lock", inside, n)
	}
	after := w.Traffic()
	for op, count := range after.Requests {
		if op != zktest.OpPing {
			requests += count - before.Requests[op]
		}
	}
	return requests, after.Events - before.Events
}
