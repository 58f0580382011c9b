package queue

// Finding one item, and removing it.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-a3166700/turnstile/queue/internal/claims"
	"github.com/seed-a3166700/turnstile/queue/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// Item returns the item with that id, whatever its state, and leaves it there; ErrNotFound if there is none, because it
// is finished, or never was. It looks through the queue for it, which takes as long as listing all of it.
func (q *Queue) Item(ctx context.Context, id string) (Peeked, error) {
	x, err := q.reader.find(ctx, id)
	if err != nil {
		return Peeked{}, q.failed("find item "+id+" in", err)
	}
	return x.Peeked, nil
}

// Remove removes the item with that id for good, if it is ready, delayed, waiting or dead. If a consumer has claimed
// it, it stays, and Remove returns a *ClaimedError, which is an ErrClaimed and says which. It returns ErrNotFound if
// there is no such item. It looks for the item as Queue.Item does.
//
// One transaction decides between Remove and a consumer that claims the item at the same time: after Remove has
// returned nil the item is not delivered any more, and was not being worked on. A lost reply does not make it fail. If
// ctx ends first, the item may be removed all the same. It calls no hooks.
func (q *Queue) Remove(ctx context.Context, id string) error {
	if err := q.producer.remove(ctx, id); err != nil {
		return q.failed("remove item "+id+" from", err)
	}
	return nil
}

// find returns an item and where it is.
//
// Items mostly move from one state to the next in the order in which find looks, so that it meets an item that moves
// meanwhile. One that goes the other way it meets when it looks again.
func (r reader) find(ctx context.Context, id string) (located, error) {
	if id = strings.ToLower(id); !segment.IsID(id) {
		return located{}, ErrNotFound // without a look: no item has it
	}
	var found located
	err := r.thorough(func(r reader) error {
		for range 2 {
			for _, state := range []State{Waiting, Delayed, Ready, Claimed, Dead} {
				if err := r.each(ctx, state, func(x located) bool {
					if x.ID == id {
						found = x
					}
					return x.ID != id
				}); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return found, nil
	}
	return located{}, cmp.Or(err, ErrNotFound)
}

// remove removes an item, wherever it is by now.
func (p *producer) remove(ctx context.Context, id string) error {
	for {
		x, err := p.find(ctx, id)
		if err != nil {
			return err
		}
		if there, err := p.removeFound(ctx, x); there || err != nil {
			return err
		}
	}
}

// removeFound removes an item from where it was found. It reports whether it was still there.
func (p *producer) removeFound(ctx context.Context, x located) (there bool, err error) {
	for {
		var claim []zk.Op
		if x.State == Ready || x.State == Claimed {
			var moved bool
			if claim, moved, err = p.unclaimed(ctx, x); moved || err != nil {
				return false, err
			}
		}
		var own []zk.Op
		var txn *segment.Txn
		var next succession
		err := p.do(ctx, func(sess *zk.Session) (err error) {
			forget, err := p.forget(ctx, sess, x.key, x.ID)
			if err != nil {
				return err
			}
			own = slices.Concat([]zk.Op{zk.DeleteOp(x.path, x.version)}, claim, forget)
			next = succession{}
			if x.Group != "" && (x.State == Ready || x.State == Delayed) {
				if next, err = p.succeed(ctx, sess, x.Group); err != nil {
					return err
				}
			}
			txn = p.layout.store.NewTxn(slices.Concat(own, next.ops)...)
			return next.append(ctx, sess, txn)
		})
		if errors.Is(err, errAgain) {
			continue
		}
		if err != nil {
			return false, err
		}
		_, err = p.apply(ctx, txn.Ops()...)
		failed, refused := errors.AsType[*zk.MultiError](err)
		switch {
		case err == nil:
			if x.State == Dead {
				(&deadLetters{p.reader, p.sweeper, p}).tidy()
			}
			return true, nil
		case !refused:
			return false, err
		case txn.Stale(err), next.changed(failed, len(own)):
		case !errors.Is(failed, zk.NoNode) && !errors.Is(failed, zk.BadVersion):
			return false, err
		case failed.Index == 0:
			return false, nil // or it is finished, or removed
		default:
			// A consumer was quicker to claim it, or another item, or its key has changed: the next look tells.
		}
	}
}

// unclaimed returns the check that an item of a ready list is still free, as it is now. It returns a *ClaimedError
// if a consumer has the item, and moved if the item is not there any more, or on its way.
//
// An item is free if it stands behind the cursor, or in a free claim. To claim it a consumer changes the one or
// deletes the other.
func (p *producer) unclaimed(ctx context.Context, x located) (check []zk.Op, moved bool, err error) {
	ready := p.layout.readyList(x.at.Priority)
	var cursor segment.Cursor
	var version int32
	if err := p.do(ctx, func(sess *zk.Session) error {
		if err := sess.Sync(ctx, ready.Dir); err != nil { // a server that lags would show the same again and again
			return err
		}
		data, stat, err := sess.Get(ctx, ready.Dir)
		cursor, _ = segment.ParseCursor(data)
		version = stat.Version
		moved = errors.Is(err, zk.NoNode)
		if moved {
			return nil
		}
		return err
	}); err != nil || moved {
		return nil, moved, err
	}
	if x.at.Compare(claims.PlaceOf(x.at.Priority, cursor)) >= 0 {
		return []zk.Op{zk.CheckOp(ready.Dir, version)}, false, nil
	}
	list, err := p.listClaims(ctx)
	if err != nil {
		return nil, false, err
	}
	for i := range list {
		c := &list[i]
		if c.Priority != x.at.Priority || c.Segment != x.at.Segment || c.Item > x.at.Item {
			continue
		}
		s, version, err := p.readRange(ctx, c)
		if err != nil {
			return nil, false, err
		}
		if x.at.Item < s.First || x.at.Item > s.Last || slices.Contains(s.Except, x.at.Item) {
			continue
		}
		if c.free {
			return []zk.Op{zk.CheckOp(c.path, version)}, false, nil
		}
		owner, err := p.consumer(ctx, c.owner)
		if err != nil {
			return nil, false, err
		}
		return nil, false, &ClaimedError{Consumer: *owner}
	}
	return nil, true, nil
}

// ClaimedError says which consumer has an item that was to be removed. It is an ErrClaimed.
type ClaimedError struct{ Consumer Consumer }

// Error names the consumer.
func (e *ClaimedError) Error() string {
	c := &e.Consumer
	if c.Host == "" {
		return fmt.Sprintf("%v: consumer %s", ErrClaimed, c.ID)
	}
	return fmt.Sprintf("%v: consumer %s, which is %s, process %d on %s", ErrClaimed, c.ID, c.Program, c.PID, c.Host)
}

// Unwrap returns ErrClaimed.
func (e *ClaimedError) Unwrap() error { return ErrClaimed }
