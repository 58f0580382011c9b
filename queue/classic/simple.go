package classic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// Simple is ZooKeeper's DistributedQueue and Curator's SimpleDistributedQueue: first in, first out, and removed when
// taken. Its methods have the names that theirs have, and may be called from any goroutine.
type Simple struct{ base *base }

// NewSimple returns the queue at path. It asks no server.
func NewSimple(client *zk.Client, path string, cfg Config) (*Simple, error) {
	d, err := newBase(client, path, attempt.Beside(path, "receipts"), cfg, kind{naming: simpleNames, format: plain})
	if err != nil {
		return nil, err
	}
	return &Simple{d}, nil
}

// Offer puts an item at the end. When it has returned nil the item is in, once. After an error it is not in, except
// that after an UnresolvedError it may be.
func (q *Simple) Offer(ctx context.Context, body []byte) error {
	return q.base.put(ctx, simplePrefix, body)
}

// Peek returns the first item and leaves it there; false if there is none.
func (q *Simple) Peek(ctx context.Context) ([]byte, bool, error) { return orNone(q.Element(ctx)) }

// Element is Peek, but returns ErrEmpty if there is none.
func (q *Simple) Element(ctx context.Context) ([]byte, error) {
	for {
		items, err := q.base.all(ctx)
		if err != nil {
			return nil, err
		}
		if len(items) == 0 {
			return nil, q.base.failed(ErrEmpty)
		}
		for _, e := range items {
			body, err := q.read(ctx, e.name)
			if !errors.Is(err, zk.NoNode) { // or another consumer has taken it meanwhile
				return body, err
			}
		}
	}
}

func (q *Simple) read(ctx context.Context, name string) (body []byte, err error) {
	err = q.base.run(ctx, func(sess *zk.Session) error {
		body, _, err = sess.Get(ctx, q.base.dir+"/"+name)
		return err
	})
	return body, err
}

// Poll takes the first item; false if there is none.
func (q *Simple) Poll(ctx context.Context) ([]byte, bool, error) { return orNone(q.Remove(ctx)) }

// Remove is Poll, but returns ErrEmpty if there is none.
func (q *Simple) Remove(ctx context.Context) ([]byte, error) { return bodyOf(q.base.take(ctx, false)) }

// Take takes the first item, and waits until there is one. If ctx ends first it returns ctx's cause. If ctx ends
// while it is taking an item, it waits for the servers' answer, at most until the session ends, and returns the item
// if it got it.
func (q *Simple) Take(ctx context.Context) ([]byte, error) { return bodyOf(q.base.take(ctx, true)) }

var errTimeUp = errors.New("the time to wait for an item is up")

// PollFor is Take, but waits no longer than timeout; then it returns false. It returns an error, and not false, if it
// could not look because no server answered. If timeout is not positive, PollFor is Poll: it looks once.
func (q *Simple) PollFor(ctx context.Context, timeout time.Duration) ([]byte, bool, error) {
	if timeout <= 0 {
		return q.Poll(ctx)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeUp)
	defer cancel()
	body, err := q.Take(ctx)
	if errors.Is(err, errTimeUp) {
		err = ErrEmpty
		if last := q.base.client.LastError(); last != nil {
			err = q.base.failed(fmt.Errorf("%w (no server answers: %w)", errTimeUp, last))
		}
	}
	return orNone(body, err)
}

func bodyOf(item *Item, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return item.Body(), nil
}

func orNone(body []byte, err error) ([]byte, bool, error) {
	if errors.Is(err, ErrEmpty) {
		return nil, false, nil
	}
	return body, err == nil, err
}
