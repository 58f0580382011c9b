package lock_test

// From when the bounds of keeping a lock count.

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
)

// A process that was alone for long has not used up any of the bound when another comes.
func TestBoundOfTheHandOffCountsFromWhenAnotherCame(t *testing.T) {
	t.Parallel()
	const most, each = 8, time.Second
	for name, limits := range map[string]lock.Handoff{
		"turns": {Count: most, Time: time.Hour}, "time": {Count: 1 << 20, Time: most * each},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				m := w.mutex(lock.Config{Handoff: limits})
				hold := acquire(t, m)
				pass := func() (next <-chan result) {
					next = lockInBackground(t.Context(), m)
					synctest.Wait()
					unlock(t, hold)
					synctest.Wait()
					return next
				}
				for range 10 * most {
					hold = got(t, pass())
					time.Sleep(each)
				}
				other := lockInBackground(t.Context(), w.mutex(lock.Config{}))
				synctest.Wait()
				turns := 0
				next := pass()
				for ; len(other) == 0; next = pass() {
					hold = got(t, next)
					turns++
					time.Sleep(each)
				}
				if turns != most {
					t.Errorf("the lock was passed on %d times after another had come, want %d", turns, most)
				}
				unlock(t, got(t, other))
				unlock(t, got(t, next))
			})
		})
	}
}

// Retain counts from the last unlock.
func TestKeptLockThatIsTakenAgainIsKeptAsLongAsNew(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m, other := w.mutex(lock.Config{Retain: time.Minute}), w.mutex(lock.Config{})
		hold := acquire(t, m)
		node := hold.Path()
		unlock(t, hold)
		time.Sleep(30 * time.Second)
		hold = acquire(t, m)
		time.Sleep(5*time.Minute + 10*time.Second)
		if err := hold.Context().Err(); err != nil {
			t.Errorf("Retain has ended a hold: %v", err)
		}
		if _, err := other.TryLock(t.Context()); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("another client got %v while the lock was held, want lock.ErrHeld", err)
		}
		unlock(t, hold)
		time.Sleep(55 * time.Second)
		if hold = acquire(t, m); hold.Path() != node {
			t.Errorf("got node %s less than a minute after the unlock, want %s still", hold.Path(), node)
		}
		unlock(t, hold)
		time.Sleep(65 * time.Second)
		w.empty(path)
	})
}

// Goroutines of this process wait until the server has said that no other client does. The time for which Retain keeps
// the lock passes meanwhile, and has nothing to do with them.
func TestKeptLockDoesNotEndWhileGoroutinesWaitForIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.mutex(lock.Config{Retain: time.Minute, Handoff: lock.Handoff{Count: 1 << 20, Time: time.Second}})
		hold := acquire(t, m)
		unlock(t, hold)
		time.Sleep(58500 * time.Millisecond)
		hold = acquire(t, m)
		node, waiting := hold.Path(), lockers(t, m, 2)
		w.Freeze(hold.Session().ID())
		time.Sleep(time.Second)
		unlock(t, hold)
		none(t, "the server is silent", waiting...)
		time.Sleep(time.Second)
		none(t, "the server is silent", waiting...)
		w.Heal()
		for _, c := range waiting {
			if hold = got(t, c); hold.Path() != node {
				t.Errorf("got node %s, want %s: no other contender came", hold.Path(), node)
			}
			unlock(t, hold)
		}
	})
}
