package attempt

// Removals that go on in the background.

import (
	"context"
	"errors"

	"github.com/seed-a3166700/turnstile/zk"
)

// A Removal is the deletion of nodes, which goes on in the background until it is done or the session has ended.
type Removal struct {
	done  chan struct{}
	err   error  // set before done is closed
	flush func() // sends it, if it is not sent yet; nil if it is
}

// Wait waits until the nodes are gone. It returns nil then, also if the session's end has removed them. It returns the
// server's refusal if it will not delete a node (an ACL forbids it). If ctx ends first it returns ctx's cause, and the
// removal goes on.
func (r *Removal) Wait(ctx context.Context) error {
	if r.flush != nil {
		r.flush()
	}
	select {
	case <-r.done:
	case <-ctx.Done():
	}
	select {
	case <-r.done: // also if ctx has ended
		return r.err
	default:
		return context.Cause(ctx)
	}
}

// NewRemoval returns a removal that the caller does: it calls End when it is done. If flush is not nil, Wait calls it
// first.
func NewRemoval(flush func()) *Removal { return &Removal{done: make(chan struct{}), flush: flush} }

// End ends a removal of NewRemoval.
func (r *Removal) End(err error) {
	r.err = err
	close(r.done)
}

// RemoveBy starts a removal that f does, in the background.
func RemoveBy(f func() error) *Removal {
	r := NewRemoval(nil)
	go func() { r.End(f()) }()
	return r
}

// Remove deletes the paths, in one transaction, in the background, until they are gone or the session has ended. The
// nodes are ephemeral, and have names that no other client chooses.
func Remove(sess *zk.Session, paths ...string) *Removal {
	return RemoveBy(SendRemoval(sess.Batch(), sess, paths))
}

// SendRemoval is Remove in a batch, which it sends. Finish waits until the paths are gone.
func SendRemoval(b *zk.Batch, sess *zk.Session, paths []string) (finish func() error) {
	if len(paths) == 1 {
		sent := b.Delete(paths[0], -1)
		b.Send()
		return func() error { return finishRemoval(sess, paths[0], sent) }
	}
	sent := b.Multi(Deletions(paths)...)
	b.Send()
	return func() error {
		if _, err := sent.Get(context.Background()); err == nil || sess.Err() != nil {
			return nil //nolint:nilerr // ephemeral nodes end with their session
		}
		// One of them is gone already, or the answer is lost: delete each by itself.
		var left []*Removal
		for _, path := range paths {
			left = append(left, Remove(sess, path))
		}
		return WaitAll(left)
	}
}

// finishRemoval repeats a deletion until there is nothing left to delete. That there is no node is success: another
// client has deleted it, or an attempt before was applied and its answer lost (CURATOR-42). While there is no
// connection the request waits in the session's queue, so this does not spin.
func finishRemoval(sess *zk.Session, path string, sent *zk.Future[struct{}]) error {
	return untilRemoved(sess, func() error {
		if sent == nil {
			b := sess.Batch()
			sent = b.Delete(path, -1)
			b.Send()
		}
		_, err := sent.Get(context.Background())
		sent = nil
		return err
	})
}

// untilRemoved repeats remove until nothing is left to remove, the server refuses for good, or the session ends.
func untilRemoved(sess *zk.Session, remove func() error) error {
	for tries := 0; ; tries++ {
		err := remove()
		switch {
		case err == nil, errors.Is(err, zk.NoNode), sess.Err() != nil: // an ephemeral node ends with its session
			return nil //nolint:nilerr // see above
		case errors.Is(err, zk.NoAuth), errors.Is(err, zk.BadArguments), errors.Is(err, zk.NotEmpty):
			return err
		case zk.OutcomeOf(err) == zk.Refused && !errors.Is(err, zk.BadVersion):
			_ = Pause(context.Background(), sess, tries)
		}
	}
}

// RemoveMade deletes, in the background, a node that was made by the transaction czxid and whose name other clients use
// as well. It looks before each attempt, because the answer to a removal may be lost, and the node may be the next
// client's by then. After a lost answer it looks behind a fence: a removal that was on its way when the connection
// broke is not applied after that, unless a partition holds it up as Creation tells. A removal that is held up may
// remove the next client's node. So may one that comes after another client has deleted the node by hand, between the
// look and the removal, and the next one has made it again.
func RemoveMade(sess *zk.Session, path string, czxid int64) *Removal {
	return RemoveBy(func() error {
		lost := false
		return untilRemoved(sess, func() error {
			err := removeMade(sess, path, czxid, lost)
			lost = true
			return err
		})
	})
}

func removeMade(sess *zk.Session, path string, czxid int64, lost bool) error {
	ctx := context.Background()
	b := sess.Batch()
	passed := func(context.Context) error { return nil }
	if lost {
		passed = Fence(b)
	}
	seen := b.Exists(path) // it takes no right to read the node
	b.Send()
	if err := passed(ctx); err != nil {
		return err
	}
	node, err := seen.Get(ctx)
	if err != nil || !node.Exists || node.Stat.Czxid != czxid {
		return err
	}
	return sess.Delete(ctx, path, node.Stat.Version)
}

// WaitAll waits for removals that go on together.
func WaitAll(removals []*Removal) error {
	var err error
	for _, r := range removals {
		err = errors.Join(err, r.Wait(context.Background()))
	}
	return err
}

// Deletions are the operations that delete the paths.
func Deletions(paths []string) []zk.Op {
	ops := make([]zk.Op, len(paths))
	for i, path := range paths {
		ops[i] = zk.DeleteOp(path, -1)
	}
	return ops
}
