package classic

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-a3166700/turnstile/zk"
)

// An Item was taken from a queue. Where the queue has locks it is to be ended by Done, Requeue or Release, and is others' to take when the
// session ends before that. Where it has none the item is gone from the queue already, and Done does nothing.
// It is used by one goroutine at a time.
type Item struct {
	// Elements is what was put: one body, several after PutMulti, none if somebody has put none.
	Elements [][]byte

	depot *depot
	sess  *zk.Session
	entry entry
	id    []byte // what our lock says; nil if there is none
	hold  *hold  // of the lock; nil likewise
}

// Body returns the first element, nil if there is none.
func (it *Item) Body() []byte {
	if len(it.Elements) == 0 {
		return nil
	}
	return it.Elements[0]
}

// Name returns the name of the item's node.
func (it *Item) Name() string { return it.entry.name }

// Context ends with the session that the item was taken under, with its cause. Where the queue has locks it also ends with ErrLost when the
// session can no longer be certain that the lock is ours (zk.ErrUncertain): others may take the item some time after that (CURATOR-605).
func (it *Item) Context() context.Context {
	if it.hold == nil {
		return it.sess.Context()
	}
	return it.hold.ctx
}

// Guard is a check to put first into a Multi of the item's session: the write is refused once the lock is gone. Where the queue has no
// locks there is nothing to check, and the Multi fails with zk.BadArguments.
func (it *Item) Guard() zk.Op {
	if it.id == nil {
		return zk.Op{}
	}
	return zk.CheckOp(it.lockPath(), -1)
}

// Session returns the session that the item was taken under.
func (it *Item) Session() *zk.Session { return it.sess }

// Held asks the servers whether the lock is still ours: kazoo's holds_lock, but that a lock that is gone is no error. It is false where
// the queue has no locks.
func (it *Item) Held(ctx context.Context) (bool, error) {
	if it.id == nil {
		return false, nil
	}
	locked, _, err := it.look(ctx)
	if it.sess.Err() != nil {
		return false, nil //nolint:nilerr // the lock ends with its session
	}
	return locked, err
}

// Done removes the item and its lock, in one transaction. After it has returned nil the item is never delivered again. It returns ErrLost if the item
// is not ours any more, or the session ended before the answer came; the item may be delivered again then. If ctx ends it returns
// ctx's cause, and may be called again.
func (it *Item) Done(ctx context.Context) error {
	if it.id == nil {
		return nil
	}
	return it.finish(ctx)
}

// Requeue puts the item at the end of its kind: with the priority, the time or the id that it had, which Curator's own queues lose. Where the
// queue has locks that is one transaction with its removal. Errors are as of Done.
func (it *Item) Requeue(ctx context.Context) error {
	data := it.depot.format.append(it.Elements...)
	if it.id == nil {
		return it.depot.put(ctx, it.entry.key.base, data)
	}
	return it.finish(ctx, zk.CreateNodeOp(zk.Node{
		Path: it.depot.dir + "/" + it.entry.key.base, Data: data, Mode: zk.PersistentSequential, ACL: it.depot.cfg.ACL,
	}))
}

// Release removes the lock and leaves the item in its old place. It returns ErrRemoved where the queue has no locks, and nil if the lock
// is gone already. If ctx ends it returns ctx's cause; a removal that has begun goes on then.
func (it *Item) Release(ctx context.Context) error {
	if it.id == nil {
		return ErrRemoved
	}
	locked, _, err := it.look(ctx)
	switch {
	case it.sess.Err() != nil:
		return nil //nolint:nilerr // the lock ends with its session
	case err != nil:
		return err
	case !locked:
		return nil
	}
	return it.unlock(ctx)
}

// finish removes item and lock and does also what else is to be done, all in one transaction.
//
// If the reply is lost, the lock tells: as long as it is ours nothing was done, because only this transaction removes it, and it is sent
// again. If lock and item are both gone, it was done. Otherwise another client has changed them. A request that a
// partition holds up is refused if the item is gone when it arrives, and does what the caller had asked for if the item
// is still there.
func (it *Item) finish(ctx context.Context, also ...zk.Op) error {
	ops := append([]zk.Op{zk.DeleteOp(it.path(), -1), zk.DeleteOp(it.lockPath(), -1)}, also...)
	for {
		_, err := it.sess.Multi(ctx, ops...)
		switch {
		case err == nil:
			it.hold.over()
			return nil
		case it.sess.Err() != nil:
			return fmt.Errorf("%w: %w", ErrLost, it.sess.Err())
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		gone := errors.Is(err, zk.NoNode)
		if !gone && zk.OutcomeOf(err) != zk.Unknown {
			return err
		}
		locked, there, lookErr := it.look(ctx)
		switch {
		case it.sess.Err() != nil:
			return fmt.Errorf("%w: %w", ErrLost, it.sess.Err())
		case lookErr != nil:
			return lookErr
		case !locked && !there:
			it.hold.over()
			return nil
		case !locked:
			return fmt.Errorf("%w: its lock is gone", ErrLost)
		case !there:
			return errors.Join(fmt.Errorf("%w: somebody else has removed it", ErrLost), it.unlock(ctx))
		}
	}
}

// read takes the item's elements from its node. A node that cannot be read is passed over from now on.
func (it *Item) read(data []byte) error {
	var err error
	if it.Elements, err = it.depot.format.parse(data); err != nil {
		it.depot.passOver(it.Name())
		return &CorruptError{Path: it.path(), Data: data, Err: err}
	}
	return nil
}

func (it *Item) path() string     { return it.depot.dir + "/" + it.Name() }
func (it *Item) lockPath() string { return it.depot.locks + "/" + it.Name() }
