package queue

import (
	"context"
	"errors"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// Peeked is an item that somebody has looked at and not taken.
type Peeked struct {
	ID         string
	Body       []byte
	Headers    map[string]string
	Priority   int
	EnqueuedAt time.Time
}

// Peek returns the item that the next consumer without a claim of its own would be given, and leaves it there; ErrEmpty if none is ready.
// Delayed items that are due count once a consumer has looked for items.
func (q *Queue) Peek(ctx context.Context) (Peeked, error) {
	p, _, err := q.head(ctx)
	if err != nil {
		return Peeked{}, q.failed("peek", err)
	}
	return p, nil
}

// Age returns for how long the item that is ready and was put first among the next of each priority has been in the queue, by the servers'
// clock: the latency of the queue. It returns ErrEmpty if none is ready.
func (q *Queue) Age(ctx context.Context) (time.Duration, error) {
	_, oldest, err := q.head(ctx)
	if err != nil {
		return 0, q.failed("age", err)
	}
	if q.clock.now() == 0 {
		// Only what we write tells the servers' time.
		sess, err := q.session(ctx)
		if err != nil {
			return 0, q.failed("age", err)
		}
		r, err := q.receipts.get(ctx, sess)
		if err != nil {
			return 0, q.failed("age", err)
		}
		q.receipts.put(r)
	}
	return max(0, time.UnixMilli(q.clock.now()).Sub(oldest)), nil
}

// head returns the next item, and the earliest time of any item that is next in its line or was given back.
func (q *Queue) head(ctx context.Context) (first Peeked, oldest time.Time, err error) {
	found := false
	see := func(p Peeked) {
		if !found {
			first, found = p, true
		}
		if oldest.IsZero() || p.EnqueuedAt.Before(oldest) {
			oldest = p.EnqueuedAt
		}
	}
	err = q.look(ctx, func(sess *zk.Session) error {
		found, oldest = false, time.Time{}
		names, _, err := sess.Children(ctx, q.path(dirReady))
		if err != nil {
			return err
		}
		claims, err := q.listClaims(ctx, sess)
		if err != nil {
			return err
		}
		for _, p := range numbers(names, parseLine) {
			for i := range claims {
				if claims[i].priority == p && claims[i].free {
					if err := q.peekClaim(ctx, sess, &claims[i], see); err != nil {
						return err
					}
				}
			}
			if err := q.peekLine(ctx, sess, p, see); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && !found {
		err = ErrEmpty
	}
	return first, oldest, err
}

// peekClaim sees the first item of a claim that is free.
func (q *Queue) peekClaim(ctx context.Context, sess *zk.Session, c *claim, see func(Peeked)) error {
	data, _, err := sess.Get(ctx, q.path(dirClaims, c.name))
	if errors.Is(err, zk.NoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	s, ok := parseSpan(data)
	if !ok {
		return nil
	}
	for _, n := range s.items() {
		if ok, err := q.peekItem(ctx, sess, place{c.priority, c.segment, n}, see); ok || err != nil {
			return err
		}
	}
	return nil
}

// peekLine sees the item behind a line's cursor.
func (q *Queue) peekLine(ctx context.Context, sess *zk.Session, priority int, see func(Peeked)) error {
	line := q.line(priority)
	data, _, err := sess.Get(ctx, line.dir)
	at, ok := parseCursor(data)
	if errors.Is(err, zk.NoNode) || err == nil && !ok {
		return nil
	}
	if err != nil {
		return err
	}
	list, err := line.segments(ctx, sess)
	if err != nil {
		return err
	}
	for _, n := range list {
		if n < at.segment {
			continue
		}
		item := 0
		if n == at.segment {
			item = at.item
		}
		stat, ok, err := sess.Exists(ctx, line.segment(n))
		if err != nil {
			return err
		}
		for ; ok && item < creations(stat); item++ {
			if ok, err := q.peekItem(ctx, sess, place{priority, n, item}, see); ok || err != nil {
				return err
			}
		}
	}
	return nil
}

// peekItem sees an item, if it is there.
func (q *Queue) peekItem(ctx context.Context, sess *zk.Session, at place, see func(Peeked)) (bool, error) {
	data, stat, err := sess.Get(ctx, q.line(at.priority).segment(at.segment)+"/"+itemName(at.item))
	if errors.Is(err, zk.NoNode) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	r, err := decodeRecord(data)
	if err != nil {
		return false, nil //nolint:nilerr // what is no item is no item; a consumer moves it out of the way
	}
	put := stat.Ctime
	if r.enqueued > 0 {
		put = r.enqueued
	}
	see(Peeked{ID: r.name(), Body: r.body, Headers: r.headers, Priority: at.priority, EnqueuedAt: time.UnixMilli(put)})
	return true, nil
}
