package queue

// Taking items: the callers, and the goroutine that serves them.

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/queue/internal/claims"
	"github.com/seed-a3166700/turnstile/zk"
)

// dispatcher is the part of a Queue that takes items: it has the goroutines that want some, and the consumer that gets
// them. One goroutine, serve, works for all of them while there are any.
type dispatcher struct {
	*base
	sweeper  *sweeper
	receipts *attempt.Pool
	takers   *takers
	served   *consumer                // the consumer of serve's last step; serve's alone
	consumer atomic.Pointer[consumer] // the last that was opened, which may have ended; nil if there was none
}

// Take waits for an item and returns it: the most urgent one that is ready, and of those the one that arrived first.
// If ctx ends first it returns ctx's cause, and no item is lost. If the session ends while it waits, it goes on under
// the next one.
//
// With one consumer that order is strict: Take returns no item while one is ready that comes before it, as far as the
// servers had told this process when Take was called. Several consumers each take their own part of the queue, of at
// most Config.Prefetch items.
func (q *Queue) Take(ctx context.Context) (*Item, error) {
	return one(q.take(ctx, 1, false))
}

// TryTake returns the next item if one is ready, and ErrEmpty at once if none is, which is also
// ErrPaused or ErrLimited if that is why.
func (q *Queue) TryTake(ctx context.Context) (*Item, error) {
	return one(q.take(ctx, 1, true))
}

// one returns the item of a call that wanted one.
func one(items []*Item, err error) (*Item, error) {
	if err != nil {
		return nil, err
	}
	return items[0], nil
}

// TakeBatch waits for an item and returns it with those that are ready behind it, at most n, in their order. n is at
// most 1,000.
func (q *Queue) TakeBatch(ctx context.Context, n int) ([]*Item, error) {
	if n < 1 || n > maxPrefetch {
		return nil, q.failed("take", fmt.Errorf("%w: %d items, want 1 to %d", zk.BadArguments, n, maxPrefetch))
	}
	return q.take(ctx, n, false)
}

// take calls the hook for calls that take items.
func (q *Queue) take(ctx context.Context, want int, try bool) ([]*Item, error) {
	hook := q.cfg.Hooks.Taken
	var since time.Time
	if hook != nil {
		since = time.Now()
	}
	items, err := q.dispatcher.take(ctx, want, try)
	if err != nil {
		items, err = nil, q.failed("take", err)
	}
	if hook != nil {
		hook(ctx, Taken{Queue: q.layout.root, Items: items, Took: time.Since(since), Err: err})
	}
	return items, err
}

func (d *dispatcher) take(ctx context.Context, want int, try bool) ([]*Item, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	items, err := d.await(ctx, want, try)
	d.tellClaimed(ctx, items)
	return items, err
}

func (d *dispatcher) await(ctx context.Context, want int, try bool) ([]*Item, error) {
	if co := d.current(); co != nil && want == 1 {
		item, start := d.takers.take(co.next)
		if start {
			d.background(d.serve)
		}
		if item != nil {
			return []*Item{item}, nil
		}
	}
	t := &taker{want: want, try: try, answer: make(chan error, 1)}
	start, err := d.takers.add(t)
	if err != nil {
		return nil, err
	}
	if start {
		d.background(d.serve) // or the queue is being closed, which answers
	}
	select {
	case err := <-t.answer:
		return t.got, err
	case <-ctx.Done():
	}
	got, left := d.takers.leave(t)
	switch {
	case !left: // the answer was quicker
		return t.got, <-t.answer
	case len(got) > 0:
		return got, nil
	}
	return nil, context.Cause(ctx)
}

// serve gets items for the takers, as long as there are any.
func (d *dispatcher) serve() {
	for d.ctx.Err() == nil {
		ctx, cancel := context.WithCancel(d.ctx)
		if !d.takers.begin(cancel) {
			cancel()
			if d.standDown(); d.takers.rest() {
				return
			}
			continue
		}
		err := d.step(ctx)
		if zk.Temporary(err) && d.served != nil {
			_ = attempt.Again(ctx, d.served.sess, err) // the next step tells what it would
		}
		given := ctx.Err() != nil
		cancel()
		if err != nil && !given && !d.passes(err) {
			d.takers.fail(err)
		}
		// After any other error it takes another step, under the next session if this one has ended. A step first asks
		// for the session, which tells when there is none.
	}
	d.standDown()
}

// passes reports whether it is worth trying again after err, under the next session if this one has ended.
func (d *dispatcher) passes(err error) bool {
	for _, passing := range []error{errAgain, ErrClaimLost, zk.ErrExpired, zk.ErrLost} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return zk.Temporary(err) || d.missing(err)
}

// leaveLost gives up the place in the line of waiting consumers of a consumer that has ended: its session may live
// on.
func (d *dispatcher) leaveLost() {
	if co := d.served; co != nil && co.ctx.Err() != nil {
		co.waiter.leave()
		d.served = nil
	}
}

// standDown removes what only takers need.
func (d *dispatcher) standDown() {
	d.leaveLost()
	if co := d.current(); co != nil && co.ctx.Err() == nil {
		co.waiter.standDown()
	}
}

// errAgain says that another client was quicker.
var errAgain = errors.New("another client was quicker")

// step does the next thing for the takers: it looks for items, delivers them, or waits for some.
func (d *dispatcher) step(ctx context.Context) error {
	d.leaveLost()
	co, err := d.openConsumer(ctx)
	if err != nil {
		return err
	}
	d.served = co
	if err := co.fetcher.lookAtGate(ctx); err != nil {
		return err
	}
	mustFetch, more := co.claims.MustFetch(d.clock.now()), d.takers.mustClaimAhead() && co.fetcher.rate == nil
	if mustFetch {
		d.takers.noteFetch()
	}
	if err := co.fetcher.shut(ctx, mustFetch); errors.Is(err, ErrEmpty) {
		return d.stayShut(ctx, co, err)
	} else if err != nil {
		return err
	}
	found := false
	if mustFetch || more {
		if err := co.returner.begin(ctx); err != nil {
			return err
		}
		found, err = co.fetch(ctx, !mustFetch)
		co.returner.end()
		if err != nil {
			return err
		}
	}
	now := d.clock.now() // once: it may go back, and what is due for one look must be due for the other
	empty, stale := mustFetch && !found, false
	waiting := d.takers.serve(func() (*Item, bool) { return co.nextAt(now) }, func(trying bool) error {
		empty = empty && co.claims.Empty()
		stale = empty && trying && !co.claims.Knows(claims.Gate)
		if !empty || stale {
			return nil
		}
		return ErrEmpty
	})
	switch {
	case stale: // fetch has synced for those that try: there is a pause since, or none any more
		return nil
	case empty && waiting > 0:
		return co.waiter.wait(ctx)
	case empty:
		return nil
	}
	if found {
		co.waiter.leave()
	}
	if waiting > 0 && !co.claims.MustFetch(now) {
		err := co.marks.write(ctx)
		co.handOut()
		return err
	}
	return nil
}

// current returns the last consumer that was opened, which may have ended; nil if there was none.
func (d *dispatcher) current() *consumer { return d.consumer.Load() }

// close answers the takers, waits for the goroutines in the background, and gives back what was claimed and not
// delivered. The queue is closed already.
func (d *dispatcher) close(ctx context.Context) error {
	d.takers.close(ErrClosed)
	err := through(ctx, d.wg.Wait) // then nothing is claimed any more
	if co := d.current(); co != nil {
		err = errors.Join(err, co.close(ctx))
	}
	return err
}
