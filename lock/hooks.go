package lock

// Hooks.

import (
	"context"
	"sync"
	"time"
)

// Hooks are called about a lock's acquisitions, for logs and metrics. Nil fields cost nothing. Hooks may use the
// lock, and must not block for long: Lock and Unlock wait for them.
//
// Each successful acquisition calls Acquired once, and later either Released or Lost once. Nested holds (Reenter) are
// part of the outermost hold and call nothing.
type Hooks struct {
	// Enqueued is called by the goroutine that calls Lock, at most once and before Acquired, if it has to wait for
	// another contender.
	Enqueued func(ctx context.Context, e Event)
	// Acquired is called by the goroutine that calls Lock or TryLock, before that returns the hold.
	Acquired func(ctx context.Context, e Event)
	// Released is called by the goroutine that calls Unlock, after the lock was released. The next holder's Acquired
	// may come first.
	Released func(e Event)
	// Lost is called when a hold has ended before it was unlocked, by a goroutine of its own or by the one that calls
	// Unlock, whichever is first.
	Lost func(e Event)
	// Stranger is called when a contender stands at the path, in Event.Node, whose program does not look for ours, as
	// far as its node's name tells: it may hold the lock at the same time. It is called once for each that this lock
	// sees when it lists its line, by a goroutine that calls Lock or TryLock. Another Layout may help; Inspect shows
	// who excludes whom.
	Stranger func(e Event)
}

// Event is the argument of the Hooks.
type Event struct {
	Path  string        // of the lock; a Set's paths with " and " between them
	Node  string        // the hold's node; "" for Enqueued; the other's for Stranger
	Token Token         // the hold's; 0 for Enqueued
	Took  time.Duration // Acquired: since Lock was called; Released and Lost: since the lock was acquired
	Err   error         // Lost: the cause of the hold's context
}

// enqueued reports that an acquisition of the lock at path has to wait.
func (k *Hooks) enqueued(ctx context.Context, path string) {
	if k.Enqueued != nil {
		k.Enqueued(ctx, Event{Path: path})
	}
}

// enqueuedOnce returns a function that calls enqueued the first time that it is called.
func (k *Hooks) enqueuedOnce(ctx context.Context, path string) func() {
	told := false
	return func() {
		if !told {
			told = true
			k.enqueued(ctx, path)
		}
	}
}

// begin returns the time if a hook reports how long something takes.
func (k *Hooks) begin() time.Time {
	if k.Acquired == nil && k.Released == nil && k.Lost == nil {
		return time.Time{}
	}
	return time.Now()
}

// acquired reports that the lock at path was acquired, and arranges that the end of the hold is reported. No other
// goroutine knows h yet.
func (k *Hooks) acquired(ctx context.Context, path string, h *Hold, begin time.Time) {
	if begin.IsZero() {
		return
	}
	now := time.Now()
	e := Event{Path: path, Node: h.Path(), Token: h.Token(), Took: now.Sub(begin)}
	if k.Acquired != nil {
		k.Acquired(ctx, e)
	}
	if k.Released != nil || k.Lost != nil {
		k.follow(h, e, now)
	}
}

// follow arranges that the end of the hold is reported.
func (k *Hooks) follow(h *Hold, e Event, since time.Time) {
	r := &report{hooks: k, event: e, since: since}
	h.grant.report = r
	if k.Lost != nil {
		ctx := h.grant.Ownership.Context()
		r.stop = context.AfterFunc(ctx, func() { r.lost(context.Cause(ctx)) })
	}
}

// report reports the end of a hold, once.
type report struct {
	hooks *Hooks
	event Event
	since time.Time
	stop  func() bool // ends the wait for the ownership's end; nil if no hook wants to know

	mu    sync.Mutex // guards the fields below
	over  bool       // given back or lost
	told  bool
	cause error // of the loss
}

// released notes that the lock is given back, and the cause if it was lost before. It leaves the call of the hook to
// tell, because the caller holds mutexes. It does nothing for holds without hooks.
func (r *report) released(cause error) {
	if r == nil {
		return
	}
	r.mu.Lock()
	if !r.over {
		r.over, r.cause = true, cause
		r.event.Took = time.Since(r.since)
	}
	r.mu.Unlock()
	if r.stop != nil {
		r.stop()
	}
}

// lost notes that the hold has ended without an unlock, and calls the hook.
func (r *report) lost(cause error) {
	r.mu.Lock()
	ended := r.over
	if !ended {
		r.over, r.cause = true, cause
		r.event.Took = time.Since(r.since)
	}
	r.mu.Unlock()
	if !ended {
		r.tell()
	}
}

// tell calls the hook for the end of the hold, if the hold has ended and the hook was not called yet. It does nothing
// for holds without hooks.
func (r *report) tell() {
	if r == nil {
		return
	}
	r.mu.Lock()
	if !r.over || r.told {
		r.mu.Unlock()
		return
	}
	r.told = true
	e, cause := r.event, r.cause
	r.mu.Unlock()
	switch {
	case cause == nil && r.hooks.Released != nil:
		r.hooks.Released(e)
	case cause != nil && r.hooks.Lost != nil:
		e.Err = cause
		r.hooks.Lost(e)
	}
}
