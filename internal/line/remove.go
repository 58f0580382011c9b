package line

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
		return r.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// end ends the removal.
func (r *Removal) end(err error) {
	r.err = err
	close(r.done)
}

// RemoveBy starts a removal that f does, in the background.
func RemoveBy(f func() error) *Removal {
	r := &Removal{done: make(chan struct{})}
	go func() { r.end(f()) }()
	return r
}

// Remove deletes the paths, in one transaction, in the background.
func Remove(sess *zk.Session, paths ...string) *Removal {
	finish := sendRemoval(sess.Batch(), sess, paths)
	return RemoveBy(finish)
}

// sendRemoval sends the batch with the deletion of the paths, in one transaction. Finish waits until they are gone.
func sendRemoval(b *zk.Batch, sess *zk.Session, paths []string) (finish func() error) {
	if len(paths) == 1 {
		sent := b.Delete(paths[0], -1)
		b.Send()
		return func() error { return finishRemoval(sess, paths[0], sent) }
	}
	sent := b.Multi(deletions(paths)...)
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
		return waitAll(left)
	}
}

// finishRemoval repeats a deletion until there is nothing left to delete. That there is no node is success: another
// client has deleted it, or an attempt before was applied and its answer lost (CURATOR-42). While there is no
// connection the request waits in the session's queue, so this does not spin.
func finishRemoval(sess *zk.Session, path string, sent *zk.Future[struct{}]) error {
	for {
		_, err := sent.Get(context.Background())
		switch {
		case err == nil, errors.Is(err, zk.NoNode):
			return nil
		case sess.Err() != nil:
			return nil //nolint:nilerr // an ephemeral node ends with its session
		case errors.Is(err, zk.NoAuth), errors.Is(err, zk.BadArguments), errors.Is(err, zk.NotEmpty):
			return err
		case zk.OutcomeOf(err) == zk.Refused:
			_ = pause(context.Background(), sess)
		}
		b := sess.Batch()
		sent = b.Delete(path, -1)
		b.Send()
	}
}

// waitAll waits for removals that go on together.
func waitAll(removals []*Removal) error {
	var err error
	for _, r := range removals {
		err = errors.Join(err, r.Wait(context.Background()))
	}
	return err
}

// deletions are the operations that delete the paths.
func deletions(paths []string) []zk.Op {
	ops := make([]zk.Op, len(paths))
	for i, path := range paths {
		ops[i] = zk.DeleteOp(path, -1)
	}
	return ops
}
