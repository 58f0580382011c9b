package queue

import (
	"context"
	"errors"
	"sync"

	"github.com/seed-a3166700/turnstile/zk"
)

// Purge removes every item that is ready or delayed, for good, and returns how many. It leaves alone what consumers have claimed, dead
// letters, and the keys of PutOnce. Items that are put while it works may be removed or not.
func (q *Queue) Purge(ctx context.Context) (int, error) {
	n := 0
	for {
		items, err := q.takeAll(ctx)
		removed, failed := removeAll(ctx, items)
		n += removed
		if failed != nil {
			return n, q.failed("purge", failed)
		}
		if errors.Is(err, ErrEmpty) {
			break
		}
		if err != nil {
			return n, q.failed("purge", err)
		}
	}
	delayed, err := q.purgeDelayed(ctx)
	if err != nil {
		return n + delayed, q.failed("purge", err)
	}
	return n + delayed, nil
}

// removeAll finishes items that were not handed out, all at the same time, and returns how many. Hooks are not told: nobody has worked on them.
func removeAll(ctx context.Context, items []*Item) (int, error) {
	errs := make([]error, len(items))
	var wg sync.WaitGroup
	for i, it := range items {
		wg.Go(func() { errs[i] = it.finish(ctx, it.acknowledge, nil) })
	}
	wg.Wait()
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
