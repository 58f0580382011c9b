package queue

// What the parts of a queue share.

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/seed-a3166700/turnstile/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// base is what the parts of a Queue share: its configuration, its nodes and the session to reach them, the servers'
// time, and its life.
type base struct {
	client *zk.Client
	cfg    Config
	clock  clock
	layout layout
	ctx    context.Context //nolint:containedctx // ends with Close
	stop   context.CancelCauseFunc
	dead   chan struct{} // one slot: there is another dead letter

	mu    sync.Mutex  // guards known
	known *zk.Session // under which all the queue's nodes existed
}

// session returns the live session of the client, after making sure that the queue's nodes exist.
func (b *base) session(ctx context.Context) (*zk.Session, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	for {
		sess, err := b.client.Session(ctx)
		if err != nil {
			return nil, err
		}
		b.mu.Lock()
		known := b.known == sess
		b.mu.Unlock()
		switch {
		case b.ctx.Err() != nil:
			return nil, ErrClosed
		case known:
			return sess, nil
		}
		err = b.layout.build(ctx, sess)
		switch {
		case err == nil:
			b.mu.Lock()
			b.known = sess
			b.mu.Unlock()
			return sess, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case sess.Err() == nil && !errors.Is(err, zk.ErrConnectionLost):
			return nil, err
		}
	}
}

// recheckNodes makes the next call of session check the queue's nodes again: one of them was missing.
func (b *base) recheckNodes() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known = nil
}

// missing reports whether err says that one of the queue's nodes is missing. The next call of session creates it.
func (b *base) missing(err error) bool {
	if !errors.Is(err, zk.NoNode) {
		return false
	}
	if _, ok := errors.AsType[guardError](err); ok {
		return false
	}
	b.recheckNodes()
	return true
}

// retryRead calls f, which only reads, until no broken connection and no end of a session interrupts it.
func (b *base) retryRead(ctx context.Context, f func(*zk.Session) error) error {
	for {
		sess, err := b.session(ctx)
		if err != nil {
			return err
		}
		err = f(sess)
		if err == nil || ctx.Err() != nil || !b.again(ctx, sess, err) && !b.missing(err) {
			return err
		}
	}
}

// latest returns a node as it is now, also if the server lags behind to which the session is connected.
func latest(ctx context.Context, sess *zk.Session, path string) (zk.Data, error) {
	b := sess.Batch()
	synced, node := b.Sync(path), b.Get(path)
	b.Send()
	if _, err := synced.Get(ctx); err != nil {
		return zk.Data{}, err
	}
	return node.Get(ctx)
}

// again reports whether it is worth trying again after err: the connection broke, or the session ended.
func (b *base) again(ctx context.Context, sess *zk.Session, err error) bool {
	return ctx.Err() == nil && (sess.Err() != nil || errors.Is(err, zk.ErrConnectionLost))
}

// largest returns how large an item's data may be, in bytes.
func (b *base) largest() int {
	return b.cfg.MaxPacket - headroom - 8*(len(b.layout.root)+b.layout.store.ACLSize())
}

// target returns the list that an item goes to.
func (b *base) target(r *segment.Record) *segment.List {
	if r.Delay == 0 && r.Due == 0 {
		return b.layout.readyList(r.Priority)
	}
	due := r.Due
	if due == 0 {
		due = b.clock.now() + r.Delay
	}
	return b.layout.bucket(bucketFor(due, r.Delay))
}

// failed adds to err which queue it is about and, if waiting was cut short without a server in reach, why there was
// none.
func (b *base) failed(what string, err error) error {
	if errors.Is(err, ErrEmpty) || errors.Is(err, ErrFull) || errors.Is(err, ErrTooLarge) {
		return err
	}
	last := b.client.LastError()
	if last != nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		return fmt.Errorf("queue: %s %s: %w (no server answers: %w)", what, b.layout.root, err, last)
	}
	return fmt.Errorf("queue: %s %s: %w", what, b.layout.root, err)
}
