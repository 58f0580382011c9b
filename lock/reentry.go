package lock

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// Reenter returns a context for one call of Lock, TryLock, RLock, TryRLock or Do, of a caller that may have the lock
// already. If ctx descends from the context of a hold of that lock, and the hold lasts, the call returns at once with
// a hold that is nested in it: the same token, the same node. Other clients get the lock when all of them are
// unlocked, in any order. Otherwise the call acquires the lock as usual.
//
// Holds that are nested in one do not exclude each other. Without Reenter, Lock waits for every hold there is, also for
// those that ctx descends from: so goroutines that are started under a hold exclude each other.
//
// A Semaphore has no nested holds, and a hold of one lock is never nested in that of another, even if both have the
// same path.
func Reenter(ctx context.Context) context.Context { return context.WithValue(ctx, reenterKey{}, true) }

// reenterKey is the key of Reenter's mark.
type reenterKey struct{}

// holdContext carries its hold, so that each acquisition knows inside which holds it goes on.
type holdContext struct {
	context.Context //nolint:containedctx // it is one
	hold            *Hold
}

// holdKey is the key under which a context carries the innermost hold that it descends from.
type holdKey struct{}

// Value returns the hold for holdKey, and what the context carries otherwise. Reenter's mark ends here: it is for the
// call that it was passed to, and not for what runs under the hold which that call has returned.
func (c holdContext) Value(key any) any {
	switch key {
	case holdKey{}:
		return c.hold
	case reenterKey{}:
		return false
	}
	return c.Context.Value(key)
}

// inside says to which lock a hold belongs, and inside which other hold it was acquired.
type inside struct {
	of    any // *Mutex, *RWMutex, *Set, *Simple or *Semaphore
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

// reenters reports whether an acquisition inside h may return a nested hold.
func (h *Hold) reenters(ctx context.Context) bool { return h != nil && ctx.Value(reenterKey{}) == true }

// again returns a hold of the same lock nested in h or in a hold outside of h, nil if none of them is a hold of that
// lock that lasts.
func (h *Hold) again(of any, outer *Hold) *Hold {
	for ; h != nil; h = h.in.outer {
		if h.in.of != of {
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

// shared reports whether other holds share h's lock: nested in it, or it in them.
func (h *Hold) shared() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.in.nest != nil && h.in.nest.open.Load() > 1
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
		tenure: h.tenure, token: h.token, release: h.release, report: h.report, kind: h.kind,
		in: inside{of: h.in.of, outer: outer, nest: h.in.nest},
	}
}

// An acquisition is a call of Lock or TryLock that has not got a nested hold.
type acquisition struct {
	outer *Hold     // that it goes on inside of
	begin time.Time // zero if nobody wants to know
}

// begin returns a nested hold to a caller that re-enters, and otherwise an acquisition, for the caller to take the
// lock and end it. The lock is said as in inside.
func (c *Config) begin(ctx context.Context, of any) (acquisition, *Hold) {
	outer := holdOf(ctx)
	if outer.reenters(ctx) {
		if h := outer.again(of, outer); h != nil {
			return acquisition{}, h
		}
	}
	return acquisition{outer.lasting(), c.Hooks.begin()}, nil
}

// end makes h the hold that was acquired of the lock, which is at path, unless err says why there is none.
func (c *Config) end(ctx context.Context, of any, path string, a acquisition, h *Hold, err error) (*Hold, error) {
	if err != nil {
		return nil, err
	}
	h.in = inside{of: of, outer: a.outer}
	c.Hooks.acquired(ctx, path, h, a.begin)
	return h, nil
}

// takeAlone takes a lock that has one holder, as try does it, or nests in a hold of it that the caller re-enters. The
// lock is said as in inside, and name is what errors and hooks call it.
func takeAlone[G line.Ground](
	ctx context.Context, c *Config, client *zk.Client, of any, name string, try func(*zk.Session) (G, error),
) (*Hold, error) {
	if ctx.Err() != nil {
		return nil, failedAt(client, name, context.Cause(ctx))
	}
	a, nested := c.begin(ctx, of)
	if nested != nil {
		return nested, nil
	}
	ground, err := attempt(ctx, c.Retry, client, try)
	h, err := c.holdOn(client, name, ground, err)
	return c.end(ctx, of, name, a, h, err)
}

// begin and end of a Mutex stand by themselves because the frame of Lock is on the stack of everybody who waits (see
// cohort.lock): inlined they would double it.
//
//go:noinline
func (m *Mutex) begin(ctx context.Context) (acquisition, *Hold, error) {
	if ctx.Err() != nil {
		return acquisition{}, nil, m.failed(context.Cause(ctx))
	}
	a, nested := m.cfg.begin(ctx, m)
	return a, nested, nil
}

//go:noinline
func (m *Mutex) end(ctx context.Context, a acquisition, h *Hold, err error) (*Hold, error) {
	return m.cfg.end(ctx, m, m.path, a, h, err)
}

// lasting returns h or the innermost hold outside of it that was not unlocked, nil if there is none: a chain of
// holds, each acquired inside the one before, would keep them all.
func (h *Hold) lasting() *Hold {
	for h != nil && h.done() {
		h = h.in.outer
	}
	return h
}

// again returns a hold nested in the innermost hold of m that lasts, of outer and those outside of it, nil if there
// is none. It returns ErrUpgradeConflict for a writer inside a hold for reading.
func (m *RWMutex) again(ctx context.Context, outer *Hold, write bool) (*Hold, error) {
	for h := outer; h != nil; h = h.in.outer {
		if h.in.of != m {
			continue
		}
		select { // it may be changing its kind
		case h.kind.busy <- struct{}{}:
		case <-ctx.Done():
			return nil, m.failed(context.Cause(ctx))
		}
		reads := h.kind.group != nil
		nested := h.nested(outer)
		<-h.kind.busy
		if nested == nil {
			continue
		}
		if write && reads {
			_ = nested.Unlock() // the outer one is held still, and says what there is to say
			err := fmt.Errorf("inside a hold for reading, which would wait for itself: %w", ErrUpgradeConflict)
			return nil, m.failed(err)
		}
		return nested, nil
	}
	return nil, nil
}
