package queue

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-a3166700/turnstile/zk"
)

// taker is a goroutine that wants items. It gets one answer, unless it leaves first.
type taker struct {
	want    int
	try     bool // does not want to wait for an item
	fetched bool // serve has looked since it came
	got     []*Item
	answer  chan error // one slot, so that answering never blocks
}

// Take waits for an item and returns it: the most urgent one that is ready, and of those the one that arrived first.
// If ctx ends first it returns ctx's cause, and no item is lost. If the session ends while it waits, it goes on under
// the next one.
//
// With one consumer that order is strict: Take returns no item while one is ready that comes before it, as far as the
// servers had told this process when Take was called. Several consumers each take their own part of the queue, of at
// most Config.Prefetch items.
func (q *Queue) Take(ctx context.Context) (*Item, error) {
	items, err := q.take(ctx, 1, false)
	if err != nil {
		return nil, q.failed("take", err)
	}
	return items[0], nil
}

// TryTake returns the next item if one is ready, and ErrEmpty at once if none is.
func (q *Queue) TryTake(ctx context.Context) (*Item, error) {
	items, err := q.take(ctx, 1, true)
	if err != nil {
		return nil, q.failed("take", err)
	}
	return items[0], nil
}

// TakeBatch waits for an item and returns it with those that are ready behind it, at most n, in their order. n is at
// most 1,000.
func (q *Queue) TakeBatch(ctx context.Context, n int) ([]*Item, error) {
	if n < 1 || n > maxPrefetch {
		return nil, q.failed("take", zk.BadArguments)
	}
	items, err := q.take(ctx, n, false)
	if err != nil {
		return nil, q.failed("take", err)
	}
	return items, nil
}

func (q *Queue) take(ctx context.Context, want int, try bool) ([]*Item, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	items, err := q.await(ctx, want, try)
	if hook := q.cfg.Hooks.Claimed; hook != nil {
		for _, item := range items {
			hook(ctx, item)
		}
	}
	return items, err
}

func (q *Queue) await(ctx context.Context, want int, try bool) ([]*Item, error) {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return nil, ErrClosed
	}
	if co := q.consumer; co != nil && len(q.takers) == 0 && want == 1 {
		if item := co.next(); item != nil {
			q.mu.Unlock()
			return []*Item{item}, nil
		}
	}
	t := &taker{want: want, try: try, answer: make(chan error, 1)}
	q.takers = append(q.takers, t)
	if q.serving {
		q.wake()
	} else {
		q.serving = true
		q.wg.Go(q.serve)
	}
	q.mu.Unlock()
	select {
	case err := <-t.answer:
		return t.got, err
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.takers, t)
	if i < 0 { // the answer was quicker
		return t.got, <-t.answer
	}
	q.takers = slices.Delete(q.takers, i, i+1)
	if len(q.takers) == 0 && q.giveUp != nil {
		q.giveUp()
	}
	if t.dropLost(); len(t.got) > 0 {
		return t.got, nil
	}
	return nil, context.Cause(ctx)
}

// dropLost drops the items whose claims were lost while the taker waited for more. The caller holds the queue's
// mutex.
func (t *taker) dropLost() {
	t.got = slices.DeleteFunc(t.got, func(it *Item) bool { return it.co.err() != nil })
}

// demand returns how many items takers want. The caller holds the queue's mutex.
func (q *Queue) demand() int {
	n := 0
	for _, t := range q.takers {
		n += t.want - len(t.got)
	}
	return n
}

// wake makes serve look at its takers again.
func (q *Queue) wake() {
	select {
	case q.wakeup <- struct{}{}:
	default:
	}
}

// serve gets items for the takers, for as long as there are any.
func (q *Queue) serve() {
	for {
		ctx, cancel := context.WithCancel(q.ctx)
		q.mu.Lock()
		q.more = q.more && !q.closed // a queue that is closed claims nothing ahead
		if len(q.takers) == 0 && !q.more && q.rested() {
			q.mu.Unlock()
			cancel()
			return
		}
		q.giveUp = cancel
		q.mu.Unlock()
		err := q.step(ctx)
		given := ctx.Err() != nil
		cancel()
		switch {
		case err == nil:
		case q.ctx.Err() != nil:
			q.fail(ErrClosed)
		case given, q.passes(err):
			// Take another step, under the next session if this one has ended. A step first asks for the session,
			// which tells when there is none.
		default:
			q.fail(err)
		}
	}
}

// passes reports whether it is worth trying again after err, under the next session if this one has ended.
func (q *Queue) passes(err error) bool {
	for _, passing := range []error{errAgain, zk.ErrConnectionLost, ErrClaimLost, zk.ErrExpired, zk.ErrLost} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return q.missing(err)
}

// leaveLost gives up the place in the line of waiting consumers of a consumer that has ended: its session may live
// on.
func (q *Queue) leaveLost() {
	if co := q.served; co != nil && co.ctx.Err() != nil {
		co.waiter.leave()
		q.served = nil
	}
}

// rested removes what only takers need, and ends serve unless a taker has come meanwhile. The caller holds the
// queue's mutex.
func (q *Queue) rested() bool {
	q.giveUp = nil
	co := q.consumer
	q.mu.Unlock()
	q.leaveLost()
	if co != nil {
		co.waiter.standDown()
	}
	q.mu.Lock()
	q.serving = len(q.takers) > 0 || q.more
	return !q.serving
}

// errAgain says that another client was quicker.
var errAgain = errors.New("queue: another client was quicker")

// fail answers all takers.
func (q *Queue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, t := range q.takers {
		if t.dropLost(); len(t.got) > 0 {
			t.answer <- nil
		} else {
			t.answer <- err
		}
	}
	q.takers = nil
}

// step does the next thing for the takers: it looks for items, delivers them, or waits for some.
func (q *Queue) step(ctx context.Context) error {
	q.leaveLost()
	co, err := q.openConsumer(ctx)
	if err != nil {
		return err
	}
	q.served = co
	q.mu.Lock()
	mustFetch, more := co.mustFetch(), q.more
	q.more = false
	for _, t := range q.takers {
		t.fetched = t.fetched || mustFetch
	}
	q.mu.Unlock()
	found := false
	if mustFetch || more {
		if err := co.beginClaiming(ctx); err != nil {
			return err
		}
		found, err = co.fetcher.fetch(ctx, !mustFetch)
		co.endClaiming()
		if err != nil {
			return err
		}
	}
	q.mu.Lock()
	co.handOut()
	if mustFetch && !found && len(co.leases) == 0 {
		q.nothingThere()
		waiting := len(q.takers) > 0
		q.mu.Unlock()
		if waiting {
			return co.waiter.wait(ctx)
		}
		return nil
	}
	unmarked := len(q.takers) > 0 && len(co.leases) > 0 && !co.mustFetch()
	q.mu.Unlock()
	if found {
		co.waiter.leave()
	}
	if unmarked {
		return co.mark(ctx)
	}
	return nil
}

// handOut serves the takers, first come first served, as far as items may be delivered. The caller holds the queue's
// mutex.
func (co *consumer) handOut() {
	q := co.q
	for len(q.takers) > 0 {
		item := co.next()
		if item == nil {
			return
		}
		t := q.takers[0]
		t.dropLost()
		if t.got = append(t.got, item); len(t.got) == t.want {
			q.takers = q.takers[1:]
			t.answer <- nil
		}
	}
}

// nothingThere answers the takers that do not want to wait. The caller holds the queue's mutex.
func (q *Queue) nothingThere() {
	q.takers = slices.DeleteFunc(q.takers, func(t *taker) bool {
		t.dropLost()
		switch {
		case len(t.got) > 0:
			t.answer <- nil
		case t.try && t.fetched:
			t.answer <- ErrEmpty
		default:
			return false
		}
		return true
	})
}
