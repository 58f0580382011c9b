package queue

// Removing all items that are waiting or delayed, list by list.

import (
	"cmp"
	"context"
	"errors"

	"github.com/seed-a3166700/turnstile/queue/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// waiting removes what waits for others of its group. Each group keeps its list, for as long as it has a head.
func (p purger) waiting(ctx context.Context) (int, error) {
	n := 0
	err := p.eachGroup(ctx, func(g *segment.List) error {
		removed, err := p.list(ctx, g, Waiting)
		n += removed
		return err
	})
	return n, err
}

// delayed removes what is delayed.
func (p purger) delayed(ctx context.Context) (int, error) {
	n := 0
	err := p.eachBucket(ctx, true, func(b *segment.List) error {
		removed, err := p.bucket(ctx, b)
		n += removed
		return err
	})
	return n, err
}

// bucket removes the items of a bucket. Those that are heads of groups go with what that does to the group.
func (p purger) bucket(ctx context.Context, c *segment.List) (n int, err error) {
	if n, err = p.list(ctx, c, Delayed); !errors.Is(err, errHeads) {
		return n, err
	}
	var removed error
	err = p.eachStored(ctx, c, func(x *storedItem) bool {
		removed = p.one(ctx, x, Delayed, &n)
		return removed == nil
	})
	return n, cmp.Or(removed, err)
}

// one removes an item, with what that does to its group and key, and counts it unless it was gone.
func (p purger) one(ctx context.Context, x *storedItem, state State, n *int) error {
	there, err := p.producer.removeFound(ctx, located{
		Peeked: x.peeked(state, x.rec.Priority), path: x.path, key: x.rec.Key, version: x.version,
	})
	if there {
		*n++
	}
	return err
}

// errHeads says that items may be heads of groups.
var errHeads = errors.New("there are groups")

// list removes all items of a list, which are in a state. If they are delayed and the queue has ever had a group, it
// returns errHeads instead.
func (p purger) list(ctx context.Context, c *segment.List, state State) (n int, err error) {
	var segments []int
	err = p.do(ctx, func(sess *zk.Session) (err error) {
		segments, err = c.Segments(ctx, sess)
		return err
	})
	for i := 0; i < len(segments) && err == nil; i++ {
		err = p.segment(ctx, c, segments[i], state, &n)
	}
	return n, err
}

// segment is list for one segment. It adds to n how many items it has removed.
func (p purger) segment(ctx context.Context, c *segment.List, s int, state State, n *int) error {
	items, keyed, err := p.listed(ctx, c, s, state)
	if err != nil {
		return err
	}
	if keyed {
		all := items
		items = nil
		var removed error
		err := p.readStored(ctx, c.Segment(s), all, func(x *storedItem) bool {
			if x.rec.Key == "" {
				items = append(items, x.seq)
			} else {
				removed = p.one(ctx, x, state, n)
			}
			return removed == nil
		})
		if err := cmp.Or(removed, err); err != nil {
			return err
		}
	}
	paths := make([]string, len(items))
	for i, item := range items {
		paths[i] = c.Item(s, item)
	}
	return p.deleteAll(ctx, paths, n)
}

// listed returns the items of a segment, and whether some may have keys. Both that and whether there are groups it asks
// after the list: a key or group that it does not see has no item in the list.
func (p purger) listed(
	ctx context.Context, c *segment.List, s int, state State,
) (items []int, keyed bool, err error) {
	err = p.do(ctx, func(sess *zk.Session) (err error) {
		if items, err = c.Items(ctx, sess, s); err != nil || len(items) == 0 {
			return err
		}
		b := sess.Batch()
		groups, keys := b.Exists(p.layout.path(dirGroups)), b.Exists(p.layout.path(dirKeys))
		b.Send()
		g, err := groups.Get(ctx)
		if err != nil {
			return err
		}
		if state == Delayed && g.Stat.NumChildren > 0 {
			return errHeads
		}
		k, err := keys.Get(ctx)
		keyed = k.Stat.NumChildren > 0
		return err
	})
	return items, keyed, err
}

// deleteAll deletes nodes, and adds to n how many of them it has deleted.
func (p purger) deleteAll(ctx context.Context, paths []string, n *int) error {
	unanswered := make(map[string]bool) // a deletion was sent, perhaps
	return p.do(ctx, func(sess *zk.Session) error {
		b := sess.Batch()
		deletions := make([]*zk.Future[struct{}], len(paths))
		for i, path := range paths {
			deletions[i] = b.Delete(path, -1)
		}
		b.Send()
		var left []string
		var failed error
		for i, path := range paths {
			_, err := deletions[i].Get(ctx)
			switch {
			case err == nil, errors.Is(err, zk.NoNode) && unanswered[path]:
				*n++
			case !errors.Is(err, zk.NoNode):
				left = append(left, path)
				unanswered[path] = unanswered[path] || zk.OutcomeOf(err) == zk.Unknown
				failed = cmp.Or(failed, err)
			}
		}
		paths = left
		return failed
	})
}
