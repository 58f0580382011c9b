package queue

import (
	"context"
	"errors"
	"sync"

	"github.com/seed-a3166700/turnstile/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// Purge removes every item that is ready or delayed, for good, and returns how many. It leaves alone what consumers have claimed, dead
// letters, and the keys of PutOnce. Items that are put while it works may be removed or not; however many they are, it ends. If ctx ends first, it returns
// ctx's cause, and goes on in the background with what it has claimed by then, which is not counted.
func (q *Queue) Purge(ctx context.Context) (int, error) {
	n, err := q.purgeDelayed(ctx) // first, so that what becomes ready meanwhile is found where it goes
	if err == nil {
		var ready int
		ready, err = q.purgeReady(ctx)
		n += ready
	}
	if err != nil {
		return n, q.failed("purge", err)
	}
	return n, nil
}

// purgeReady removes what is ready, as a consumer of its own that claims up to where the lines end now: one that took items as others do would have
// more urgent ones put before it without end.
func (q *Queue) purgeReady(ctx context.Context) (int, error) {
	cfg := q.cfg
	cfg.Hooks = Hooks{}
	cleaner, err := New(q.client, q.root, cfg)
	if err != nil {
		return 0, err
	}
	defer cleaner.goHome(ctx)
	if d := q.current(); d != nil {
		var err error
		if !through(ctx, func() { _, err = d.returnStock(d.ctx, false) }) {
			return 0, context.Cause(ctx)
		}
		if err != nil && d.err() == nil {
			return 0, err
		}
	}
	ends, err := q.ends(ctx)
	n := 0
	for len(ends) > 0 && err == nil {
		var d *desk
		var removed int
		if d, err = cleaner.openDesk(ctx); err == nil {
			removed, err = d.purgeLine(ctx, ends[0])
			n += removed
		}
		switch {
		case err == nil:
			ends = ends[1:]
		case q.ctx.Err() != nil:
			err = ErrClosed
		case ctx.Err() == nil && cleaner.passes(err):
			err = cleaner.vacated(ctx, d) // then once more
		}
	}
	return n, err
}

// goHome ends a cleaner. What it could not remove is nobody's then, but for what a caller that has left lets go on.
func (q *Queue) goHome(ctx context.Context) {
	if ctx.Err() != nil {
		go func() { _ = q.Close(context.WithoutCancel(ctx)) }() // what cannot be given back goes back when the session ends
		return
	}
	d := q.current()
	_ = q.Close(ctx)
	if d != nil && d.ctx.Err() == nil {
		_ = d.depart().Wait(ctx)
	}
}

// vacated returns when what a desk has claimed is free, if the desk has ended. A session that has ended here may have some time left at the server.
func (q *Queue) vacated(ctx context.Context, d *desk) error {
	if d == nil || d.ctx.Err() == nil {
		return nil
	}
	if d.sess.Err() == nil {
		return d.depart().Wait(ctx)
	}
	return q.look(ctx, func(sess *zk.Session) error {
		for {
			_, there, w, err := sess.ExistsW(ctx, d.node)
			if err != nil {
				return err
			}
			if there {
				_, err = w.Next(ctx)
			}
			w.Close()
			if err != nil || !there {
				return err
			}
		}
	})
}

// ends returns where each line ends: the place behind its last item.
func (q *Queue) ends(ctx context.Context) (ends []place, err error) {
	err = q.look(ctx, func(sess *zk.Session) error {
		ends = nil
		// A server that lags behind may not know yet what others were told is in.
		if err := sess.Sync(ctx, q.root); err != nil {
			return err
		}
		names, _, err := sess.Children(ctx, q.path(dirReady))
		if err != nil {
			return err
		}
		for _, p := range segment.Numbers(names, parseLine) {
			line := q.line(p)
			list, err := line.Segments(ctx, sess)
			if err != nil {
				return err
			}
			if len(list) == 0 {
				continue
			}
			last := list[len(list)-1]
			stat, _, err := sess.Exists(ctx, line.Segment(last)) // gone since we have listed: then so is what was in it
			if err != nil {
				return err
			}
			ends = append(ends, place{p, last, segment.Creations(stat)})
		}
		return nil
	})
	return ends, err
}

// purgeLine removes what is ready in a line before its end, and returns how many items that were.
func (d *desk) purgeLine(ctx context.Context, end place) (n int, err error) {
	for {
		d.q.mu.Lock()
		d.pace = maxPrefetch
		d.q.mu.Unlock()
		found, err := d.claimBefore(ctx, end)
		if errors.Is(err, errAgain) {
			continue
		}
		if err != nil || !found {
			return n, err
		}
		removed, err := d.q.removeAll(ctx, d.takeStock())
		n += removed
		if err != nil {
			return n, err
		}
	}
}

// claimBefore claims something of a line before its end: what was given back or left behind, or what nobody has claimed yet. It reports false if there is
// nothing.
func (d *desk) claimBefore(ctx context.Context, end place) (bool, error) {
	claims, err := d.q.listClaims(ctx, d.sess)
	if err != nil {
		return false, err
	}
	for i := range claims {
		c := &claims[i]
		if c.priority != end.priority || !c.free || c.place.compare(end) >= 0 {
			continue
		}
		if ok, err := d.adopt(ctx, c); ok || err != nil {
			return ok, err
		}
	}
	line := d.q.line(end.priority)
	data, _, err := d.sess.Get(ctx, line.Dir)
	if errors.Is(err, zk.NoNode) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if at, ok := segment.ParseCursor(data); ok && (place{end.priority, at.Segment, at.Item}).compare(end) >= 0 {
		return false, nil
	}
	return d.claimNext(ctx, line, end.priority)
}

// takeStock takes all that is claimed and not handed out.
func (d *desk) takeStock() []*Item {
	d.q.mu.Lock()
	defer d.q.mu.Unlock()
	var items []*Item
	for _, w := range d.windows {
		for _, s := range w.stock {
			items = append(items, w.item(s))
		}
		w.open += len(w.stock)
		d.open += len(w.stock)
		w.stock = nil
	}
	d.windows = nil
	d.weigh()
	if d.linger != nil {
		d.linger.Stop()
	}
	return items
}

// removeAll finishes items that were not handed out, all at the same time, and returns how many. If ctx ends first, it goes on: nobody else would finish
// them. Hooks are not told: nobody has worked on them.
func (q *Queue) removeAll(ctx context.Context, items []*Item) (int, error) {
	if len(items) == 0 {
		return 0, nil
	}
	errs := make([]error, len(items))
	if !through(ctx, func() {
		ctx := context.WithoutCancel(ctx)
		var wg sync.WaitGroup
		for i, it := range items {
			wg.Go(func() { errs[i] = it.finish(ctx, it.acknowledge, nil) })
		}
		wg.Wait()
	}) {
		return 0, &zk.Error{Op: "finish", Path: q.root, Err: context.Cause(ctx), Outcome: zk.Unknown}
	}
	n := 0
	for _, err := range errs {
		if err == nil {
			n++
		}
	}
	return n, errors.Join(errs...)
}

func (q *Queue) purgeDelayed(ctx context.Context) (int, error) {
	n := 0
	var names []string
	err := q.look(ctx, func(sess *zk.Session) (err error) {
		// A server that lags behind may not know yet what others were told is in.
		if err := sess.Sync(ctx, q.root); err != nil {
			return err
		}
		names, _, err = sess.Children(ctx, q.path(dirDelayed))
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		b, ok := parseBucket(name)
		if !ok {
			continue
		}
		removed, err := q.purgeChain(ctx, q.bucket(b))
		n += removed
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// purgeChain removes all items of a chain.
func (q *Queue) purgeChain(ctx context.Context, c *segment.List) (int, error) {
	n := 0
	err := q.look(ctx, func(sess *zk.Session) error {
		list, err := c.Segments(ctx, sess)
		if err != nil {
			return err
		}
		for _, s := range list {
			names, _, err := sess.Children(ctx, c.Segment(s))
			if err != nil && !errors.Is(err, zk.NoNode) {
				return err
			}
			b := sess.Batch()
			var gone []*zk.Future[struct{}]
			for _, item := range segment.Numbers(names, segment.ParseItem) {
				gone = append(gone, b.Delete(c.Segment(s)+"/"+segment.ItemName(item), -1))
			}
			b.Send()
			for _, g := range gone {
				_, err := g.Get(ctx)
				switch {
				case err == nil:
					n++
				case !errors.Is(err, zk.NoNode):
					return err
				}
			}
		}
		return nil
	})
	return n, err
}
