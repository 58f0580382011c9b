package lock

// Nested holds.

import (
	"context"
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/waits"
)

// Reenter returns a context for one call of Lock, TryLock, RLock, TryRLock or Do, of a caller that may have the lock
// already. If ctx descends from the context of a hold of that lock, and the hold lasts, the call returns at once with a
// hold that is nested in it: the same token, the same node. Other clients get the lock when all of them are unlocked,
// in any order. Otherwise the call acquires the lock as usual.
//
// Holds that are nested in one do not exclude each other. Without Reenter, Lock waits for every hold there is, also for
// those that ctx descends from: so goroutines that are started under a hold exclude each other.
//
// A Semaphore has no nested holds, and a hold of one lock is never nested in that of another, even if both have the
// same path.
func Reenter(ctx context.Context) context.Context { return context.WithValue(ctx, reenterKey{}, true) }

// reenterKey is the key of Reenter's mark.
type reenterKey struct{}

// holdContext is the context of a hold.
type holdContext struct{ waits.Context }

// Value returns what the context carries. Reenter's mark ends here: it is for the call that it was passed to, and not
// for what runs under the hold which that call has returned.
func (c holdContext) Value(key any) any {
	if key == (reenterKey{}) {
		return false
	}
	return c.Context.Value(key)
}

// nestedIn returns a hold of the lock nested in one of the chain that begins with innermost: in the innermost that
// lasts. It returns nil if none does, and for a Semaphore. It returns ErrUpgradeConflict for a writer inside a hold for
// reading.
func nestedIn(ctx context.Context, innermost waits.Hold, of any, write bool) (*Hold, error) {
	if _, permits := of.(*Semaphore); permits {
		return nil, nil
	}
	for next := innermost; next != nil; {
		l, is := next.(*link)
		next, _ = next.Outside()
		if !is || l.grant.of != of {
			continue
		}
		at := (*Hold)(l)
		done, err := at.grant.hold(ctx)
		if err != nil {
			return nil, err
		}
		nested, reads := at.nested(innermost), at.grant.readers() != nil
		done()
		switch {
		case nested == nil:
		case write && reads:
			_ = nested.Unlock() // the outer one is held still, and says what there is to say
			return nil, fmt.Errorf("inside a hold for reading, which would wait for itself: %w", ErrUpgradeConflict)
		default:
			return nested, nil
		}
	}
	return nil, nil
}

// hold keeps the grant's kind from changing until done is called.
func (g *grant) hold(ctx context.Context) (done func(), err error) {
	if g.change == nil {
		return func() {}, nil
	}
	select {
	case g.change <- struct{}{}:
		return func() { <-g.change }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// nested returns a hold that shares h's grant and token, nil if h is over. Outer is the hold that it is acquired inside
// of.
func (h *Hold) nested(outer waits.Hold) *Hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over || h.grant.Stopped() != nil {
		return nil
	}
	h.grant.mu.Lock()
	h.grant.open++ // h itself is still counted
	h.grant.mu.Unlock()
	return &Hold{grant: h.grant, token: h.token, outer: outer}
}

// shared reports whether other holds share h's grant: nested in it, or it in them.
func (h *Hold) shared() bool {
	h.grant.mu.Lock()
	defer h.grant.mu.Unlock()
	return h.grant.open > 1
}
