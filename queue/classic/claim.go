package classic

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// claim takes an item by creating its lock, a node that goes with the session.
//
// It requests the lock and reads the item in one write, in that order, so that an item that exists then is ours: a
// consumer that took it before has removed it before the lock, or with it. The transaction that made the lock tells it
// from others of its name; as long as that is unknown, the lock's random text does.
//
// If the caller leaves, claim still waits for the answers, at most until the session ends, so that it leaves no
// unknown lock behind.
func (d *base) claim(ctx context.Context, sess *zk.Session, e entry) (*Item, error) {
	item := &Item{base: d, sess: sess, entry: e, id: []byte(strings.ReplaceAll(attempt.NewGUID(), "-", ""))}
	after := context.WithoutCancel(ctx)
	read, err := item.lock(ctx)
	for tries := 0; errors.Is(err, zk.NoNode); tries++ {
		if tries == maxTries {
			return nil, attempt.Vanishes(item.lockPath(), err)
		}
		if err := d.makeDir(after, sess, d.locks); err != nil {
			return nil, err
		}
		read, err = item.lock(ctx)
	}
	switch {
	case err == nil:
	case errors.Is(err, zk.NodeExists):
		return nil, nil
	case sess.Err() != nil: // then it does not matter what became of the lock
		return nil, sess.Err()
	case errors.Is(err, ErrUnresolved): // the lock may exist, or come late; it would stay as long as the session
		attempt.RemoveCreated(sess, attempt.Name{
			Dir: d.locks, Prefix: e.name, Fixed: true,
			Made: func(text []byte) bool { return bytes.Equal(text, item.id) },
		})
		return nil, err
	default:
		return nil, err
	}
	data, err := read(after)
	switch {
	case errors.Is(err, zk.NoNode): // another consumer finished it before we had the lock
		return nil, item.unlock(after)
	case err != nil:
		return nil, errors.Join(err, item.unlock(after))
	}
	if err := item.read(data.Data); err != nil {
		return nil, errors.Join(err, item.unlock(after))
	}
	switch err := item.begin(after); {
	case errors.Is(err, ErrLost):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return item, nil
}

// lock creates the item's lock. Read returns the item's content since then.
func (it *Item) lock(ctx context.Context) (read func(context.Context) (zk.Data, error), err error) {
	var got *zk.Future[zk.Data]
	lock := zk.CreateNodeOp(zk.Node{Path: it.lockPath(), Data: it.id, Mode: zk.Ephemeral, ACL: it.base.cfg.ACL})
	it.made, err = it.base.receipts.do(ctx, it.sess, func(b *zk.Batch) { got = b.Get(it.path()) }, lock)
	return func(ctx context.Context) (zk.Data, error) {
		return attempt.Ask(ctx, it.sess, func() (data zk.Data, err error) {
			if got != nil {
				data, err = got.Get(ctx)
				got = nil
				return data, err
			}
			data.Data, data.Stat, err = it.sess.Get(ctx, it.path())
			return data, err
		})
	}, err
}

// state finds out whether the lock is ours and whether the item exists. Behind a fence that is as of now, after all
// that was sent before, whatever the server knew.
func (it *Item) state(ctx context.Context, fenced bool) (locked, there bool, err error) {
	err = attempt.Do(ctx, it.sess, func() error {
		b := it.sess.Batch()
		passed := func(context.Context) error { return nil }
		if fenced {
			passed = attempt.Fence(b)
		}
		lock, item := b.Exists(it.lockPath()), b.Exists(it.path())
		b.Send()
		err := passed(ctx)
		held, lockErr := lock.Get(ctx)
		seen, itemErr := item.Get(ctx)
		locked, there = held.Exists && held.Stat.Czxid == it.made, seen.Exists
		return errors.Join(err, lockErr, itemErr)
	})
	return locked && err == nil, there && err == nil, err
}

// unlock removes the lock, and waits until that is done or the session has ended, which removes it as well. If the
// lock is gone, or is another client's by now, that is success. It fails if the server refuses, or if ctx ends first,
// while the removal goes on. It looks before each attempt, because the lock has a name that other clients use as well;
// see finish for what remains.
func (it *Item) unlock(ctx context.Context) error {
	it.hold.over()
	return attempt.RemoveBy(func() error {
		ctx := context.Background()
		for tries := 0; ; tries++ {
			locked, _, err := it.state(ctx, tries > 0)
			if err == nil && locked {
				_, err = it.base.receipts.do(ctx, it.sess, nil, zk.DeleteOp(it.lockPath(), -1))
			}
			switch {
			case err == nil, errors.Is(err, zk.NoNode), it.sess.Err() != nil: // the lock ends with its session
				return nil //nolint:nilerr // see above
			case zk.OutcomeOf(err) == zk.Refused && !zk.Temporary(err) && !errors.Is(err, ErrUnresolved):
				return err
			}
			_ = attempt.Pause(ctx, it.sess, tries)
		}
	}).Wait(ctx)
}
