package lock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// lockWith takes m with a context of the caller's choice.
func lockWith(ctx context.Context, t *testing.T, m *lock.Mutex) *lock.Hold {
	t.Helper()
	h, err := m.Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func isHeld(t *testing.T, m *lock.Mutex) bool {
	t.Helper()
	h, err := m.TryLock(t.Context())
	if errors.Is(err, lock.ErrHeld) {
		return true
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := h.UnlockWait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return false
}

// Every way to be inside, and every order of unlocking: the lock is free when the last hold is unlocked, and no
// earlier.
func TestLockInsideAHoldIsNestedInIt(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]lock.Config{"hand-off": {}, "strict": {Handoff: lock.StrictFIFO}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				m, other := w.mutex(cfg), w.mutex(lock.Config{})
				for _, order := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 0, 3, 2}, {2, 3, 0, 1}} {
					outer := acquire(t, m)
					derived, cancel := context.WithTimeout(outer.Context(), time.Hour)
					inner := lockWith(lock.Reenter(derived), t, m)
					third := lockWith(lock.Reenter(inner.Context()), t, m)
					tried, err := m.TryLock(lock.Reenter(context.WithoutCancel(outer.Context())))
					if err != nil {
						t.Fatal(err)
					}
					cancel()
					holds := []*lock.Hold{outer, inner, third, tried}
					for _, h := range holds {
						if h.Token() != outer.Token() || h.Path() != outer.Path() || h.Session() != outer.Session() ||
							h.Context().Err() != nil {
							t.Errorf("a nested hold has token %d at %s, want %d at %s",
								h.Token(), h.Path(), outer.Token(), outer.Path())
						}
					}
					for n, i := range order {
						if !isHeld(t, other) {
							t.Errorf("order %v: the lock is free after %d of %d were unlocked", order, n, len(holds))
						}
						unlock(t, holds[i])
						unlock(t, holds[i]) // twice is once
						if !errors.Is(context.Cause(holds[i].Context()), lock.ErrUnlocked) {
							t.Errorf("the context of an unlocked hold ended by %v", context.Cause(holds[i].Context()))
						}
					}
					synctest.Wait()
					if isHeld(t, other) {
						t.Errorf("order %v: the lock is held after all were unlocked", order)
					}
				}
			})
		})
	}
}

// A hold of another lock in between does not hide the one outside.
func TestLockInsideAHoldOfAnotherLockIsStillNested(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, 20*time.Second)
		a, err := lock.NewMutex(client, "/locks/a", lock.Config{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := lock.NewMutex(client, "/locks/b", lock.Config{})
		if err != nil {
			t.Fatal(err)
		}
		first := acquire(t, a)
		second := lockWith(lock.Reenter(first.Context()), t, b)
		if second.Path() == first.Path() {
			t.Fatal("a hold of another lock is nested")
		}
		third := lockWith(lock.Reenter(second.Context()), t, a)
		if third.Token() != first.Token() {
			t.Errorf("got token %d for a nested hold of %d", third.Token(), first.Token())
		}
		for _, h := range []*lock.Hold{third, second, first} {
			unlock(t, h)
		}
	})
}

// Two Mutexes with one path are two contenders, and contexts that do not come from a hold are outside.
func TestOnlyHoldsOfTheSameMutexNest(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m, other := w.mutex(lock.Config{}), w.mutex(lock.Config{})
		hold := acquire(t, m)
		if _, err := other.TryLock(lock.Reenter(hold.Context())); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("another Mutex with the same path: got %v", err)
		}
		if _, err := m.TryLock(lock.Reenter(t.Context())); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("a context without a hold: got %v", err)
		}
		unlock(t, hold)
	})
}

// No hold nests in one that is over: a caller with its context gets an error, and one that has detached from it is a
// contender.
func TestNothingNestsInAHoldThatIsOver(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.mutex(lock.Config{})
		hold := acquire(t, m)
		ctx := hold.Context()
		unlock(t, hold)
		if _, err := m.Lock(lock.Reenter(ctx)); !errors.Is(err, lock.ErrUnlocked) {
			t.Errorf("got %v", err)
		}
		again := lockWith(lock.Reenter(context.WithoutCancel(ctx)), t, m)
		if again.Token() <= hold.Token() {
			t.Errorf("got token %d after %d", again.Token(), hold.Token())
		}
		unlock(t, again)
	})
}

// All nested holds end with the session, and afterwards their lock can be had again.
func TestLossEndsNestedHolds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.mutex(lock.Config{})
		outer := acquire(t, m)
		detached := context.WithoutCancel(outer.Context())
		inner := lockWith(lock.Reenter(outer.Context()), t, m)
		w.ExpireSession(outer.Session().ID())
		for _, h := range []*lock.Hold{outer, inner} {
			<-h.Context().Done()
			if cause := context.Cause(h.Context()); !errors.Is(cause, zk.ErrExpired) {
				t.Errorf("a hold ended by %v", cause)
			}
		}
		next := lockWith(lock.Reenter(detached), t, m)
		if next.Token() <= outer.Token() {
			t.Errorf("got token %d after %d", next.Token(), outer.Token())
		}
		for _, h := range []*lock.Hold{outer, inner} {
			if err := h.Unlock(); !errors.Is(err, zk.ErrExpired) {
				t.Errorf("unlock of a lost hold: got %v", err)
			}
		}
		if next.Context().Err() != nil {
			t.Error("unlocking lost holds ended the next one")
		}
		unlock(t, next)
	})
}

// Goroutines that nest and unlock at once leave the lock free, once.
func TestNestedHoldsOfManyGoroutinesAreOneForOthers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m, other := w.mutex(lock.Config{}), w.mutex(lock.Config{})
		outer := acquire(t, m)
		waiting := lockInBackground(t.Context(), other)
		var workers sync.WaitGroup
		for range 20 {
			workers.Go(func() {
				for range 20 {
					h, err := m.Lock(lock.Reenter(outer.Context()))
					if err != nil {
						t.Error(err)
						return
					}
					h.Unlock()
				}
			})
		}
		workers.Wait()
		if len(waiting) > 0 {
			t.Error("the lock was given away while its outermost hold was held")
		}
		unlock(t, outer)
		unlock(t, got(t, waiting))
	})
}
