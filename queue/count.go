package queue

// Counting what is in a queue.

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-a3166700/turnstile/queue/internal/claims"
	"github.com/seed-a3166700/turnstile/queue/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// reader reads what is in a queue. It claims nothing.
type reader struct {
	*base
	unread *error // where to keep why the first item could not be read; nil: that ends a walk
	few    bool   // one item is enough
}

// Counts tells how many items there are, by state.
type Counts struct {
	Ready   int // waiting for a consumer
	Delayed int // not due yet
	Claimed int // delivered, or buffered by a consumer
	Dead    int // dead letters
	Waiting int // behind another item of their group
}

// Len counts the items. It reads no item, only how many children segments have. It may or may not count items that
// are put, claimed or finished meanwhile.
func (q *Queue) Len(ctx context.Context) (Counts, error) {
	var n Counts
	err := q.do(ctx, func(sess *zk.Session) error {
		t, err := q.reader.count(ctx, sess)
		n = t.Counts
		return err
	})
	if err != nil {
		return Counts{}, q.failed("count", err)
	}
	return n, nil
}

// A tally is how many items a queue has.
type tally struct {
	Counts

	claimed map[string]int // by each live consumer
	ready   fills
}

// count counts the items, and those that each live consumer has claimed.
func (r reader) count(ctx context.Context, sess *zk.Session) (t tally, err error) {
	if t.ready, err = r.fillsBelow(ctx, sess, dirReady); err != nil {
		return t, err
	}
	delayed, err := r.fillsBelow(ctx, sess, dirDelayed)
	if err != nil {
		return t, err
	}
	dead, err := r.layout.deadLetters().Fills(ctx, sess)
	if err != nil {
		return t, err
	}
	if t.Waiting, err = r.countWaiting(ctx, sess); err != nil {
		return t, err
	}
	if t.claimed, err = r.claimed(ctx, sess); err != nil {
		return t, err
	}
	for _, of := range t.claimed {
		t.Claimed += of
	}
	stored := t.ready.left()
	t.Claimed = min(t.Claimed, stored)
	t.Ready, t.Delayed, t.Dead = stored-t.Claimed, delayed.left(), dead.Left()
	return t, nil
}

// fills are those of several lists, by the list's name.
type fills map[string]segment.Fills

// left returns how many items are in the lists.
func (f fills) left() int {
	total := 0
	for _, list := range f {
		total += list.Left()
	}
	return total
}

// fillsBelow returns the fills of all lists below a node.
func (r reader) fillsBelow(ctx context.Context, sess *zk.Session, dir string) (fills, error) {
	names, _, err := sess.Children(ctx, r.layout.path(dir))
	if err != nil {
		return nil, err
	}
	found := make(fills, len(names))
	for _, name := range names {
		if !isList(dir, name) {
			continue
		}
		if found[name], err = (&segment.List{Dir: r.layout.path(dir, name)}).Fills(ctx, sess); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// claimed counts the items that each live consumer has claimed. All live consumers are in it.
func (r reader) claimed(ctx context.Context, sess *zk.Session) (map[string]int, error) {
	list, live, err := r.layout.listAll(ctx, sess)
	if err != nil {
		return nil, err
	}
	claimed := make(map[string]int, len(live))
	for owner := range live {
		claimed[owner] = 0
	}
	for _, c := range list {
		if c.free {
			continue
		}
		data, _, err := sess.Get(ctx, c.path)
		if errors.Is(err, zk.NoNode) {
			continue
		}
		if err != nil {
			return nil, err
		}
		s, ok := claims.ParseRange(data)
		if !ok {
			continue
		}
		b := sess.Batch()
		var looks []*zk.Future[zk.Existence]
		for seq := s.First; seq <= s.Last; seq++ {
			if !slices.Contains(s.Except, seq) {
				looks = append(looks, b.Exists(r.layout.readyList(c.Priority).Item(c.Segment, seq)))
			}
		}
		b.Send()
		for _, l := range looks {
			e, err := l.Get(ctx)
			if err != nil {
				return nil, err
			}
			if e.Exists {
				claimed[c.owner]++
			}
		}
	}
	return claimed, nil
}
