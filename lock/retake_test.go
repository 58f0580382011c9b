package lock_test

// A lock that is given up and asked for again at once, in one transaction as a rule.

import (
	"testing"
	"testing/synctest"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zktest"
)

// Its node was watched, and the watch is closed before the node goes: who leaves is not told of what it does itself.
func TestLockThatIsTakenAgainClosesItsWatchFirst(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]lock.Config{"hand-off": {}, "strict": strict} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				m := w.mutex(cfg)
				together := 0
				w.Control(func(r zktest.Request) zktest.Fault {
					if r.Op == zktest.OpMulti {
						together++
					}
					return zktest.Pass
				})
				hold := acquire(t, m)
				before := w.Traffic().Events
				for range 50 {
					letHoldsAge()
					unlock(t, hold)
					hold = acquire(t, m)
				}
				w.Control(nil)
				if together == 0 {
					t.Error("never was a lock given up and taken in one transaction")
				}
				unlock(t, hold)
				synctest.Wait()
				if n := w.Traffic().Events - before; n != 0 {
					t.Errorf("%d events told of an unlock's own doing", n)
				}
				w.NoWatches(t)
			})
		})
	}
}

// What belongs to a session that is over is not asked of the next one.
func TestNodeOfALostHoldIsNotDeletedWithTheNextOnesCreation(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, certainTimeout)
		m, err := lock.NewMutex(client, path, strict)
		if err != nil {
			t.Fatal(err)
		}
		together := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpMulti {
				together++
			}
			return zktest.Pass
		})
		for range 20 { // the removal may leave alone, before the request
			hold := acquire(t, m)
			w.ExpireSession(hold.Session().ID())
			<-hold.Context().Done()
			session(t, client) // the next one is there
			_ = hold.Unlock()
			unlock(t, acquire(t, m))
			synctest.Wait()
		}
		w.Control(nil)
		if together != 0 {
			t.Errorf("%d times the next session was asked to delete the node as well", together)
		}
	})
}
