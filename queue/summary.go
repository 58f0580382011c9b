package queue

// What a queue tells at a glance.

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// Summary is what Summarize tells of a queue.
type Summary struct {
	Counts

	// Oldest is since when the next item of some priority has been ready, the longest of all priorities, by the
	// servers' clock, as for Queue.Age. It is zero if none is ready.
	Oldest time.Time
	Paused *Pause // nil if the queue is not paused

	Consumers int              // how many there are
	Busiest   []ActiveConsumer // those with the most items, as many as were asked for, as of Queue.Consumers

	ready fills // for Since
}

// Summarize counts the items of the queue at path, finds the oldest, and tells of so many of the consumers at most, as
// Len, Age and Consumers of a Queue do. It needs no more than the right to read: it writes nothing and makes nothing,
// also if the queue is removed meanwhile. It is for programs that show many queues: each consumer that is told of costs
// a request. It returns ErrNotQueue if no queue of this package is there.
func Summarize(ctx context.Context, client *zk.Client, path string, consumers int) (s Summary, err error) {
	q, err := lookAt(ctx, client, path)
	if err != nil {
		return Summary{}, err
	}
	err = q.do(ctx, func(sess *zk.Session) error {
		t, err := q.reader.count(ctx, sess)
		if err != nil {
			return err
		}
		s.Counts, s.ready, s.Consumers = t.Counts, t.ready, len(t.claimed)
		s.Busiest, err = q.reader.consumers(ctx, sess, t.claimed, consumers)
		return err
	})
	if err != nil {
		return Summary{}, q.failed("summarize", err)
	}
	if s.Paused, err = q.Paused(ctx); err != nil {
		return Summary{}, err
	}
	if s.Ready > 0 {
		_, s.Oldest, err = q.reader.head(ctx)
	}
	if err != nil && !errors.Is(err, ErrEmpty) { // a consumer was quicker
		return Summary{}, q.failed("summarize", err)
	}
	return s, nil
}

// ItemsOf yields the items of the queue at path that are in a state, as Queue.Items does. Like Summarize it needs no
// more than the right to read, and makes nothing.
func ItemsOf(ctx context.Context, client *zk.Client, path string, state State) iter.Seq2[Peeked, error] {
	return func(yield func(Peeked, error) bool) {
		q, err := lookAt(ctx, client, path)
		if err != nil {
			yield(Peeked{}, err)
			return
		}
		q.Items(ctx, state)(yield)
	}
}

// ItemOf returns the item with that id of the queue at path, as Queue.Item does. Like Summarize it needs no more than
// the right to read, and makes nothing. A long queue takes long to look through: end ctx to bound that.
func ItemOf(ctx context.Context, client *zk.Client, path, id string) (Peeked, error) {
	q, err := lookAt(ctx, client, path)
	if err != nil {
		return Peeked{}, err
	}
	return q.Item(ctx, id)
}

// lookAt returns the queue at path for calls that only read.
func lookAt(ctx context.Context, client *zk.Client, path string) (*Queue, error) {
	q, err := New(client, path, Config{})
	if err != nil {
		return nil, err
	}
	q.look = true
	if err := q.isQueue(ctx); err != nil {
		return nil, q.failed("look at", err)
	}
	return q, nil
}

// isQueue returns ErrNotQueue if the queue's own node does not say that there is a queue.
func (b *base) isQueue(ctx context.Context) error {
	data, err := attempt.Run(ctx, b.client, func(sess *zk.Session) ([]byte, error) {
		data, _, err := sess.Get(ctx, b.layout.root)
		return data, err
	})
	switch {
	case errors.Is(err, zk.NoNode):
		return fmt.Errorf("%w: there is no node at %s", ErrNotQueue, b.layout.root)
	case err != nil:
		return err
	case string(data) != mark:
		return fmt.Errorf("%w: the node at %s belongs to something else", ErrNotQueue, b.layout.root)
	}
	return nil
}
