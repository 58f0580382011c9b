package fence_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/seed-a3166700/turnstile/fence"
)

func nothing(context.Context) error { return nil }

// Promise: 12
func TestGateRefusesSmallerTokensOfTheSameResource(t *testing.T) {
	t.Parallel()
	g := fence.NewGate(nil)
	for _, token := range []fence.Token{4, 4, 7} {
		if err := g.Do(t.Context(), "stock", token, func(ctx context.Context) error {
			if got, ok := fence.FromContext(ctx); !ok || got != token {
				t.Errorf("token %d: got token %d in the context of work", token, got)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	wantStale(t, g.Do(t.Context(), "stock", 6, nothing), 6, 7)
	if err := g.Do(t.Context(), "staff", 1, nothing); err != nil {
		t.Errorf("another resource: got %v, want nil", err)
	}
	if err := g.Do(t.Context(), "stock", 0, nothing); !errors.Is(err, fence.ErrBadToken) {
		t.Errorf("token 0: got %v, want ErrBadToken", err)
	}
	if g.Newest("stock") != 7 || g.Newest("none") != 0 {
		t.Errorf("got newest %d and %d, want 7 and 0", g.Newest("stock"), g.Newest("none"))
	}
	if _, ok := fence.FromContext(t.Context()); ok {
		t.Error("got a token from a context without one")
	}
}

// While work of a token runs, a larger token waits for it, cancels its context, and keeps out everything smaller.
//
// Promise: 12
func TestLargerTokenWaitsForWorkUnderWayAndTellsItToEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := fence.NewGate(nil)
		leave := make(chan struct{})
		told := make(chan error, 2)
		for range 2 { // work of one token may run concurrently
			go func() {
				_ = g.Do(t.Context(), "stock", 4, func(ctx context.Context) error {
					<-ctx.Done()
					told <- context.Cause(ctx)
					<-leave
					return nil
				})
			}()
		}
		synctest.Wait()
		if len(told) != 0 {
			t.Fatal("got work canceled before a larger token arrived")
		}
		entered := make(chan error, 1)
		go func() { entered <- g.Do(t.Context(), "stock", 5, nothing) }()
		for range 2 {
			if cause := <-told; !errors.Is(cause, fence.ErrStale) {
				t.Errorf("got cause %v, want ErrStale", cause)
			}
		}
		synctest.Wait()
		wantStale(t, g.Do(t.Context(), "stock", 4, nothing), 4, 5)
		gaveUp, cancel := context.WithCancel(t.Context())
		cancel()
		if err := g.Do(gaveUp, "stock", 6, nothing); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the cause of the context that ended the wait", err)
		}
		if len(entered) != 0 {
			t.Fatal("got work of two tokens at once")
		}
		close(leave)
		wantStale(t, <-entered, 5, 6) // the gate has seen 6, although its caller gave up
		if err := g.Do(t.Context(), "stock", 6, nothing); err != nil {
			t.Error(err)
		}
	})
}

// Promise: 12
func TestGateNeverHasTwoTokensAtWork(t *testing.T) {
	t.Parallel()
	for _, store := range []fence.Store{nil, remembering()} {
		g := fence.NewGate(store)
		var workers sync.WaitGroup
		var mu sync.Mutex // guards the fields below
		inside := make(map[fence.Token]int)
		var newest fence.Token
		for i := range 16 {
			workers.Go(func() {
				for token := fence.Token(1 + i/2); token <= 200; token += 8 { // each by two goroutines
					err := g.Do(t.Context(), "stock", token, func(context.Context) error {
						mu.Lock()
						inside[token]++
						if len(inside) > 1 || token < newest {
							t.Errorf("token %d admitted after %d, while %v are running", token, newest, inside)
						}
						newest = token
						mu.Unlock()
						mu.Lock()
						defer mu.Unlock()
						if inside[token]--; inside[token] == 0 {
							delete(inside, token)
						}
						return nil
					})
					if err != nil && !errors.Is(err, fence.ErrStale) {
						t.Error(err)
					}
				}
			})
		}
		workers.Wait()
	}
}

// remembering returns an in-memory store.
func remembering() fence.Store {
	var mu sync.Mutex
	newest := make(map[string]fence.Token)
	return func(_ context.Context, resource string, token fence.Token) error {
		mu.Lock()
		defer mu.Unlock()
		if token < newest[resource] {
			return &fence.StaleError{Resource: resource, Token: token, Newest: newest[resource]}
		}
		newest[resource] = token
		return nil
	}
}

// Promise: 12
func TestGateWithAStoreRemembersAcrossARestart(t *testing.T) {
	t.Parallel()
	store := remembering()
	if err := fence.NewGate(store).Do(t.Context(), "stock", 8, nothing); err != nil {
		t.Fatal(err)
	}
	wantStale(t, fence.NewGate(store).Do(t.Context(), "stock", 7, nothing), 7, 8)
}

// A token that the store fails to keep is not admitted, and does not keep out others.
//
// Promise: 12
func TestTokenThatCannotBeStoredDoesNotCount(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	down := true
	store := remembering()
	g := fence.NewGate(func(ctx context.Context, resource string, token fence.Token) error {
		if down {
			return full
		}
		return store(ctx, resource, token)
	})
	err := g.Do(t.Context(), "stock", 9, func(context.Context) error {
		t.Error("work ran with a token that is not stored")
		return nil
	})
	if !errors.Is(err, full) {
		t.Errorf("got %v, want the store's error", err)
	}
	down = false
	if err := g.Do(t.Context(), "stock", 8, nothing); err != nil {
		t.Errorf("after a larger token that was not stored: got %v, want nil", err)
	}
}

func TestGateForgetsIdleResourcesThatItsStoreRemembers(t *testing.T) {
	t.Parallel()
	g := fence.NewGate(remembering())
	if err := g.Do(t.Context(), "stock", 8, nothing); err != nil {
		t.Fatal(err)
	}
	if got := g.Newest("stock"); got != 0 {
		t.Errorf("got newest token %d, want 0", got)
	}
	wantStale(t, g.Do(t.Context(), "stock", 7, nothing), 7, 8)
}

// Work that panics does not block the next call.
func TestWorkThatPanicsLeavesTheGate(t *testing.T) {
	t.Parallel()
	g := fence.NewGate(nil)
	func() {
		defer func() { _ = recover() }()
		_ = g.Do(t.Context(), "stock", 1, func(context.Context) error { panic("oops") })
	}()
	if err := g.Do(t.Context(), "stock", 2, nothing); err != nil {
		t.Error(err)
	}
}
