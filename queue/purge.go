package queue

import (
	"context"
	"errors"
	"sync"

	"github.com/seed-a3166700/turnstile/zk"
)

// Purge removes every item that is ready or delayed, for good, and returns how many. It leaves alone what consumers have claimed, dead
// letters, and the keys of PutOnce. Items that are put while it works may be removed or not. If ctx ends first, it returns ctx's cause, and goes on in the
// background with what it has claimed by then, which is not counted.
func (q *Queue) Purge(ctx context.Context) (int, error) {
	n, err := q.purgeDelayed(ctx) // first, so that what becomes ready meanwhile is found where it goes
	if err != nil {
		return n, q.failed("purge", err)
	}
	for {
		items, err := q.takeAll(ctx)
		removed, failed := q.removeAll(ctx, items)
		n += removed
		if failed != nil {
			return n, q.failed("purge", failed)
		}
		if errors.Is(err, ErrEmpty) {
			return n, nil
		}
		if err != nil {
			return n, q.failed("purge", err)
		}
	}
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

// takeAll takes as many items as one claim may be for.
func (q *Queue) takeAll(ctx context.Context) ([]*Item, error) {
	return q.await(ctx, maxPrefetch, true)
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
		if _, _, ok := parseBucket(name); !ok {
			continue
		}
		bucket := q.bucketAt(name)
		removed, err := q.purgeChain(ctx, bucket)
		n += removed
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// purgeChain removes all items of a chain.
func (q *Queue) purgeChain(ctx context.Context, c *chain) (int, error) {
	n := 0
	err := q.look(ctx, func(sess *zk.Session) error {
		list, err := c.segments(ctx, sess)
		if err != nil {
			return err
		}
		for _, s := range list {
			names, _, err := sess.Children(ctx, c.segment(s))
			if err != nil && !errors.Is(err, zk.NoNode) {
				return err
			}
			b := sess.Batch()
			var gone []*zk.Future[struct{}]
			for _, item := range numbers(names, parseItem) {
				gone = append(gone, b.Delete(c.segment(s)+"/"+itemName(item), -1))
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
