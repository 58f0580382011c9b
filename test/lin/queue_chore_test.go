//go:build unix

package lin_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/internal/lincheck"
	"github.com/seed-a3166700/turnstile/queue"
)

// held is an item whose work is done and that will be acknowledged together with others.
type held struct {
	item *queue.Item
	seen *lincheck.Delivery
}

// empty acknowledges the items in the basket in one call.
func (c *consumer) empty() {
	if len(c.basket) == 0 {
		return
	}
	basket := c.basket
	c.basket = nil
	var items []*queue.Item
	for _, b := range basket {
		items = append(items, b.item)
		c.hold(b.item, b.seen, 0)
	}
	for _, b := range basket {
		b.seen.Finish = lincheck.Finish{Fate: lincheck.Acknowledged, Others: len(basket) - 1, Asked: clock()}
		c.report(report{Place: c.place, Delivery: b.seen})
	}
	errs := c.each(c.q.DoneAll(context.Background(), items))
	now := clock()
	for _, b := range basket {
		i := slices.IndexFunc(errs, func(err error) bool { return strings.Contains(err.Error(), b.item.ID()) })
		switch {
		case i >= 0:
			c.lost(b.item, b.seen, errs[i])
			errs = slices.Delete(errs, i, i+1) // an item may be in it twice, under an earlier claim and a later one
		default:
			b.seen.Finish.Done = now
		}
		c.report(report{Place: c.place, Delivery: b.seen})
	}
	if len(errs) > 0 {
		c.fail("acknowledge several", errors.Join(errs...))
	}
}

// each splits the error of DoneAll into one error for each item that was not acknowledged.
func (c *consumer) each(err error) []error {
	if err == nil {
		return nil
	}
	list, ok := err.(interface{ Unwrap() []error })
	if !ok {
		c.fail("acknowledge several", err)
		return nil
	}
	return slices.Clone(list.Unwrap())
}

// purge removes unclaimed items.
func (c *consumer) purge(ctx context.Context, t takePlan) {
	if !t.all && t.n < 3 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, min(t.patience, 30*time.Millisecond))
		defer cancel()
	}
	c.empty()
	p := lincheck.Purge{Client: c.number, Serial: int(c.serial.Add(1))}
	known := int64(0)
	if c.alone != nil {
		asked := clock()
		if passBarrier(ctx, c.alone, c.Root+"/"+c.place) == nil {
			known = asked
		}
	}
	p.Asked = clock()
	c.report(report{Place: c.place, Purge: &p})
	n, err := c.q.Purge(ctx)
	p.Done, p.N, p.Failed = clock(), n, err != nil
	if known > 0 && c.alone.Err() == nil {
		p.Session, p.Known = c.alone.ID(), known
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, queue.ErrClaimLost) {
		c.fail("purge", err)
	}
	c.report(report{Place: c.place, Purge: &p})
}

// requeue puts back dead letters that it has seen, or all there are.
func (c *consumer) requeue(ctx context.Context, t takePlan) {
	seen, err := c.dead(ctx)
	if err != nil {
		if ctx.Err() == nil {
			c.fail("list dead letters", err)
		}
		return
	}
	r := lincheck.Requeue{Client: c.number, Serial: int(c.serial.Add(1)), Seen: seen}
	if !t.all {
		for _, x := range seen[:min(len(seen), t.n)] {
			if !slices.Contains(r.Items, x.Item) { // it may have died again during the listing
				r.Items = append(r.Items, x.Item)
			}
		}
		if len(r.Items) == 0 {
			return
		}
	}
	r.Asked = clock()
	c.report(report{Place: c.place, Requeue: &r})
	n, err := c.q.Requeue(ctx, r.Items...)
	r.Done, r.N, r.Failed = clock(), n, err != nil
	if err != nil && ctx.Err() == nil {
		c.fail("put back", err)
	}
	c.report(report{Place: c.place, Requeue: &r})
}

// pause pauses the queue for a while. Another client may resume it earlier, or later if this one is killed.
func (c *consumer) pause(ctx context.Context, t takePlan) {
	c.empty()
	for _, change := range []func() error{
		func() error { return c.q.Pause(ctx, "a mood") },
		func() error { return c.q.Resume(context.WithoutCancel(ctx)) },
	} {
		if err := change(); err != nil && ctx.Err() == nil {
			c.fail("pause", err)
		}
		c.lookAtPause(ctx)
		pause(ctx, min(t.patience, 100*time.Millisecond))
	}
}

// resumeForOthers resumes a queue that has been paused for long: the client that has paused it may have been killed.
func (c *consumer) resumeForOthers(ctx context.Context) {
	p, err := c.q.Paused(ctx)
	if err != nil || p == nil || time.Since(p.At) < time.Second {
		return
	}
	c.lookAtPause(ctx)
	if err := c.q.Resume(ctx); err != nil && ctx.Err() == nil {
		c.fail("resume", err)
	}
	c.lookAtPause(ctx)
}

// lookAtPause reports whether the queue is paused, if there is an answer now.
func (c *consumer) lookAtPause(ctx context.Context) {
	sess, err := c.client.Session(ctx)
	if err != nil {
		return
	}
	if data, stat, err := sess.Get(ctx, c.Root+"/"+c.place+"/gate"); err == nil {
		seen := &lincheck.PauseState{Version: stat.Version, Zxid: stat.Mzxid, Paused: len(data) > 0}
		c.report(report{Place: c.place, Pause: seen})
	}
}
