package queue

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// Counts tells how many items there are, by state.
type Counts struct {
	Ready   int // waiting for a consumer
	Delayed int // not due yet
	Claimed int // delivered, or buffered by a consumer
	Dead    int // dead letters
}

// Len counts the items. It reads no item, only how many children segments have. It may or may not count items that
// are put, claimed or finished meanwhile.
func (q *Queue) Len(ctx context.Context) (Counts, error) {
	var n Counts
	err := q.retryRead(ctx, func(sess *zk.Session) error {
		n = Counts{}
		stored, err := q.countBelow(ctx, sess, dirReady)
		if err != nil {
			return err
		}
		if n.Delayed, err = q.countBelow(ctx, sess, dirDelayed); err != nil {
			return err
		}
		if n.Dead, err = q.layout.deadLetters().Count(ctx, sess); err != nil {
			return err
		}
		if n.Claimed, err = q.countClaimed(ctx, sess); err != nil {
			return err
		}
		n.Claimed = min(n.Claimed, stored)
		n.Ready = stored - n.Claimed
		return nil
	})
	if err != nil {
		return Counts{}, q.failed("count", err)
	}
	return n, nil
}

// retryRead calls f, which only reads, until no broken connection and no end of a session interrupts it.
func (q *Queue) retryRead(ctx context.Context, f func(*zk.Session) error) error {
	for {
		sess, err := q.session(ctx)
		if err != nil {
			return err
		}
		err = f(sess)
		if err == nil || ctx.Err() != nil || !q.again(ctx, sess, err) && !q.missing(err) {
			return err
		}
	}
}

// countBelow counts the items of all lists below a node.
func (q *Queue) countBelow(ctx context.Context, sess *zk.Session, dir string) (int, error) {
	names, _, err := sess.Children(ctx, q.layout.path(dir))
	if err != nil {
		return 0, err
	}
	total := 0
	for _, name := range names {
		n, err := (&segment.List{Dir: q.layout.path(dir, name)}).Count(ctx, sess)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// countClaimed counts the items that live consumers have claimed.
func (q *Queue) countClaimed(ctx context.Context, sess *zk.Session) (int, error) {
	list, err := q.layout.listClaims(ctx, sess)
	if err != nil {
		return 0, err
	}
	total := 0
	for _, c := range list {
		if c.free {
			continue
		}
		data, _, err := sess.Get(ctx, c.path)
		if errors.Is(err, zk.NoNode) {
			continue
		}
		if err != nil {
			return 0, err
		}
		s, ok := parseRange(data)
		if !ok {
			continue
		}
		b := sess.Batch()
		var looks []*zk.Future[zk.Existence]
		for seq := s.First; seq <= s.Last; seq++ {
			if !slices.Contains(s.Except, seq) {
				looks = append(looks, b.Exists(q.layout.readyList(c.priority).Item(c.segment, seq)))
			}
		}
		b.Send()
		for _, l := range looks {
			e, err := l.Get(ctx)
			if err != nil {
				return 0, err
			}
			if e.Exists {
				total++
			}
		}
	}
	return total, nil
}

// How long a put that waits for room waits before it looks again.
const (
	roomFirst = 20 * time.Millisecond
	roomMax   = time.Second
)

// room waits until n more items may be put, or returns an error if they may not. It calls full, unless nil, whenever
// there is no room; if full fails, room returns its error.
//
// What it counts may have changed when the put is done: puts at the same time do not see each other.
func (q *Queue) room(ctx context.Context, sess *zk.Session, n int, full func(context.Context) error) error {
	if q.cfg.MaxItems == 0 {
		return nil
	}
	for pause := roomFirst; ; pause = min(2*pause, roomMax) {
		ready, err := q.countBelow(ctx, sess, dirReady)
		if err != nil {
			return err
		}
		delayed, err := q.countBelow(ctx, sess, dirDelayed)
		if err != nil {
			return err
		}
		if ready+delayed+n <= q.cfg.MaxItems {
			return nil
		}
		if full != nil {
			if err := full(ctx); err != nil {
				return err
			}
		}
		if !q.cfg.WaitWhenFull || n > q.cfg.MaxItems {
			return &FullError{Items: ready + delayed, MaxItems: q.cfg.MaxItems}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-q.ctx.Done():
			return context.Cause(q.ctx)
		}
	}
}
