package lock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
)

// habitual takes and gives back a free lock again and again, until a node of it is seen to wait for the next time, and returns that.
func (w *world) habitual(m *lock.Mutex) (node string) {
	w.t.Helper()
	for range 1000 {
		var hold *lock.Hold
		for range 50 { // in some of the rounds the goroutine that removes the node may come between
			hold = acquire(w.t, m)
			unlock(w.t, hold)
		}
		synctest.Wait()
		if len(w.nodes(path)) == 1 {
			return hold.Path()
		}
	}
	w.t.Fatal("a lock that is taken again and again lets no removal wait for the next time")
	return ""
}

func TestUnlockOfALockThatIsTakenAgainAndAgainLeavesWithinAMillisecond(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.mutex(lock.Config{})
		w.habitual(m)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if left := w.nodes(path); len(left) > 0 {
			t.Errorf("got %v a millisecond later", left)
		}
		unlock(t, acquire(t, m)) // the habit has ended
		synctest.Wait()
		if left := w.nodes(path); len(left) > 0 {
			t.Errorf("got %v right after the next unlock", left)
		}
	})
}

func TestUnlockWaitAndTryLockDoNotWaitForAHabit(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.mutex(lock.Config{})
		w.habitual(m)
		start := time.Now()
		hold, err := m.TryLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		unlock(t, hold)
		w.habitual(m)
		if err := acquire(t, m).UnlockWait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > 0 {
			t.Errorf("took %v", took)
		}
	})
}

func TestOthersInTheLineEndAHabit(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m, other := w.mutex(lock.Config{}), w.mutex(lock.Config{})
		w.habitual(m)
		hold := acquire(t, m)
		theirs := lockInBackground(t.Context(), other)
		synctest.Wait()
		unlock(t, hold)
		ours := lockInBackground(t.Context(), m)
		synctest.Wait()
		start := time.Now()
		unlock(t, got(t, theirs))
		hold = got(t, ours)
		theirs = lockInBackground(t.Context(), other)
		synctest.Wait()
		unlock(t, hold)
		got(t, theirs)
		if took := time.Since(start); took > 0 {
			t.Errorf("the other one waited for a habit: %v", took)
		}
	})
}
