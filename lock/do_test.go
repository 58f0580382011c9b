package lock_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

type doFunc = func(context.Context, *lock.Hold) error

// doers returns the Do of every kind of lock, each on a path of its own.
func doers(t *testing.T, w *world) map[string]func(context.Context, doFunc) error {
	t.Helper()
	client := w.Client(t, 20*time.Second)
	m, err := lock.NewMutex(client, "/locks/mutex", lock.Config{})
	if err != nil {
		t.Fatal(err)
	}
	rw, err := lock.NewRWMutex(client, "/locks/rw", lock.RWConfig{})
	if err != nil {
		t.Fatal(err)
	}
	sem, err := lock.NewSemaphore(client, "/locks/semaphore", lock.AgreedLimit(2), lock.SemaphoreConfig{})
	if err != nil {
		t.Fatal(err)
	}
	set, err := lock.NewSet(client, []string{"/locks/set-a", "/locks/set-b"}, lock.SetConfig{})
	if err != nil {
		t.Fatal(err)
	}
	simple, err := lock.NewSimple(client, "/locks/simple", lock.SimpleConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]func(context.Context, doFunc) error{
		"mutex":   m.Do,
		"writing": rw.Do,
		"reading": rw.RDo,
		"permits": func(ctx context.Context, f doFunc) error { return sem.Do(ctx, 2, f) },
		"set":     set.Do,
		"simple":  simple.Do,
	}
}

// eachDo runs test for the Do of every kind of lock.
func eachDo(t *testing.T, test func(t *testing.T, w *world, do func(context.Context, doFunc) error)) {
	t.Helper()
	t.Parallel()
	for _, kind := range []string{"mutex", "writing", "reading", "permits", "set", "simple"} {
		t.Run(kind, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) { test(t, w, doers(t, w)[kind]) })
		})
	}
}

// free fails the test unless Do can have the lock.
func free(t *testing.T, do func(context.Context, doFunc) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := do(ctx, func(context.Context, *lock.Hold) error { return nil }); err != nil {
		t.Errorf("the lock is not free: %v", err)
	}
}

// Promise: 1
func TestDoReturnsTheFunctionsErrorAndUnlocks(t *testing.T) {
	eachDo(t, func(t *testing.T, _ *world, do func(context.Context, doFunc) error) {
		why := errors.New("the function's")
		for _, want := range []error{why, nil} {
			var hold *lock.Hold
			err := do(t.Context(), func(ctx context.Context, h *lock.Hold) error {
				if hold = h; h.Token() == 0 || ctx.Err() != nil || h.Context().Err() != nil {
					t.Errorf("token %d, contexts ended with %v and %v", h.Token(), ctx.Err(), h.Context().Err())
				}
				return want
			})
			if err != want { //nolint:errorlint // as it is
				t.Errorf("got %v, want %v", err, want)
			}
			if cause := context.Cause(hold.Context()); !errors.Is(cause, lock.ErrUnlocked) {
				t.Errorf("the hold ended by %v, want lock.ErrUnlocked", cause)
			}
		}
		free(t, do)
	})
}

// Promise: 2
func TestDoTellsALossBesidesTheFunctionsError(t *testing.T) {
	eachDo(t, func(t *testing.T, w *world, do func(context.Context, doFunc) error) {
		why := errors.New("the function's")
		for _, want := range []error{why, nil} {
			err := do(t.Context(), func(ctx context.Context, h *lock.Hold) error {
				w.ExpireSession(h.Session().ID())
				<-ctx.Done()
				if cause := context.Cause(ctx); !errors.Is(cause, zk.ErrExpired) {
					t.Errorf("the context ended by %v, want zk.ErrExpired", cause)
				}
				return want
			})
			if !errors.Is(err, zk.ErrExpired) || want != nil && !errors.Is(err, want) {
				t.Errorf("got %v, want zk.ErrExpired and %v", err, want)
			}
		}
		free(t, do)
	})
}

// The function does not look at its context: Unlock is what finds out.
//
// Promise: 2
func TestDoTellsALossThatTheFunctionDidNotNotice(t *testing.T) {
	eachDo(t, func(t *testing.T, w *world, do func(context.Context, doFunc) error) {
		err := do(t.Context(), func(_ context.Context, h *lock.Hold) error {
			sess := session(t, w.Client(t, 20*time.Second))
			for _, op := range h.Guards() {
				if err := sess.Delete(t.Context(), op.Path(), -1); err != nil && !errors.Is(err, zk.NoNode) {
					t.Error(err)
				}
			}
			time.Sleep(time.Minute) // in a bubble; the hold hears of it meanwhile
			return nil
		})
		if !errors.Is(err, lock.ErrDeleted) {
			t.Errorf("got %v, want lock.ErrDeleted", err)
		}
		free(t, do)
	})
}

// Promise: 2
func TestFunctionOfDoIsToldOfTheEndOfTheCallersContext(t *testing.T) {
	eachDo(t, func(t *testing.T, _ *world, do func(context.Context, doFunc) error) {
		type key struct{}
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, "value"))
		ctx, stop := context.WithTimeout(ctx, time.Hour)
		defer stop()
		deadline, _ := ctx.Deadline()
		err := do(ctx, func(got context.Context, h *lock.Hold) error {
			if at, ok := got.Deadline(); !ok || !at.Equal(deadline) || got.Value(key{}) != "value" {
				t.Errorf("got deadline %v and value %v, want the caller's", at, got.Value(key{}))
			}
			cancel(enough)
			if got.Err() == nil || !errors.Is(context.Cause(got), enough) {
				t.Errorf("got %v, %v, want the caller's end", got.Err(), context.Cause(got))
			}
			<-got.Done()
			if h.Context().Err() != nil {
				t.Error("the hold has ended, too")
			}
			return context.Cause(got)
		})
		if err != enough { //nolint:errorlint // as it is
			t.Errorf("got %v, want the caller's cause", err)
		}
		called := false
		err = do(ctx, func(context.Context, *lock.Hold) error {
			called = true
			return nil
		})
		if called || !errors.Is(err, enough) {
			t.Errorf("with a context that has ended: called %v, got %v", called, err)
		}
		free(t, do)
	})
}

// Promise: 1
func TestDoUnlocksWhenTheFunctionPanics(t *testing.T) {
	eachDo(t, func(t *testing.T, _ *world, do func(context.Context, doFunc) error) {
		func() {
			defer func() {
				if got := recover(); got != "no" {
					t.Errorf("recovered %v, want the function's panic", got)
				}
			}()
			_ = do(t.Context(), func(context.Context, *lock.Hold) error { panic("no") })
		}()
		free(t, do)
		over := make(chan struct{})
		go func() {
			defer close(over)
			_ = do(t.Context(), func(context.Context, *lock.Hold) error {
				runtime.Goexit()
				return nil
			})
		}()
		<-over
		free(t, do)
	})
}

func TestFunctionOfDoMayUnlockByItself(t *testing.T) {
	eachDo(t, func(t *testing.T, _ *world, do func(context.Context, doFunc) error) {
		why := errors.New("the function's")
		err := do(t.Context(), func(ctx context.Context, h *lock.Hold) error {
			if err := h.UnlockWait(t.Context()); err != nil {
				t.Error(err)
			}
			if ctx.Err() == nil || !errors.Is(context.Cause(ctx), lock.ErrUnlocked) {
				t.Errorf("the context ended by %v, want lock.ErrUnlocked", context.Cause(ctx))
			}
			return why
		})
		if err != why { //nolint:errorlint // as it is
			t.Errorf("got %v, want the function's error", err)
		}
		free(t, do)
	})
}

// A request to release the lock is no loss. It is told if the function has failed by it.
//
// Promise: 2
func TestDoTellsOfARevocationIfTheFunctionFails(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.mutex(lock.Config{})
		for _, fails := range []bool{true, false} {
			err := m.Do(t.Context(), func(ctx context.Context, _ *lock.Hold) error {
				client := w.Client(t, 20*time.Second)
				go func() { _, _ = lock.Revoke(t.Context(), client, path, lock.RevokeOptions{}) }()
				<-ctx.Done()
				if fails {
					return ctx.Err()
				}
				return nil
			})
			if fails && (!errors.Is(err, lock.ErrRevoked) || !errors.Is(err, context.Canceled)) ||
				!fails && err != nil {
				t.Errorf("fails %v: got %v", fails, err)
			}
		}
	})
}

func TestDoTellsTheLockWhoseHoldEndsBeforeTheFunction(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		m := w.mutex(lock.Config{Hooks: lock.Hooks{Acquired: func(context.Context, lock.Event) { cancel(why) }}})
		err := m.Do(ctx, func(context.Context, *lock.Hold) error {
			t.Error("the function was called")
			return nil
		})
		if !errors.Is(err, why) || !strings.HasPrefix(err.Error(), "lock: ") || !strings.Contains(err.Error(), path) {
			t.Errorf("got %v, want the cause with the package and the path", err)
		}
	})
}
