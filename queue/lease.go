package queue

// A claim of this consumer.

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/queue/internal/claims"
	"github.com/seed-a3166700/turnstile/queue/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// lease is a claim of this consumer: a range of a segment's items, of which some are delivered and some still
// buffered.
type lease struct {
	co           *consumer
	path         string
	list         *segment.List
	claims.Place // of its first item
	token        int64
	asked        time.Time // when the consumer was about to create its node
	filled       time.Time // when its items had been read
	size         int
	writing      chan struct{} // one slot, the write semaphore: held to write the claim's node; pending marks share it

	leaseState
}

// leaseState is what changes of a lease. The dispatcher's mutex guards it, and is held while its methods are called.
type leaseState struct {
	claimed        claims.Range // as the node says
	pendingMarks   int          // under way
	pendingThrough int          // while there are any: through which item the last one marks
	writers        int          // goroutines that wait to write
	buffer         []bufferedItem
	open           int  // delivered and not finished
	nodeGone       bool // its node is deleted, or about to be
	returning      bool // the buffered items are about to be given back: until then the claim's node must stay
}

// bufferedItem is an item that is not delivered yet.
type bufferedItem struct {
	seq     int
	rec     *segment.Record
	created int64
}

// maxLarge is how many items of a segment of large ones are claimed at once.
const maxLarge = 4

// giveBack makes the claimed items from the given one on free for all, in their places.
func (l *lease) giveBack(ctx context.Context, from int) error {
	d, sess := l.co.d, l.co.sess
	if err := l.beginWrite(ctx); err != nil {
		return err
	}
	defer l.endWrite()
	for {
		d.mu.Lock()
		rest, kept := l.claimed.From(from), l.claimed
		last := l.open == 0 && len(l.buffer) == 0
		free := l.co.freePath(l.At(from))
		d.mu.Unlock()
		kept.Last = from - 1
		kept.Delivered = min(kept.Delivered, kept.Last)
		ops := []zk.Op{
			zk.DeleteOp(l.path, -1),
			d.layout.store.CreateOp(free, rest.Encode()),
			zk.SetOp(l.list.Change, nil, -1),
		}
		if !last {
			ops[0] = zk.SetOp(l.path, kept.Encode(), -1)
		}
		_, err := sess.Multi(ctx, ops...)
		if zk.OutcomeOf(err) == zk.Unknown && err != nil && l.co.err() == nil && ctx.Err() == nil {
			// Only this consumer writes the node, so it tells whether it has.
			s, there, lookErr := l.readNode(ctx)
			if lookErr != nil {
				return errors.Join(err, lookErr) // it is unknown whether the items were given back
			}
			if there == last || there && s.Last != kept.Last {
				continue
			}
			err = nil
		}
		if failed, ok := errors.AsType[*zk.MultiError](err); ok && errors.Is(err, zk.NoNode) {
			switch failed.Index {
			case 0:
				l.co.claimRemoved()
				return l.co.err()
			case 1: // another client has removed the directory of free claims
				d.missing(err)
				err = d.makeNodes(ctx, sess)
			default: // or the change node
				err = l.list.Mend(ctx, sess)
			}
			if err != nil {
				err = attempt.Again(ctx, sess, err)
			}
			if err != nil {
				return err
			}
			continue
		}
		if err != nil && zk.OutcomeOf(err) != zk.Unknown && l.co.err() == nil {
			if err := attempt.Again(ctx, sess, err); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		d.mu.Lock()
		l.claimed, l.nodeGone, l.returning = kept, l.nodeGone || last, false
		settle := !l.nodeGone && l.open == 0 && len(l.buffer) == 0
		l.nodeGone = l.nodeGone || settle
		d.mu.Unlock()
		if settle {
			l.deleteNode()
		}
		return nil
	}
}

// beginWrite waits until no other goroutine writes the claim's node, and takes the write semaphore.
func (l *lease) beginWrite(ctx context.Context) error {
	d := l.co.d
	d.mu.Lock()
	l.writers++
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		l.writers--
		d.mu.Unlock()
		l.co.marks.wake()
	}()
	select {
	case l.writing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.co.ctx.Done():
		return context.Cause(l.co.ctx)
	}
}

// tryBeginWrite is beginWrite if no other goroutine is writing.
func (l *lease) tryBeginWrite() bool {
	select {
	case l.writing <- struct{}{}:
		return true
	default:
		return false
	}
}

func (l *lease) endWrite() {
	<-l.writing
	l.co.marks.wake()
}

// tryMark begins a mark, unless another goroutine writes the node otherwise or waits to. The caller holds the
// dispatcher's mutex, and marks.order until the mark is sent.
func (l *lease) tryMark() bool {
	if l.writers > 0 || l.pendingMarks == 0 && !l.tryBeginWrite() {
		return false
	}
	l.pendingMarks++
	return true
}

// endMark ends a mark. The caller holds the dispatcher's mutex.
func (l *lease) endMark(through int, done bool) {
	if done {
		l.claimed.Delivered = max(l.claimed.Delivered, through)
	}
	if l.pendingMarks--; l.pendingMarks == 0 {
		l.endWrite()
	}
}

// markedThrough returns through which item the lease is marked, or will be when all that was sent is done.
func (l *leaseState) markedThrough() int {
	if l.pendingMarks > 0 {
		return l.pendingThrough
	}
	return l.claimed.Delivered
}

// ends reports whether nothing is left of the claim when n more items are finished.
func (l *leaseState) ends(n int) bool { return l.open == n && len(l.buffer) == 0 && !l.returning }

// readNode reads the claim's node, as it is when everything that was sent before was done or never will be. It returns
// ErrClaimLost if another consumer may have removed it.
func (l *lease) readNode(ctx context.Context) (claims.Range, bool, error) {
	data, err := attempt.Ask(ctx, l.co.sess, func() (zk.Data, error) {
		b := l.co.sess.Batch()
		passed := attempt.Fence(b)
		get, owner := b.Get(l.path), b.Exists(l.co.node)
		b.Send()
		if err := passed(ctx); err != nil {
			return zk.Data{}, err
		}
		data, err := get.Get(ctx)
		if errors.Is(err, zk.NoNode) {
			node, lookErr := owner.Get(ctx)
			if lookErr == nil {
				lookErr = l.co.stillOwner(node)
			}
			err = cmp.Or(lookErr, err)
		}
		return data, err
	})
	switch {
	case err == nil:
		s, ok := claims.ParseRange(data.Data)
		return s, ok, nil
	case errors.Is(err, zk.NoNode):
		return claims.Range{}, false, nil
	case ctx.Err() != nil:
		return claims.Range{}, false, context.Cause(ctx)
	default:
		return claims.Range{}, false, l.co.orLost(err)
	}
}

// deleteNode deletes the node of a claim that has no items left, in the background. If that does not succeed before
// the session ends, the consumer that takes the claim over finds nothing in it, and removes it.
func (l *lease) deleteNode() {
	gone := attempt.Remove(l.co.sess, l.path)
	go func() {
		_ = gone.Wait(context.Background()) // it ends with the session
		l.tidy()
	}()
}

// tidy removes the lease's segment if that is empty and will stay so, without waiting. It keeps the last segment, in
// which the list may go on: the consumer that moves the cursor into the next segment removes those before it.
func (l *lease) tidy() {
	l.co.d.mu.Lock()
	last := l.Segment >= l.co.seen[l.list]
	l.co.d.mu.Unlock()
	if last {
		return
	}
	b := l.co.sess.Batch()
	b.Delete(l.list.Segment(l.Segment), 1) // refused unless it is sealed, which is version 1, and empty
	b.Send()
}

// markedAhead returns how many of the buffered items are marked, or will be.
func (l *leaseState) markedAhead() int {
	n, _ := slices.BinarySearchFunc(l.buffer, l.markedThrough()+1, func(s bufferedItem, seq int) int {
		return s.seq - seq
	})
	return n
}
