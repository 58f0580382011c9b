package classic

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// receipts makes writes whose outcome can be found out, whatever the nodes look like that they are about. Each write goes into one
// transaction with a new stamp on an ephemeral node of ours. If the reply is lost, the node tells: it has the stamp if and only if the
// transaction was executed.
//
// Nobody else is disturbed by it: a change of a node's data wakes nobody who watches a list, and the node is not in the queue's directory. A
// node serves one write at a time, so there are as many as there were writes under way at once.
type receipts struct {
	dir string
	acl []zk.ACL

	mu   sync.Mutex  // guards what follows; never held while an answer is waited for
	sess *zk.Session // that the free nodes belong to
	free []string
}

// do executes ops all or none. It returns nil if they were executed, also if the reply was lost; an error that is ErrUnresolved
// if the session ended before anybody could look; and otherwise an error that says why they were not executed.
//
// If ctx ends while the request has left and the answer has not come, do still waits for it, at most until the session ends: what was
// taken must not vanish with its caller, and what was put not be put again by one who does not know.
func (r *receipts) do(ctx context.Context, sess *zk.Session, ops ...zk.Op) error {
	path, err := r.borrow(ctx, sess)
	if err != nil {
		return err
	}
	defer r.giveBack(sess, path)
	stamp := []byte(line.NewGUID())
	all := append([]zk.Op{zk.SetData(path, stamp, -1)}, ops...)
	for tries := 1; ; tries++ {
		_, err := sess.Multi(ctx, all...)
		if err == nil {
			return nil
		}
		refusal, refused := errors.AsType[*zk.MultiError](err)
		switch {
		case refused && refusal.Index == 0 && refusal.Err == zk.NoNode: // somebody has deleted the receipt
			if err := r.make(ctx, sess, path); err != nil {
				return err
			}
		case zk.OutcomeOf(err) != zk.Unknown:
			return err
		default:
			done, lookErr := stamped(context.WithoutCancel(ctx), sess, path, stamp)
			switch {
			case lookErr != nil:
				return &UnresolvedError{Err: lookErr}
			case done:
				return nil
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case tries >= maxTries: // as a server does to what is too large for it
				return fmt.Errorf("classic: a request was not executed, because its connection was lost %d times in a row (is Config.MaxPacket right?): %v", tries, err) //nolint:errorlint // it is not to be tried again, as a lost connection is
			}
		}
	}
}

// stamped reports whether the receipt at path has the stamp. It fails only if the session has ended.
//
// The request that is in question cannot be executed after this answer (see line.Barrier). A receipt that somebody has deleted counts as one
// without the stamp, which is a guess: nobody has a reason to.
func stamped(ctx context.Context, sess *zk.Session, path string, stamp []byte) (bool, error) {
	for {
		b := sess.Batch()
		passed, got := line.Barrier(b, path), b.Get(path)
		b.Send()
		err := passed(ctx)
		data, getErr := got.Get(ctx)
		switch {
		case sess.Err() != nil:
			return false, sess.Err()
		case err == nil && getErr == nil:
			return bytes.Equal(data.Data, stamp), nil
		case err == nil && errors.Is(getErr, zk.NoNode):
			return false, nil
		}
		if err := pause(ctx, sess, errors.Join(err, getErr)); err != nil {
			return false, err
		}
	}
}

func (r *receipts) borrow(ctx context.Context, sess *zk.Session) (string, error) {
	r.mu.Lock()
	if r.sess != sess {
		r.sess, r.free = sess, nil
	}
	if n := len(r.free); n > 0 {
		path := r.free[n-1]
		r.free = r.free[:n-1]
		r.mu.Unlock()
		return path, nil
	}
	r.mu.Unlock()
	path := r.dir + "/" + line.NewGUID()
	return path, r.make(ctx, sess, path)
}

// giveBack keeps a node for the next write. It may still be written to by a request that was given up; that one comes before any that
// is sent later.
func (r *receipts) giveBack(sess *zk.Session, path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sess == sess {
		r.free = append(r.free, path)
	}
}

// make makes a receipt. Its name is a GUID: if it is there, it is ours.
func (r *receipts) make(ctx context.Context, sess *zk.Session, path string) error {
	for tries := 0; ; {
		_, err := sess.CreateNode(ctx, zk.Node{Path: path, Mode: zk.Ephemeral, ACL: r.acl})
		switch {
		case err == nil, errors.Is(err, zk.NodeExists):
			return nil
		case errors.Is(err, zk.NoNode):
			if tries++; tries > maxTries {
				return fmt.Errorf("classic: the directory of receipts vanishes as often as it is made: %w", err)
			}
			if err := makeDir(ctx, sess, zk.Node{Path: r.dir, Mode: zk.Container, ACL: r.acl}, zk.Container); err != nil {
				return err
			}
		case errors.Is(err, zk.ErrConnectionLost) && sess.Err() == nil && ctx.Err() == nil:
		default:
			return err
		}
	}
}
