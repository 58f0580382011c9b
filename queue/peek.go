package queue

// Looking at the next item.

import (
	"context"
	"errors"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// Peek returns the item that the next consumer without a claim of its own would get, and leaves it there; ErrEmpty if
// none is ready. Delayed items that are due count once a consumer has looked for items.
func (q *Queue) Peek(ctx context.Context) (Peeked, error) {
	p, _, err := q.reader.head(ctx)
	if err != nil {
		return Peeked{}, q.failed("peek", err)
	}
	return p, nil
}

// Age returns how long the next item of some priority has been ready, the longest of all priorities, by the servers'
// clock: the latency of the queue. A delay does not count, nor does the time before an attempt that was put off, or
// before a requeue. An item that was given back at once, or left behind by a consumer that is gone, keeps its place
// and its age. Age returns ErrEmpty if none is ready. It needs the right to write, because only a write tells the
// servers' time.
func (q *Queue) Age(ctx context.Context) (time.Duration, error) {
	_, oldest, err := q.reader.head(ctx)
	if err != nil {
		return 0, q.failed("age", err)
	}
	if q.clock.now() == 0 {
		// Only a write tells the servers' time.
		err := q.do(ctx, func(sess *zk.Session) error {
			r, err := q.producer.receipts.Get(ctx, sess)
			q.producer.receipts.Put(r)
			return err
		})
		if err != nil {
			return 0, q.failed("age", err)
		}
	}
	return max(0, time.UnixMilli(q.clock.now()).Sub(oldest)), nil
}

// fewItems is how many items are read at a time when one is enough.
const fewItems = 16

// head returns the next item, and the earliest time since which the next of any priority is ready.
func (r reader) head(ctx context.Context) (first Peeked, oldest time.Time, err error) {
	r.few = true
	found := false
	err = r.eachHead(ctx, func(p Peeked) {
		if !found {
			first, found = p, true
		}
		if oldest.IsZero() || p.ready.Before(oldest) {
			oldest = p.ready
		}
	})
	if err == nil && !found {
		err = ErrEmpty
	}
	return first, oldest, err
}

// eachHead calls f with the first ready item of each priority.
func (r reader) eachHead(ctx context.Context, f func(Peeked)) error {
	priorities, err := r.priorities(ctx)
	if err != nil {
		return err
	}
	for _, p := range priorities {
		err := r.eachReadyOf(ctx, p, func(x located) bool {
			f(x.Peeked)
			return false
		})
		if err != nil && !errors.Is(err, errEnough) {
			return err
		}
	}
	return nil
}
