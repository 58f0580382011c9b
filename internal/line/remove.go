package line

import (
	"context"
	"errors"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// A Removal is the deletion of a node, going on in the background until it is done or the session has ended.
type Removal struct {
	done  chan struct{}
	err   error  // set before done is closed
	hurry func() // sends it, if it is not sent yet; nil if it is
}

// Wait waits until the node is gone. It returns nil then, also if the session's end is what removed it; the server's refusal if it will
// not delete the node (an ACL that forbids it); ctx's cause if that ends first, while the removal goes on.
func (r *Removal) Wait(ctx context.Context) error {
	if r.hurry != nil {
		r.hurry()
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// remove sends the deletion of path at once and sees to it in the background.
func remove(sess *zk.Session, path string) *Removal {
	r := &Removal{done: make(chan struct{})}
	sent := sendDelete(sess, path)
	go r.insist(sess, path, sent)
	return r
}

// RemoveBy starts a removal that f sees to, in the background.
func RemoveBy(f func() error) *Removal {
	r := &Removal{done: make(chan struct{})}
	go func() {
		r.err = f()
		close(r.done)
	}()
	return r
}

// removeAll sends the deletion of all paths at once, in one transaction, and sees to it in the background.
func removeAll(sess *zk.Session, paths []string) *Removal {
	if len(paths) == 1 {
		return remove(sess, paths[0])
	}
	ops := make([]zk.Op, len(paths))
	for i, path := range paths {
		ops[i] = zk.DeleteOp(path, -1)
	}
	b := sess.Batch()
	sent := b.Multi(ops...)
	b.Send()
	return RemoveBy(func() error {
		if _, err := sent.Get(context.Background()); err == nil || sess.Err() != nil {
			return nil //nolint:nilerr // ephemeral nodes end with their session
		}
		// One of them is gone already, or nobody knows: each by itself, then.
		left := make([]*Removal, len(paths))
		for i, path := range paths {
			left[i] = remove(sess, path)
		}
		return waitAll(left)
	})
}

// waitAll waits for removals that go on together.
func waitAll(removals []*Removal) error {
	var err error
	for _, r := range removals {
		err = errors.Join(err, r.Wait(context.Background()))
	}
	return err
}

func sendDelete(sess *zk.Session, path string) *zk.Future[struct{}] {
	b := sess.Batch()
	sent := b.Delete(path, -1)
	b.Send()
	return sent
}

func (r *Removal) insist(sess *zk.Session, path string, sent *zk.Future[struct{}]) {
	r.err = insist(sess, path, sent)
	close(r.done)
}

// insist repeats a deletion until there is nothing left to delete. That no node is there is success (CURATOR-42). While there is no
// connection the request waits in the session's queue, so this does not spin.
func insist(sess *zk.Session, path string, sent *zk.Future[struct{}]) error {
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
		sent = sendDelete(sess, path)
	}
}

// pause waits a little after a refusal that may pass, such as an overloaded server's. It returns why it was cut short, if it was.
func pause(ctx context.Context, sess *zk.Session) error {
	select {
	case <-time.After(100 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-sess.Context().Done():
		return sess.Err()
	}
}
