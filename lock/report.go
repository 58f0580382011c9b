package lock

// Calling the hooks.

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/internal/waits"
)

// report tells the hooks of one acquisition, from the call of Lock to the end of the hold. It is nil if no hook wants
// to know, and its methods then do nothing.
type report struct {
	hooks *Hooks
	event Event // Lock's goroutine alone writes it before the hold is acquired; mu guards Took and Err after that

	inside *waits.Wait // the wait, if it is inside of a hold; else nil

	losses         *losses // of the ownership; nil if no hook wants to know
	previous, next *report // in losses, whose mu guards them

	mu   sync.Mutex // guards the fields below
	over bool       // given back or lost
	lost bool
	told bool
}

// reports counts the acquisitions of this process that hooks are told of.
var reports atomic.Uint64 //nolint:gochecknoglobals // makes numbers that are unique in the process

// report begins the report of an acquisition.
func (b *base) report(kind Kind) *report {
	k := &b.cfg.Hooks
	if k.Enqueued == nil && k.Acquired == nil && k.Failed == nil && k.Released == nil && k.Lost == nil {
		return nil
	}
	return b.newReport(kind)
}

func (b *base) newReport(kind Kind) *report {
	return &report{hooks: &b.cfg.Hooks, event: Event{ID: reports.Add(1), Path: b.name, Kind: kind, Since: time.Now()}}
}

// enqueued reports that the acquisition has to wait, once. Took is what the event says: a look at the clock is a good
// part of what passing a lock on in memory costs, so the caller only looks if time has passed.
func (r *report) enqueued(ctx context.Context, took time.Duration) {
	if r == nil || r.event.Queued {
		return
	}
	r.event.Queued = true
	if r.hooks.Enqueued != nil {
		e := r.event
		e.Took = took
		r.hooks.Enqueued(ctx, e)
	}
}

// took returns how long ago Lock was called.
func (r *report) took() time.Duration {
	if r == nil {
		return 0
	}
	return time.Since(r.event.Since)
}

// standing reports that the acquisition has to wait, with own in line; nil if it waits for the node of another.
func (r *report) standing(ctx context.Context, own *line.Own) {
	r.standsIn(func() *line.Own { return own })
	r.enqueued(ctx, r.took())
}

// standsIn says how to find out where the acquisition stands.
func (r *report) standsIn(where func() *line.Own) {
	if r != nil && r.inside != nil {
		r.inside.StandsIn(where)
	}
}

// wants says how many permits the acquisition wants.
func (r *report) wants(permits int) {
	if r != nil && r.inside != nil {
		r.inside.Permits = permits
	}
}

// failed reports that the acquisition has failed. It returns err.
func (r *report) failed(ctx context.Context, err error) error {
	if r != nil && r.hooks.Failed != nil {
		e := r.event
		e.Took, e.Err = time.Since(r.event.Since), err
		r.hooks.Failed(ctx, e)
	}
	return err
}

// acquired reports that the lock was acquired, and arranges that the end of the hold is reported. No other goroutine
// knows h yet.
func (r *report) acquired(ctx context.Context, h *Hold) {
	if r == nil {
		return
	}
	took := time.Since(r.event.Since)
	r.event.Node, r.event.Token, r.event.How = h.Path(), h.token, h.how
	if r.hooks.Acquired != nil {
		e := r.event
		e.Took = took
		if e.Queued && e.How == FromServer {
			if at := h.grant.Own().FirstAt(); !at.IsZero() {
				e.First = max(0, at.Sub(e.Since))
			}
		}
		r.hooks.Acquired(ctx, e)
	}
	r.event.Since = r.event.Since.Add(took)
	if r.hooks.Released != nil || r.hooks.Lost != nil {
		h.grant.report = r
	}
	if r.hooks.Lost == nil {
		return
	}
	if g, many := h.grant.back.(*group); many {
		r.losses = &g.losses
	} else {
		r.losses = &losses{alone: true}
	}
	r.losses.add(r, h.grant.Ownership) //nolint:contextcheck // lasts as long as the ownership
}

// end notes that the hold has ended, unless it had before, and reports whether that is so. Lost is why it was lost,
// nil if it was given back, and stopped why its context had ended before that, if it had, and since when.
func (r *report) end(lost, stopped error, since time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return false
	}
	r.over, r.lost = true, lost != nil
	r.event.Took, r.event.Err = time.Since(r.event.Since), lost
	if lost == nil && (errors.Is(stopped, ErrRevoked) || errors.Is(stopped, ErrSuspended)) {
		r.event.Err, r.event.Stopping = stopped, since
	}
	return true
}

// released notes that the lock is given back, and why it was lost before, if it was. It leaves the call of the hook to
// tell, because the caller holds mutexes.
func (g *grant) released(lost error) {
	r := g.report
	if r == nil {
		return
	}
	var stopped error
	var since time.Duration
	if g.Use().Err() != nil {
		stopped, since = g.Stopped(), g.StoppedFor()
	}
	r.end(lost, stopped, since)
	if r.losses != nil {
		r.losses.remove(r)
	}
}

// tell calls the hook for the end of the hold, if the hold has ended and the hook was not called yet.
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
	e, lost := r.event, r.lost
	r.mu.Unlock()
	switch {
	case !lost && r.hooks.Released != nil:
		r.hooks.Released(e)
	case lost && r.hooks.Lost != nil:
		r.hooks.Lost(e)
	}
}
