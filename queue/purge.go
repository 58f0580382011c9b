package queue

// Removing all items.

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/queue/internal/claims"
	"github.com/seed-a3166700/turnstile/queue/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// Purge removes every item that is ready, delayed, or waiting in a group, for good, and returns how many. The keys of
// PutOnce of these items no longer count. It leaves claimed items and dead letters alone. It may or may not remove
// items that are put meanwhile; however many they are, it ends. If ctx ends first, it returns ctx's cause, and goes on
// in the background with what it has claimed by then, which it does not count.
//
// What it cannot read stays: a delayed or waiting item if there are keys or groups, and a ready item with those of its
// priority behind it. Then it returns an error, after it has removed all else.
//
// If the connection breaks before all replies are there, it counts each delayed or waiting item whose removal it had
// sent and that is gone, also if another client has removed it, or it became ready, just then.
func (q *Queue) Purge(ctx context.Context) (int, error) {
	p := purger{q.reader, &q.producer, &q.dispatcher}
	n := 0
	// In this order it finds what becomes ready meanwhile where it goes.
	err := p.thorough(func(r reader) error {
		p.reader = r
		for _, purge := range []func(context.Context) (int, error){p.waiting, p.delayed, p.ready} {
			removed, err := purge(ctx)
			if n += removed; err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return n, q.failed("purge", err)
	}
	return n, nil
}

// purger removes items.
type purger struct {
	reader
	producer   *producer
	dispatcher *dispatcher
}

// ready removes what is ready, as a consumer of its own that claims up to where the ready lists end now: if it took
// items as others do, more urgent ones could be put before it without end.
func (p purger) ready(ctx context.Context) (int, error) {
	cfg := p.cfg
	cfg.Hooks = Hooks{}
	q, err := New(p.client, p.layout.root, cfg)
	if err != nil {
		return 0, err
	}
	defer closePurger(ctx, q)
	if co := p.dispatcher.current(); co != nil {
		var err error
		if left := through(ctx, func() { _, err = co.returner.returnAll(co.ctx, false) }); left != nil {
			return 0, left
		}
		if err != nil && co.err() == nil {
			return 0, err
		}
	}
	ends, err := p.ends(ctx)
	n := 0
	for len(ends) > 0 && err == nil {
		var co *consumer
		var removed int
		if co, err = q.dispatcher.openConsumer(ctx); err == nil {
			removed, err = co.purge(ctx, ends[0])
			n += removed
		}
		_, unread := errors.AsType[*unreadError](err)
		switch {
		case unread: // as for any consumer, it is in the way of those behind it
			*p.unread = cmp.Or(*p.unread, err)
			ends, err = ends[1:], nil
		case err == nil:
			ends = ends[1:]
		case p.ctx.Err() != nil:
			err = ErrClosed
		case ctx.Err() == nil && q.dispatcher.passes(err):
			if co != nil && zk.Temporary(err) {
				_ = attempt.Again(ctx, co.sess, err) // what is asked next tells what it would
			}
			err = p.awaitFree(ctx, co) // then once more
		}
	}
	return n, err
}

// closePurger closes the Queue that a purger has taken with. What the purger could not remove is free then, except
// what it still removes for a caller that has left.
func closePurger(ctx context.Context, q *Queue) {
	if ctx.Err() != nil {
		// What cannot be given back goes back when the session ends.
		go func() { _ = q.Close(context.WithoutCancel(ctx)) }()
		return
	}
	co := q.dispatcher.current()
	_ = q.Close(ctx)
	if co != nil && co.ctx.Err() == nil {
		_ = co.removeNode().Wait(ctx)
	}
}

// awaitFree returns when the claims of a consumer are free, if the consumer has ended. A session that has ended
// here may live on at the server for a while.
func (p purger) awaitFree(ctx context.Context, co *consumer) error {
	if co == nil || co.ctx.Err() == nil {
		return nil
	}
	if co.sess.Err() == nil {
		return co.removeNode().Wait(ctx)
	}
	return p.do(ctx, func(sess *zk.Session) error {
		for {
			_, there, w, err := sess.ExistsW(ctx, co.node)
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

// ends returns where each ready list ends: the place behind its last item.
func (p purger) ends(ctx context.Context) (ends []claims.Place, err error) {
	err = p.do(ctx, func(sess *zk.Session) error {
		ends = nil
		// A server that lags behind may not know yet of items that were put.
		if err := sess.Sync(ctx, p.layout.root); err != nil {
			return err
		}
		names, _, err := sess.Children(ctx, p.layout.path(dirReady))
		if err != nil {
			return err
		}
		for _, priority := range segment.Numbers(names, parsePriority) {
			ready := p.layout.readyList(priority)
			list, err := ready.Segments(ctx, sess)
			if err != nil {
				return err
			}
			if len(list) == 0 {
				continue
			}
			last := list[len(list)-1]
			stat, _, err := sess.Exists(ctx, ready.Segment(last)) // gone since it was listed: then so is what was in it
			if err != nil {
				return err
			}
			ends = append(ends, claims.Place{Priority: priority, Segment: last, Item: segment.Creations(stat)})
		}
		return nil
	})
	return ends, err
}

// purge removes what is ready in a list before its end, and returns how many items that were.
func (co *consumer) purge(ctx context.Context, end claims.Place) (n int, err error) {
	for {
		co.claims.SetPace(maxPrefetch)
		found, err := co.fetcher.claimBefore(ctx, end)
		err = cmp.Or(co.bury(), err)
		if errors.Is(err, errAgain) {
			continue
		}
		if err != nil || !found {
			return n, err
		}
		removed, err := co.removeAll(ctx, co.takeBuffered())
		n += removed
		if err != nil {
			return n, err
		}
	}
}

// claimBefore claims something of a ready list before its end: what was given back or left behind, or what is not
// claimed yet. It returns false if there is nothing.
func (f *fetcher) claimBefore(ctx context.Context, end claims.Place) (bool, error) {
	list, err := f.co.q.layout.listClaims(ctx, f.co.sess)
	if err != nil {
		return false, err
	}
	for i := range list {
		c := &list[i]
		if c.Priority != end.Priority || !c.free || c.Compare(end) >= 0 {
			continue
		}
		if ok, err := f.adopt(ctx, c); ok || err != nil {
			return ok, err
		}
	}
	ready := f.co.q.layout.readyList(end.Priority)
	data, _, err := f.co.sess.Get(ctx, ready.Dir)
	if errors.Is(err, zk.NoNode) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if at, ok := segment.ParseCursor(data); ok && claims.PlaceOf(end.Priority, at).Compare(end) >= 0 {
		return false, nil
	}
	return f.claimNext(ctx, ready, end.Priority)
}

// takeBuffered takes all buffered items.
func (co *consumer) takeBuffered() []*Item {
	var items []*Item
	for _, b := range co.claims.PopAll() {
		for _, x := range b.Items {
			items = append(items, co.item(b.Lease, x))
		}
	}
	co.returner.stop()
	return items
}

// removeAll finishes items that were not delivered, all at the same time, and returns how many. If ctx ends first, it
// goes on: nothing else would finish them. It calls no hooks: no consumer has worked on them.
func (co *consumer) removeAll(ctx context.Context, items []*Item) (int, error) {
	if len(items) == 0 {
		return 0, nil
	}
	errs := make([]error, len(items))
	if left := through(ctx, func() {
		ctx := context.WithoutCancel(ctx)
		var wg sync.WaitGroup
		for i, it := range items {
			wg.Go(func() { errs[i] = it.finish(ctx, ItemEnd{Result: ResultDone}, it.purge, nil) })
		}
		wg.Wait()
	}); left != nil {
		return 0, &zk.Error{Op: "finish", Path: co.q.layout.root, Err: left, Outcome: zk.Unknown}
	}
	n := 0
	for _, err := range errs {
		if err == nil {
			n++
		}
	}
	return n, errors.Join(errs...)
}

// purge removes the item, and makes its key count no longer.
func (it *Item) purge() error {
	co := it.co
	for {
		forget, err := attempt.Ask(co.ctx, co.sess, func() ([]zk.Op, error) {
			return co.q.forget(co.ctx, co.sess, it.rec.Key, it.ID())
		})
		switch {
		case err != nil:
			return co.orLost(err)
		case len(forget) == 0:
			return it.acknowledge()
		}
		err = it.remove(removal{ops: forget, final: true})
		if !errors.Is(err, zk.BadVersion) && !errors.Is(err, zk.NoNode) || co.err() != nil {
			return err // the key has not changed meanwhile
		}
	}
}
