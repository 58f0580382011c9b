package queue

// What the parts of a queue share.

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/queue/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// base is what the parts of a Queue share: its configuration, its nodes and the session to reach them, the servers'
// time, and its life.
type base struct {
	client *zk.Client
	cfg    Config
	clock  clock
	layout layout
	access attempt.Access
	ctx    context.Context //nolint:containedctx // ends with Close
	stop   context.CancelCauseFunc
	dead   chan struct{} // one slot: there is another dead letter
	look   bool          // it only looks: it makes no node, so one may be missing

	mu    sync.Mutex     // guards known, and that nothing begins once the queue is closed
	known *zk.Session    // under which all the queue's nodes existed
	wg    sync.WaitGroup // goroutines in the background
}

// unlessClosed calls f unless the queue is closed, and reports whether it has. The queue is not closed meanwhile.
func (b *base) unlessClosed(f func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ctx.Err() != nil {
		return false
	}
	f()
	return true
}

// background runs f in the background unless the queue is closed. Close waits for it.
func (b *base) background(f func()) { b.unlessClosed(func() { b.wg.Go(f) }) }

// stopAll ends what goes on in the queue, and reports whether it is the first to do so.
func (b *base) stopAll() bool { return b.unlessClosed(func() { b.stop(ErrClosed) }) }

// run is attempt.Run under a session under which the queue's nodes exist. It also calls try again if one of them has
// gone.
func run[T any](ctx context.Context, b *base, try func(*zk.Session) (T, error)) (T, error) {
	return attempt.Run(ctx, b.client, func(sess *zk.Session) (got T, err error) {
		if err = b.prepare(ctx, sess); err != nil {
			return got, err
		}
		if got, err = try(sess); b.missing(err) {
			err = attempt.ErrGone
		}
		return got, err
	})
}

// do is run for what has no result.
func (b *base) do(ctx context.Context, try func(*zk.Session) error) error {
	_, err := run(ctx, b, func(sess *zk.Session) (none struct{}, err error) { return none, try(sess) })
	return err
}

// session returns the live session of the client, after making sure that the queue's nodes exist.
func (b *base) session(ctx context.Context) (*zk.Session, error) {
	return run(ctx, b, func(sess *zk.Session) (*zk.Session, error) { return sess, nil })
}

// prepare makes sure that the queue's nodes exist, unless it is closed.
func (b *base) prepare(ctx context.Context, sess *zk.Session) error {
	if b.ctx.Err() != nil {
		return ErrClosed
	}
	return b.makeNodes(ctx, sess)
}

// makeNodes makes sure that the queue's nodes exist, also after Close.
func (b *base) makeNodes(ctx context.Context, sess *zk.Session) error {
	b.mu.Lock()
	known := b.known == sess
	b.mu.Unlock()
	if known || b.look {
		return nil
	}
	for tries := 0; ; tries++ {
		err := b.build(ctx, sess)
		switch {
		case err == nil:
			b.mu.Lock()
			defer b.mu.Unlock()
			b.known = sess
			return nil
		case !errors.Is(err, zk.NoNode): // which another client has deleted meanwhile
			return err
		case tries == attempt.MaxRemakes:
			return attempt.Vanishes(b.layout.path(dirReady), err)
		}
	}
}

// build creates those of the queue's nodes that do not exist, where it may.
func (b *base) build(ctx context.Context, sess *zk.Session) error {
	for _, step := range []func(context.Context, *zk.Session) error{b.mayUse, b.layout.build, b.mayUse} {
		if err := step(ctx, sess); err != nil {
			return err
		}
	}
	return nil
}

// mayUse returns an error if the queue's node, or one above it, grants more than it is to.
func (b *base) mayUse(ctx context.Context, sess *zk.Session) error {
	return b.access.Check(ctx, sess, b.layout.root)
}

// recheckNodes makes the next call of session check the queue's nodes again: one of them was missing.
func (b *base) recheckNodes() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known = nil
}

// missing reports whether err says that one of the queue's nodes is missing. The next call of session creates it.
func (b *base) missing(err error) bool {
	if b.look || !errors.Is(err, zk.NoNode) {
		return false
	}
	if _, ok := errors.AsType[guardError](err); ok {
		return false
	}
	b.recheckNodes()
	return true
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

// failed adds to err which queue it is about and, if waiting was cut short without a connection, why there is none.
func (b *base) failed(what string, err error) error {
	return fmt.Errorf("queue: %s %s: %w", what, b.layout.root, attempt.Explain(b.client, err))
}
