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

func TestGateRefusesSmallerTokensOfTheSameResource(t *testing.T) {
	t.Parallel()
	g := fence.NewGate(nil)
	for _, token := range []fence.Token{4, 4, 7} {
		if err := g.Do(t.Context(), "stock", token, func(ctx context.Context) error {
			if got, ok := fence.FromContext(ctx); !ok || got != token {
				t.Errorf("work of token %d finds %d in its context", token, got)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	wantStale(t, g.Do(t.Context(), "stock", 6, nothing), 6, 7)
	if err := g.Do(t.Context(), "staff", 1, nothing); err != nil {
		t.Errorf("another resource: %v", err)
	}
	if err := g.Do(t.Context(), "stock", 0, nothing); !errors.Is(err, fence.ErrBadToken) {
		t.Errorf("token 0: got %v", err)
	}
	if g.Newest("stock") != 7 || g.Newest("none") != 0 {
		t.Errorf("got newest %d and %d, want 7 and 0", g.Newest("stock"), g.Newest("none"))
	}
	if _, ok := fence.FromContext(t.Context()); ok {
		t.Error("a context without a token has one")
	}
}

// While work of a token is under way, a larger one waits for it, tells it to end, and shuts out everything smaller.
func TestLargerTokenWaitsForWorkUnderWayAndTellsItToEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := fence.NewGate(nil)
		leave := make(chan struct{})
		told := make(chan error, 2)
		for range 2 { // work of one token may run at once
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
			t.Fatal("work was told to end before a larger token came")
		}
		entered := make(chan error, 1)
		go func() { entered <- g.Do(t.Context(), "stock", 5, nothing) }()
		for range 2 {
			if cause := <-told; !errors.Is(cause, fence.ErrStale) {
				t.Errorf("work was told %v", cause)
			}
		}
		synctest.Wait()
		wantStale(t, g.Do(t.Context(), "stock", 4, nothing), 4, 5)
		gaveUp, cancel := context.WithCancel(t.Context())
		cancel()
		if err := g.Do(gaveUp, "stock", 6, nothing); !errors.Is(err, context.Canceled) {
			t.Errorf("who gives up waiting got %v", err)
		}
		if len(entered) != 0 {
			t.Fatal("two tokens were at work at once")
		}
		close(leave)
		wantStale(t, <-entered, 5, 6) // 6 was seen, though it gave up
		if err := g.Do(t.Context(), "stock", 6, nothing); err != nil {
			t.Error(err)
		}
	})
}

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
				for token := fence.Token(1 + i/2); token <= 200; token += 8 { // each by two
					err := g.Do(t.Context(), "stock", token, func(context.Context) error {
						mu.Lock()
						inside[token]++
						if len(inside) > 1 || token < newest {
							t.Errorf("token %d was let in after %d, with %v at work", token, newest, inside)
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

// remembering is a store in memory.
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

func TestGateWithAStoreRemembersAcrossARestart(t *testing.T) {
	t.Parallel()
	store := remembering()
	if err := fence.NewGate(store).Do(t.Context(), "stock", 8, nothing); err != nil {
		t.Fatal(err)
	}
	wantStale(t, fence.NewGate(store).Do(t.Context(), "stock", 7, nothing), 7, 8)
}

// A token that the store cannot keep lets nobody in, and shuts nobody out.
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
		t.Error("work was let in with a token that is not stored")
		return nil
	})
	if !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	down = false
	if err := g.Do(t.Context(), "stock", 8, nothing); err != nil {
		t.Errorf("after the store failed for a larger token: %v", err)
	}
}

func TestGateForgetsIdleResourcesThatItsStoreRemembers(t *testing.T) {
	t.Parallel()
	g := fence.NewGate(remembering())
	if err := g.Do(t.Context(), "stock", 8, nothing); err != nil {
		t.Fatal(err)
	}
	if got := g.Newest("stock"); got != 0 {
		t.Errorf("the gate still keeps token %d", got)
	}
	wantStale(t, g.Do(t.Context(), "stock", 7, nothing), 7, 8)
}

// Work that panics lets the next in.
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
