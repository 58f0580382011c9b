package lock

import (
	"context"
	"fmt"
)

// holdContext carries its hold, so that who locks with it, or with a context that descends from it, is known to be inside.
type holdContext struct {
	context.Context //nolint:containedctx // it is one
	hold            *Hold
}

// holdKey is the key under which a context carries the innermost hold that it descends from.
type holdKey struct{}

// Value returns the hold for holdKey, and what the context carries otherwise.
func (c holdContext) Value(key any) any {
	if key == (holdKey{}) {
		return c.hold
	}
	return c.Context.Value(key)
}

// holdOf returns the innermost hold that ctx descends from, nil if there is none.
func holdOf(ctx context.Context) *Hold {
	h, _ := ctx.Value(holdKey{}).(*Hold)
	return h
}

// nestedIn returns a hold of the lock nested in h or in a hold outside of h, whichever is the innermost that lasts. It
// returns nil if none is, and if of is nil. It returns ErrUpgradeConflict for a writer inside a hold for reading.
func (h *Hold) nestedIn(ctx context.Context, of any, write bool) (*Hold, error) {
	for at := h; at != nil; at = at.outer {
		if of == nil || at.grant.of != of {
			continue
		}
		done, err := at.grant.hold(ctx)
		if err != nil {
			return nil, err
		}
		nested, reads := at.nested(h), at.grant.readers() != nil
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

// nested returns a hold that shares h's grant and token, nil if h is over. Outer is the hold that it is acquired inside of.
func (h *Hold) nested(outer *Hold) *Hold {
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

// lasting returns h or the innermost hold outside of it that was not unlocked, nil if there is none: a chain of holds, each
// acquired inside the one before, would keep them all.
func (h *Hold) lasting() *Hold {
	for h != nil && h.done() {
		h = h.outer
	}
	return h
}

func (h *Hold) done() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.over
}
