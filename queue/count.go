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
	err := q.do(ctx, func(sess *zk.Session) (err error) {
		n, _, err = q.reader.count(ctx, sess)
		return err
	})
	if err != nil {
		return Counts{}, q.failed("count", err)
	}
	return n, nil
}

// count counts the items, and those that each live consumer has claimed.
func (r reader) count(ctx context.Context, sess *zk.Session) (n Counts, claimed map[string]int, err error) {
	stored, err := r.countBelow(ctx, sess, dirReady)
	if err != nil {
		return n, nil, err
	}
	if n.Delayed, err = r.countBelow(ctx, sess, dirDelayed); err != nil {
		return n, nil, err
	}
	if n.Dead, err = r.layout.deadLetters().Count(ctx, sess); err != nil {
		return n, nil, err
	}
	if n.Waiting, err = r.countWaiting(ctx, sess); err != nil {
		return n, nil, err
	}
	if claimed, err = r.claimed(ctx, sess); err != nil {
		return n, nil, err
	}
	for _, of := range claimed {
		n.Claimed += of
	}
	n.Claimed = min(n.Claimed, stored)
	n.Ready = stored - n.Claimed
	return n, claimed, nil
}

// countBelow counts the items of all lists below a node.
func (r reader) countBelow(ctx context.Context, sess *zk.Session, dir string) (int, error) {
	names, _, err := sess.Children(ctx, r.layout.path(dir))
	if err != nil {
		return 0, err
	}
	total := 0
	for _, name := range names {
		if !isList(dir, name) {
			continue
		}
		n, err := (&segment.List{Dir: r.layout.path(dir, name)}).Count(ctx, sess)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
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
