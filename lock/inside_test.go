package lock_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
)

// takeFunc is a way to take a lock.
type takeFunc = func(context.Context) (*lock.Hold, error)

// aloneKinds are all ways to take a lock alone.
func (w *world) aloneKinds() map[string]func() takeFunc {
	return map[string]func() takeFunc{
		"mutex":        func() takeFunc { return w.mutex(lock.Config{}).Lock },
		"strict mutex": func() takeFunc { return w.mutex(strict).Lock },
		"writer":       func() takeFunc { return w.rw(lock.RWConfig{}).Lock },
		"permits":      func() takeFunc { return permits{w.semaphore(lock.AgreedLimit(2)), 2}.Lock },
		"set":          func() takeFunc { return w.set(pathA, pathB).Lock },
		"simple":       func() takeFunc { return w.simple().Lock },
	}
}

// together runs two goroutines under one context that ends when one of them fails, as an errgroup does, and fails the
// test if both have the lock at a time.
func together(ctx context.Context, t *testing.T, take takeFunc) error {
	t.Helper()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	var inside atomic.Int32
	for range 2 {
		group.Go(func() {
			h, err := take(ctx)
			if err != nil {
				cancel(err)
				return
			}
			if inside.Add(1) > 1 {
				t.Error("two goroutines have the lock")
			}
			time.Sleep(time.Second)
			inside.Add(-1)
			unlock(t, h)
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// That a context descends from the context of a hold makes nothing nested.
//
// Promise: 1
func TestGoroutinesUnderAHoldOfAnotherLockExcludeEachOther(t *testing.T) {
	t.Parallel()
	for kind := range new(world).aloneKinds() {
		t.Run(kind, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				client := w.Client(t, 20*time.Second)
				other, err := lock.NewMutex(client, "/locks/other", lock.Config{})
				if err != nil {
					t.Fatal(err)
				}
				take := w.aloneKinds()[kind]()
				outer := acquire(t, other)
				if err := together(outer.Context(), t, take); err != nil {
					t.Errorf("under a hold: %v", err)
				}
				unlock(t, outer)
				err = other.Do(t.Context(), func(ctx context.Context, _ *lock.Hold) error {
					return together(ctx, t, take)
				})
				if err != nil {
					t.Errorf("under Do: %v", err)
				}
			})
		})
	}
}

// The same of the lock itself: they wait for the hold under which they were started, and then for each other.
//
// Promise: 1
func TestGoroutinesUnderAHoldOfTheSameLockWaitForIt(t *testing.T) {
	t.Parallel()
	for kind := range new(world).aloneKinds() {
		t.Run(kind, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				take := w.aloneKinds()[kind]()
				outer := locked(t, take)
				ended, lasting := make(chan error, 1), make(chan error, 1)
				go func() { ended <- together(outer.Context(), t, take) }()
				go func() { lasting <- together(context.WithoutCancel(outer.Context()), t, take) }()
				synctest.Wait()
				time.Sleep(time.Minute)
				select {
				case err := <-ended:
					t.Errorf("the goroutines did not wait for the hold: %v", err)
				case err := <-lasting:
					t.Errorf("the goroutines did not wait for the hold: %v", err)
				default:
				}
				unlock(t, outer)
				if err := <-ended; !errors.Is(err, lock.ErrUnlocked) {
					t.Errorf("under the hold's context: got %v, want lock.ErrUnlocked", err)
				}
				if err := <-lasting; err != nil {
					t.Errorf("under a context that lasts: got %v", err)
				}
			})
		})
	}
}

// Reenter is for the call that it is passed to, and not for what runs under the hold that the call returns.
//
// Promise: 1
func TestReenterDoesNotReachIntoTheHoldItself(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.mutex(lock.Config{})
		err := m.Do(lock.Reenter(t.Context()), func(ctx context.Context, outer *lock.Hold) error {
			if _, err := m.TryLock(ctx); !errors.Is(err, lock.ErrHeld) {
				t.Errorf("under Do: got %v, want lock.ErrHeld", err)
			}
			return m.Do(lock.Reenter(ctx), func(ctx context.Context, inner *lock.Hold) error {
				if inner.Token() != outer.Token() {
					t.Errorf("got token %d, want a hold nested in %d", inner.Token(), outer.Token())
				}
				if _, err := m.TryLock(ctx); !errors.Is(err, lock.ErrHeld) {
					t.Errorf("under a nested Do: got %v, want lock.ErrHeld", err)
				}
				return nil
			})
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// A hold of permits in between does not hide the hold outside.
func TestLockInsideAHoldOfPermitsIsStillNested(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m, err := lock.NewMutex(w.Client(t, 20*time.Second), "/locks/other", lock.Config{})
		if err != nil {
			t.Fatal(err)
		}
		p := permits{w.semaphore(lock.AgreedLimit(2)), 2}
		outer := acquire(t, m)
		between, err := p.Lock(outer.Context())
		if err != nil {
			t.Fatal(err)
		}
		inner := lockWith(lock.Reenter(between.Context()), t, m)
		if inner.Token() != outer.Token() {
			t.Errorf("got token %d, want a hold nested in %d", inner.Token(), outer.Token())
		}
		for _, h := range []*lock.Hold{inner, between, outer} {
			unlock(t, h)
		}
	})
}
