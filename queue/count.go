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
	Ready   int // wait for a consumer
	Delayed int // are not due yet
	Claimed int // a consumer has them, or holds them ready for its takers
	Dead    int // are dead letters
}

// Len counts the items. It reads no item, only how many children segments have; items that are put, claimed or finished meanwhile may be counted or not.
func (q *Queue) Len(ctx context.Context) (Counts, error) {
	var n Counts
	err := q.look(ctx, func(sess *zk.Session) error {
		n = Counts{}
		stored, err := q.countBelow(ctx, sess, dirReady)
		if err != nil {
			return err
		}
		if n.Delayed, err = q.countBelow(ctx, sess, dirDelayed); err != nil {
			return err
		}
		if n.Dead, err = q.deadLetters().Count(ctx, sess); err != nil {
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

// look calls f, which only reads, until it gets through without a break of the connection or the end of a session.
func (q *Queue) look(ctx context.Context, f func(*zk.Session) error) error {
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

// countBelow counts the items of all chains below a node.
func (q *Queue) countBelow(ctx context.Context, sess *zk.Session, dir string) (int, error) {
	names, _, err := sess.Children(ctx, q.path(dir))
	if err != nil {
		return 0, err
	}
	total := 0
	for _, name := range names {
		n, err := (&segment.List{Dir: q.path(dir, name)}).Count(ctx, sess)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// countClaimed counts the items that consumers who live have claimed.
func (q *Queue) countClaimed(ctx context.Context, sess *zk.Session) (int, error) {
	list, err := q.listClaims(ctx, sess)
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
		s, ok := parseSpan(data)
		if !ok {
			continue
		}
		b := sess.Batch()
		var looks []*zk.Future[zk.Existence]
		for seq := s.First; seq <= s.Last; seq++ {
			if !slices.Contains(s.Except, seq) {
				looks = append(looks, b.Exists(q.line(c.priority).Segment(c.segment)+"/"+segment.ItemName(seq)))
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

// How long a put that waits for room waits until it looks again.
const (
	roomFirst = 20 * time.Millisecond
	roomMax   = time.Second
)

// room waits until n more items may be put, or says that they may not. Full, unless nil, is asked whenever there is no room; an error of its
// ends the wait.
//
// What it counts may have changed when the put is done: puts that are under way at the same time do not see each other.
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
