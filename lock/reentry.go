package lock

import (
	"context"
	"sync/atomic"

	"github.com/seed-a3166700/turnstile/internal/line"
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

// inside says to which lock a hold belongs, and inside which other hold it was acquired.
type inside struct {
	of    *Mutex
	outer *Hold
	nest  *nest // shared with the holds that are nested in it; nil if there are none
}

// nest counts the holds that are one for everybody else.
type nest struct {
	open    atomic.Int32 // not unlocked yet
	release func(*tenure) *line.Removal
}

// leave is what each of the holds calls when it is unlocked, once. The last of them gives the lock up.
func (n *nest) leave(t *tenure) *line.Removal {
	if n.open.Add(-1) > 0 {
		return nil
	}
	return n.release(t)
}

// holdOf returns the innermost hold that ctx descends from, nil if there is none.
func holdOf(ctx context.Context) *Hold {
	h, _ := ctx.Value(holdKey{}).(*Hold)
	return h
}

// again returns a hold of m nested in h or in a hold outside of h, nil if none of them is a hold of m that lasts.
func (h *Hold) again(m *Mutex, outer *Hold) *Hold {
	for ; h != nil; h = h.in.outer {
		if h.in.of != m {
			continue
		}
		if nested := h.nested(outer); nested != nil {
			return nested
		}
	}
	return nil
}

func (h *Hold) done() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.over
}

// nested returns a hold that shares h's tenure and token, nil if h is over.
func (h *Hold) nested(outer *Hold) *Hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over || h.tenure.stopped() != nil {
		return nil
	}
	if h.in.nest == nil {
		h.in.nest = &nest{release: h.release}
		h.in.nest.open.Store(1)
		h.release = h.in.nest.leave
	}
	h.in.nest.open.Add(1) // h itself is still counted
	return &Hold{
		tenure: h.tenure, token: h.token, release: h.release, report: h.report,
		in: inside{of: h.in.of, outer: outer, nest: h.in.nest},
	}
}

// acquire returns a nested hold to who has the lock already, and takes it otherwise.
func (m *Mutex) acquire(ctx context.Context, take func(*Mutex, context.Context) (*Hold, error)) (*Hold, error) {
	if ctx.Err() != nil {
		return nil, m.failed(context.Cause(ctx))
	}
	outer := holdOf(ctx)
	if h := outer.again(m, outer); h != nil {
		return h, nil
	}
	for outer != nil && outer.done() { // or a chain of holds, each acquired inside the one before, would keep them all
		outer = outer.in.outer
	}
	begin := m.cfg.Hooks.begin()
	h, err := take(m, ctx)
	if err != nil {
		return nil, err
	}
	h.in = inside{of: m, outer: outer}
	m.cfg.Hooks.acquired(ctx, m.path, h, begin)
	return h, nil
}
