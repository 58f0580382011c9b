package queue

// Writing the nodes of claims.

import (
	"cmp"
	"context"
	"errors"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/queue/internal/claims"
	"github.com/seed-a3166700/turnstile/zk"
)

// maxLarge is how many items of a segment of large ones are claimed at once.
const maxLarge = 4

// giveBack makes the claimed items from the given one on free for all, in their places.
func (co *claimant) giveBack(ctx context.Context, l *claims.Lease, from int) error {
	q, sess := co.q, co.sess
	if err := co.beginWrite(ctx, l); err != nil {
		return err
	}
	defer l.EndWrite()
	for {
		rest, kept, last := l.GiveBack(from)
		ops := []zk.Op{
			zk.DeleteOp(l.Path, -1),
			q.layout.store.CreateOp(co.freePath(l.At(from)), rest.Encode()),
			zk.SetOp(l.List.Change, nil, -1),
		}
		if !last {
			ops[0] = zk.SetOp(l.Path, kept.Encode(), -1)
		}
		_, err := sess.Multi(ctx, ops...)
		if zk.OutcomeOf(err) == zk.Unknown && err != nil && co.err() == nil && ctx.Err() == nil {
			// Only this consumer writes the node, so it tells whether it has.
			s, there, lookErr := co.readNode(ctx, l)
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
				co.claimRemoved()
				return co.err()
			case 1: // another client has removed the directory of free claims
				q.missing(err)
				err = q.makeNodes(ctx, sess)
			default: // or the change node
				err = l.List.Mend(ctx, sess)
			}
			if err != nil {
				err = attempt.Again(ctx, sess, err)
			}
			if err != nil {
				return err
			}
			continue
		}
		if err != nil && zk.OutcomeOf(err) != zk.Unknown && co.err() == nil {
			if err := attempt.Again(ctx, sess, err); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if l.Returned(kept, last) {
			co.deleteNode(l)
		}
		return nil
	}
}

// beginWrite waits until no other goroutine writes the claim's node, and takes the write semaphore.
func (co *claimant) beginWrite(ctx context.Context, l *claims.Lease) error {
	writing := l.WaitToWrite()
	defer l.WaitedToWrite()
	select {
	case writing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-co.ctx.Done():
		return context.Cause(co.ctx)
	}
}

// finished records that an item of a claim is finished.
func (co *claimant) finished(l *claims.Lease) { co.clear(l, l.Finish(1)) }

// clear does what is left to do when items of a claim are finished.
func (co *claimant) clear(l *claims.Lease, rest claims.Rest) {
	switch {
	case rest.Delete:
		co.deleteNode(l)
	case rest.Tidy:
		co.tidy(l)
	}
	if rest.Leave {
		co.removeNode()
	}
}

// readNode reads the claim's node, as it is when everything that was sent before was done or never will be. It returns
// ErrClaimLost if another consumer may have removed it.
func (co *claimant) readNode(ctx context.Context, l *claims.Lease) (claims.Range, bool, error) {
	data, err := attempt.Ask(ctx, co.sess, func() (zk.Data, error) {
		b := co.sess.Batch()
		passed := attempt.Fence(b)
		get, owner := b.Get(l.Path), b.Exists(co.node)
		b.Send()
		if err := passed(ctx); err != nil {
			return zk.Data{}, err
		}
		data, err := get.Get(ctx)
		if errors.Is(err, zk.NoNode) {
			node, lookErr := owner.Get(ctx)
			if lookErr == nil {
				lookErr = co.stillOwner(node)
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
		return claims.Range{}, false, co.orLost(err)
	}
}

// deleteNode deletes the node of a claim that has no items left, in the background. If that does not succeed before
// the session ends, the consumer that takes the claim over finds nothing in it, and removes it.
func (co *claimant) deleteNode(l *claims.Lease) {
	gone := attempt.Remove(co.sess, l.Path)
	go func() {
		_ = gone.Wait(context.Background()) // it ends with the session
		co.tidy(l)
	}()
}

// tidy removes the lease's segment if that is empty and will stay so, without waiting. It keeps the last segment, in
// which the list may go on: the consumer that moves the cursor into the next segment removes those before it.
func (co *claimant) tidy(l *claims.Lease) {
	if l.InLastSegment() {
		return
	}
	b := co.sess.Batch()
	b.Delete(l.List.Segment(l.Segment), 1) // refused unless it is sealed, which is version 1, and empty
	b.Send()
}
