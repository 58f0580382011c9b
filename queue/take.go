package queue

// Taking items: the callers, and the goroutine that serves them.

import (
	"context"
	"errors"
	"fmt"
	"sync"
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
	wg       sync.WaitGroup // goroutines in the background
	wakeup   chan struct{}  // one slot: serve is to look at its takers
	served   *consumer      // the consumer of serve's last step; serve's alone

	// mu guards what follows. It is never held while waiting. A consumer's claims have a mutex of their own, which is
	// taken after this one.
	mu       sync.Mutex
	consumer *consumer
	// abandoning is closed when the claims of a consumer whose session was uncertain are free; nil if there was none.
	abandoning <-chan struct{}
	takers     takers
	serving    bool
	more       bool               // serve is to claim ahead
	giveUp     context.CancelFunc // ends the current step of serve
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
	d.mu.Lock()
	if d.ctx.Err() != nil {
		d.mu.Unlock()
		return nil, ErrClosed
	}
	if co := d.consumer; co != nil && len(d.takers) == 0 && want == 1 {
		if item := co.next(d.clock.now()); item != nil {
			d.mu.Unlock()
			return []*Item{item}, nil
		}
	}
	t := &taker{want: want, try: try, answer: make(chan error, 1)}
	d.takers = append(d.takers, t)
	if d.serving {
		d.wake()
	} else {
		d.serving = true
		d.wg.Go(d.serve)
	}
	d.mu.Unlock()
	select {
	case err := <-t.answer:
		return t.got, err
	case <-ctx.Done():
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.takers.remove(t) { // the answer was quicker
		return t.got, <-t.answer
	}
	if len(d.takers) == 0 && d.giveUp != nil {
		d.giveUp()
	}
	if t.dropLost(); len(t.got) > 0 {
		return t.got, nil
	}
	return nil, context.Cause(ctx)
}

// wake makes serve look at its takers again.
func (d *dispatcher) wake() {
	select {
	case d.wakeup <- struct{}{}:
	default:
	}
}

// serve gets items for the takers, for as long as there are any.
func (d *dispatcher) serve() {
	for {
		ctx, cancel := context.WithCancel(d.ctx)
		d.mu.Lock()
		d.more = d.more && d.ctx.Err() == nil // a queue that is closed claims nothing ahead
		if len(d.takers) == 0 && !d.more && d.rested() {
			d.mu.Unlock()
			cancel()
			return
		}
		d.giveUp = cancel
		d.mu.Unlock()
		err := d.step(ctx)
		if zk.Temporary(err) && d.served != nil {
			_ = attempt.Again(ctx, d.served.sess, err) // the next step tells what it would
		}
		given := ctx.Err() != nil
		cancel()
		switch {
		case err == nil:
		case d.ctx.Err() != nil:
			d.fail(ErrClosed)
		case given, d.passes(err):
			// Take another step, under the next session if this one has ended. A step first asks for the session,
			// which tells when there is none.
		default:
			d.fail(err)
		}
	}
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

// rested removes what only takers need, and ends serve unless a taker has come meanwhile. The caller holds the
// dispatcher's mutex.
func (d *dispatcher) rested() bool {
	d.giveUp = nil
	co := d.consumer
	d.mu.Unlock()
	d.leaveLost()
	if co != nil {
		co.waiter.standDown()
	}
	d.mu.Lock()
	d.serving = len(d.takers) > 0 || d.more
	return !d.serving
}

// errAgain says that another client was quicker.
var errAgain = errors.New("another client was quicker")

// fail answers all takers.
func (d *dispatcher) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.takers.fail(err)
}

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
	d.mu.Lock()
	mustFetch, more := co.claims.MustFetch(d.clock.now()), d.more && co.fetcher.rate == nil
	d.more = false
	if mustFetch {
		d.takers.noteFetch()
	}
	d.mu.Unlock()
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
		found, err = co.fetcher.fetch(ctx, !mustFetch)
		co.returner.end()
		if err != nil {
			return err
		}
	}
	d.mu.Lock()
	now := d.clock.now() // once: it may go back, and what is due for one look must be due for the other
	co.handOut(now)
	// Items are taken out of the claims under d.mu alone, so what handOut has left is still there.
	if mustFetch && !found && co.claims.Empty() {
		if d.takers.trying() && !co.claims.Knows(claims.Gate) {
			d.mu.Unlock()
			return nil // fetch has synced for them: there is a pause since, or none any more
		}
		d.takers.nothingThere(ErrEmpty)
		waiting := len(d.takers) > 0
		d.mu.Unlock()
		if waiting {
			return co.waiter.wait(ctx)
		}
		return nil
	}
	unmarked := len(d.takers) > 0 && !co.claims.MustFetch(now)
	d.mu.Unlock()
	if found {
		co.waiter.leave()
	}
	if unmarked {
		return co.marks.write(ctx)
	}
	return nil
}

// handOut serves the takers, first come first served, as far as items may be delivered. Now is the servers' time. The
// caller holds the dispatcher's mutex.
func (co *consumer) handOut(now int64) {
	d := co.d
	for len(d.takers) > 0 {
		item := co.next(now)
		if item == nil {
			return
		}
		d.takers.give(item)
	}
}

// claimAhead lets serve claim the next items when a fast consumer has few left, so that its takers need not wait for
// them. The caller holds the dispatcher's mutex.
func (d *dispatcher) claimAhead() {
	if d.ctx.Err() != nil {
		return
	}
	d.more = true
	if !d.serving {
		d.serving = true
		d.wg.Go(d.serve)
	}
}

// background runs f unless the queue is closed, and Close waits for it.
func (d *dispatcher) background(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx.Err() == nil {
		d.wg.Go(f)
	}
}

func (d *dispatcher) current() *consumer {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.consumer
}

// stopAll ends what goes on in the queue, and reports whether it is the first to do so. It holds the mutex so that
// background starts nothing that close does not wait for.
func (d *dispatcher) stopAll() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx.Err() != nil {
		return false
	}
	d.stop(ErrClosed)
	return true
}

// close waits for the goroutines in the background, and gives back what was claimed and not delivered.
func (d *dispatcher) close(ctx context.Context) error {
	err := through(ctx, d.wg.Wait) // then nothing is claimed any more
	if co := d.current(); co != nil {
		err = errors.Join(err, co.close(ctx))
	}
	return err
}
