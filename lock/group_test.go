package lock_test

// Goroutines that leave a group of which they are the last.

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zktest"
)

// The bound of the hand-off is reached, the look at the line is still under way, and no caller here wants the lock any
// more.
func TestLockIsFreeWhenTheLastWaiterOfAParkedGroupLeaves(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.mutex(lock.Config{Handoff: lock.Handoff{Count: 2, Time: time.Hour}})
		hold := acquire(t, m)
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		var waiting []<-chan result
		for range 4 {
			waiting = append(waiting, waits(ctx, m.Lock))
		}
		answer, arrives := context.WithCancel(t.Context())
		defer arrives()
		id := hold.Session().ID()
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpGetChildren && r.Session == id {
				return zktest.ReplyUntil(answer)
			}
			return zktest.Pass
		})
		unlock(t, hold)
		synctest.Wait()
		for len(waiting) > 0 && len(waiting[0]) > 0 {
			unlock(t, got(t, waiting[0]))
			synctest.Wait()
			waiting = waiting[1:]
		}
		if len(waiting) == 0 {
			t.Fatal("no waiter was parked")
		}
		leave()
		for _, c := range waiting {
			if r := <-c; !errors.Is(r.err, context.Canceled) {
				t.Errorf("got %v, want context.Canceled", r.err)
			}
		}
		synctest.Wait()
		unlock(t, locked(t, w.mutex(lock.Config{}).TryLock)) // at once: later, the answer would be missed
	})
}
