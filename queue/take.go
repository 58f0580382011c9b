package queue

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-a3166700/turnstile/zk"
)

// taker is a goroutine that wants items. It gets one answer, unless it leaves first.
type taker struct {
	want   int
	try    bool // wants no item that is not there yet
	looked bool // somebody has looked since it came
	got    []*Item
	answer chan error // one slot, so that answering never blocks
}

// Take waits for an item and returns it: the most urgent one that is ready, and of those the one that has arrived first.
//
// With one consumer that order is strict: no item is returned while one is ready that comes before it, as far as the servers had told this
// process when Take was called. Several consumers each take their own part of the queue, of at most Config.Prefetch items.
//
// If ctx ends first it returns ctx's cause, and no item is lost. If the session ends while it waits, it goes on under the next one.
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

// TakeBatch waits for an item and returns it with those that are ready behind it, n at most, in their order. n is at most 1,000.
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
	if d := q.desk; d != nil && len(q.takers) == 0 && want == 1 {
		if item := d.pop(); item != nil {
			q.mu.Unlock()
			return []*Item{item}, nil
		}
	}
	t := &taker{want: want, try: try, answer: make(chan error, 1)}
	q.takers = append(q.takers, t)
	if q.serving {
		q.prod()
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
	if t.fresh(); len(t.got) > 0 {
		return t.got, nil
	}
	return nil, context.Cause(ctx)
}

// fresh drops the items whose claims were lost while the taker waited for more. The caller holds the queue's mutex.
func (t *taker) fresh() {
	t.got = slices.DeleteFunc(t.got, func(it *Item) bool { return it.d.err() != nil })
}

// demand returns how many items are wanted. The caller holds q.mu.
func (q *Queue) demand() int {
	n := 0
	for _, t := range q.takers {
		n += t.want - len(t.got)
	}
	return n
}

// prod makes serve look at its takers again.
func (q *Queue) prod() {
	select {
	case q.kick <- struct{}{}:
	default:
	}
}

// serve gets items for the takers, for as long as there are any.
func (q *Queue) serve() {
	for {
		ctx, cancel := context.WithCancel(q.ctx)
		q.mu.Lock()
		q.more = q.more && !q.closed // who closes the queue wants no more
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
			// Another step, under the next session if this one has ended. What a step asks first tells when there is none.
		default:
			q.fail(err)
		}
	}
}

// passes reports whether what a consumer failed with is worth another try, under the next session if this one has ended.
func (q *Queue) passes(err error) bool {
	for _, passing := range []error{errAgain, zk.ErrConnectionLost, ErrClaimLost, zk.ErrExpired, zk.ErrLost} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return q.missing(err)
}

// leaveLost gives up the place in the line of those who wait of a desk that has ended: its session may live on.
func (q *Queue) leaveLost() {
	if d := q.served; d != nil && d.ctx.Err() != nil {
		d.leave()
		q.served = nil
	}
}

// rested takes back what only takers need, and ends serve unless somebody has come meanwhile. The caller holds q.mu.
func (q *Queue) rested() bool {
	q.giveUp = nil
	d := q.desk
	q.mu.Unlock()
	q.leaveLost()
	if d != nil {
		d.relax()
	}
	q.mu.Lock()
	q.serving = len(q.takers) > 0 || q.more
	return !q.serving
}

// errAgain says that somebody else was quicker.
var errAgain = errors.New("queue: somebody else was quicker")

// fail answers everybody who waits.
func (q *Queue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, t := range q.takers {
		if t.fresh(); len(t.got) > 0 {
			t.answer <- nil
		} else {
			t.answer <- err
		}
	}
	q.takers = nil
}

// step does the next thing for those who wait: it looks for items, hands them out, or waits for some.
func (q *Queue) step(ctx context.Context) error {
	q.leaveLost()
	d, err := q.openDesk(ctx)
	if err != nil {
		return err
	}
	q.served = d
	q.mu.Lock()
	blind, more := d.blind(), q.more
	q.more = false
	for _, t := range q.takers {
		t.looked = t.looked || blind
	}
	q.mu.Unlock()
	found := false
	if blind || more {
		if err := d.holdStock(ctx); err != nil {
			return err
		}
		found, err = d.fetch(ctx, !blind)
		d.freeStock()
		if err != nil {
			return err
		}
	}
	q.mu.Lock()
	d.handOut()
	if blind && !found && len(d.windows) == 0 {
		q.nothingThere()
		waiting := len(q.takers) > 0
		q.mu.Unlock()
		if waiting {
			return d.wait(ctx)
		}
		return nil
	}
	unmarked := len(q.takers) > 0 && len(d.windows) > 0 && !d.blind()
	q.mu.Unlock()
	if found {
		d.leave()
	}
	if unmarked {
		return d.mark(ctx)
	}
	return nil
}

// handOut serves the takers, first come first served, as far as items may be handed out. The caller holds q.mu.
func (d *desk) handOut() {
	q := d.q
	for len(q.takers) > 0 {
		item := d.pop()
		if item == nil {
			return
		}
		t := q.takers[0]
		t.fresh()
		if t.got = append(t.got, item); len(t.got) == t.want {
			q.takers = q.takers[1:]
			t.answer <- nil
		}
	}
}

// nothingThere answers those who do not want to wait. The caller holds q.mu.
func (q *Queue) nothingThere() {
	q.takers = slices.DeleteFunc(q.takers, func(t *taker) bool {
		t.fresh()
		switch {
		case len(t.got) > 0:
			t.answer <- nil
		case t.try && t.looked:
			t.answer <- ErrEmpty
		default:
			return false
		}
		return true
	})
}
