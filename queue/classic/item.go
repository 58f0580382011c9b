package classic

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
)

// Item is an item that was taken from a queue. If the queue has locks, Done, Requeue or Release ends it, and others
// may take it when the session ends before that. If it has none, the item is gone from the queue already, and Done
// does nothing. One goroutine at a time may use it.
type Item struct {
	// Elements is what was put: one body, several after PutMulti, none if none was put.
	Elements [][]byte

	base  *base
	sess  *zk.Session
	entry entry
	id    []byte // the text of our lock, random as kazoo's; nil if there is none
	made  int64  // the transaction that made the lock
	hold  *hold  // of the lock; nil if there is none
	sent  bool   // a transaction of finish was sent whose outcome was unknown
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

// Context ends with the session that the item was taken under, with its cause. If the queue has locks it also ends
// with ErrLost when another client has deleted the lock, or the session can no longer be certain that it is ours
// (zk.ErrUncertain): others may take the item some time after that (CURATOR-605). Done, Requeue and Release end it,
// with queue.ErrFinished, before they remove the lock.
func (it *Item) Context() context.Context {
	if it.hold == nil {
		return it.sess.Context()
	}
	return it.hold.ctx
}

// Guard is a check to put first into a Multi of the item's session: the server refuses the write once the lock is
// gone. It cannot tell our lock from one that was made after another client had deleted ours; Context ends then. If the
// queue has no locks there is nothing to check, and the Multi fails with zk.BadArguments.
func (it *Item) Guard() zk.Op {
	if it.id == nil {
		return zk.Op{}
	}
	return zk.CheckOp(it.lockPath(), -1)
}

// Session returns the session that the item was taken under.
func (it *Item) Session() *zk.Session { return it.sess }

// Held asks the servers whether the lock is still ours. It is kazoo's holds_lock, except that a lock that is gone is
// not an error. It returns false if the queue has no locks.
func (it *Item) Held(ctx context.Context) (bool, error) {
	if it.id == nil {
		return false, nil
	}
	locked, _, err := it.state(ctx, true)
	if it.sess.Err() != nil {
		return false, nil //nolint:nilerr // the lock ends with its session
	}
	return locked, it.base.failed(err)
}

// Done removes the item and its lock, in one transaction. After it has returned nil the item is never delivered
// again. It returns ErrLost if the item is no longer ours, or the session ended before the answer came; then the item
// may be delivered again. If ctx ends it returns ctx's cause, and is to be called again, or Release: the lock may still
// be there.
//
// If another client deletes the lock in the very moment in which the removal is under way, and a third takes the item
// at once, the removal takes the item from that one. The same goes for Requeue.
func (it *Item) Done(ctx context.Context) error {
	if it.id == nil {
		return nil
	}
	ctx, stop := attempt.Outlive(ctx, queue.ErrFinished)
	defer stop()
	return it.base.failed(it.finish(ctx))
}

// Requeue puts the item at the end of its kind: with the priority, the time or the id that it had, which Curator's
// own queues lose. If the queue has locks that is one transaction with its removal. It fails as Done does.
func (it *Item) Requeue(ctx context.Context) error {
	data := it.base.format.append(it.Elements...)
	if it.id == nil {
		return it.base.put(ctx, it.entry.key.base, data)
	}
	ctx, stop := attempt.Outlive(ctx, queue.ErrFinished)
	defer stop()
	return it.base.failed(it.finish(ctx, zk.CreateNodeOp(zk.Node{
		Path: it.base.dir + "/" + it.entry.key.base, Data: data, Mode: zk.PersistentSequential, ACL: it.base.cfg.ACL,
	})))
}

// Release removes the lock and leaves the item in its old place. It returns ErrRemoved if the queue has no locks, and
// nil if the lock is gone already. If ctx ends it returns ctx's cause; then a removal that has begun goes on.
func (it *Item) Release(ctx context.Context) error {
	if it.id == nil {
		return it.base.failed(ErrRemoved)
	}
	ctx, stop := attempt.Outlive(ctx, queue.ErrFinished)
	defer stop()
	return it.base.failed(it.unlock(ctx))
}

// finish removes item and lock, together with other writes, all in one transaction.
//
// It looks first: if the lock is not the one that we have made, another client has deleted that, and item and lock may
// be a third one's. Between the look and the transaction that may still happen, because nothing that a transaction can
// check tells locks of one name apart: their versions are all 0.
//
// If the reply is lost, the lock tells: as long as it is ours nothing was done, because only this transaction removes
// it, and finish sends it again. If lock and item are both gone, it was done. Otherwise another client has changed
// them. A request that a partition holds up is refused if the item is gone when it arrives, and does what the caller
// had asked for if the item still exists.
func (it *Item) finish(ctx context.Context, also ...zk.Op) error {
	ops := append([]zk.Op{zk.DeleteOp(it.path(), -1), zk.DeleteOp(it.lockPath(), -1)}, also...)
	for tries := 0; ; tries++ {
		locked, there, err := it.state(ctx, it.sent || tries > 0)
		switch {
		case it.sess.Err() != nil:
			return fmt.Errorf("%w: %w", ErrLost, it.sess.Err())
		case err != nil:
			return err
		case !locked && !there && (it.sent || len(also) == 0): // or another client has done it, which is as good
			it.hold.over()
			return nil
		case !locked:
			it.hold.Gone(it.lockPath())
			return fmt.Errorf("%w: its lock is gone", ErrLost)
		case !there:
			return errors.Join(fmt.Errorf("%w: another client has removed it", ErrLost), it.unlock(ctx))
		}
		it.hold.over() // or the removal would be taken for a loss
		if cause := context.Cause(it.Context()); errors.Is(cause, ErrLost) {
			return cause // the lock is about to be released, and another consumer's when the transaction arrives
		}
		_, err = it.sess.Multi(ctx, ops...)
		it.sent = it.sent || err == nil || zk.OutcomeOf(err) == zk.Unknown
		switch {
		case err == nil:
			return nil
		case it.sess.Err() != nil:
			return fmt.Errorf("%w: %w", ErrLost, it.sess.Err())
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case zk.OutcomeOf(err) != zk.Unknown && !errors.Is(err, zk.NoNode):
			if err := attempt.Again(ctx, it.sess, err); err != nil {
				return err
			}
		}
	}
}

// read takes the item's elements from its node's data. A node that cannot be read is passed over from now on.
func (it *Item) read(data []byte) error {
	var err error
	if it.Elements, err = it.base.format.parse(data); err != nil {
		it.base.passOver(it.Name())
		return &CorruptError{Path: it.path(), Data: data, Err: err}
	}
	return nil
}

func (it *Item) path() string     { return it.base.dir + "/" + it.Name() }
func (it *Item) lockPath() string { return it.base.locks + "/" + it.Name() }
