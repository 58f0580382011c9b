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
// transaction with a new stamp on an ephemeral node of ours, on condition of that node's version. If the reply is lost
// we write to the node on the same condition: one of the two writes is executed, and the stamp tells which. So the first
// is never executed after we have looked, also if a partition has held it up meanwhile (see
// TestCreationMayBeDoneAfterALaterWriteOfItsSession).
//
// Nobody else is disturbed by it: a change of a node's data wakes nobody who watches a list, and the node is not in the queue's directory. A
// node serves one write at a time, so there are as many as there were writes under way at once.
type receipts struct {
	dir string
	acl []zk.ACL

	mu   sync.Mutex  // guards what follows; never held while an answer is waited for
	sess *zk.Session // that the free nodes belong to
	free []receipt
}

// A receipt is one of these nodes, with the version that it has unless another client writes to it.
type receipt struct {
	path    string
	version int32
}

// multi is do for a transaction that nothing is to travel with.
func (r *receipts) multi(ctx context.Context, sess *zk.Session, ops ...zk.Op) error {
	return r.do(ctx, sess, func(stamp zk.Op) error {
		_, err := sess.Multi(ctx, append([]zk.Op{stamp}, ops...)...)
		return err
	})
}

// do executes a transaction, which send sends: stamp is to be its first operation. Do returns nil if it was executed,
// also if the reply was lost; an error that is ErrUnresolved if the session ended before the receipt could be read; and
// otherwise an error that says why it was not executed, and will not be.
//
// If ctx ends while the request has left and the answer has not come, do still waits for it, at most until the session ends: what was
// taken must not vanish with its caller, and what was put not be put again by one who does not know.
func (r *receipts) do(ctx context.Context, sess *zk.Session, send func(stamp zk.Op) error) error {
	rec, err := r.borrow(ctx, sess)
	if err != nil {
		return err
	}
	defer func() { r.giveBack(sess, rec) }()
	stamp := []byte(line.NewGUID())
	for tries := 1; ; tries++ {
		err := send(zk.SetOp(rec.path, stamp, rec.version))
		if err == nil {
			rec.version++
			return nil
		}
		refusal, refused := errors.AsType[*zk.MultiError](err)
		switch {
		case refused && refusal.Index == 0 && (refusal.Err == zk.NoNode || refusal.Err == zk.BadVersion) && tries < maxTries:
			// Another client has deleted the receipt or written to it.
			if rec, err = r.make(ctx, sess); err != nil {
				return err
			}
		case zk.OutcomeOf(err) != zk.Unknown:
			return err
		default:
			done, lookErr := rec.resolve(context.WithoutCancel(ctx), sess, stamp)
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

// resolve reports whether the write with the stamp was executed. If not it never will be. It fails only if the session
// has ended. A receipt that another client has deleted counts as one without the stamp. That is a guess: no client has a
// reason to delete one.
func (rec *receipt) resolve(ctx context.Context, sess *zk.Session, stamp []byte) (bool, error) {
	for {
		b := sess.Batch()
		blanked, got := b.Set(rec.path, nil, rec.version), b.Get(rec.path)
		b.Send()
		_, err := blanked.Get(ctx)
		data, getErr := got.Get(ctx)
		switch {
		case sess.Err() != nil:
			return false, sess.Err()
		case getErr == nil && (err == nil || errors.Is(err, zk.BadVersion)):
			// BadVersion comes also if the node was blanked and the reply to that was lost.
			rec.version = data.Stat.Version
			return bytes.Equal(data.Data, stamp), nil
		case errors.Is(err, zk.NoNode):
			return false, nil
		}
		if err := pause(ctx, sess, errors.Join(err, getErr)); err != nil {
			return false, err
		}
	}
}

func (r *receipts) borrow(ctx context.Context, sess *zk.Session) (receipt, error) {
	r.mu.Lock()
	if r.sess != sess {
		r.sess, r.free = sess, nil
	}
	if n := len(r.free); n > 0 {
		rec := r.free[n-1]
		r.free = r.free[:n-1]
		r.mu.Unlock()
		return rec, nil
	}
	r.mu.Unlock()
	return r.make(ctx, sess)
}

// giveBack keeps a node for the next write.
func (r *receipts) giveBack(sess *zk.Session, rec receipt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sess == sess {
		r.free = append(r.free, rec)
	}
}

// make makes a receipt. Its name is a GUID: if it is there, it is ours.
func (r *receipts) make(ctx context.Context, sess *zk.Session) (receipt, error) {
	rec := receipt{path: r.dir + "/" + line.NewGUID()}
	for tries := 0; ; {
		_, err := sess.CreateNode(ctx, zk.Node{Path: rec.path, Mode: zk.Ephemeral, ACL: r.acl})
		switch {
		case err == nil, errors.Is(err, zk.NodeExists):
			return rec, nil
		case errors.Is(err, zk.NoNode):
			if tries++; tries > maxTries {
				const text = "classic: the directory of receipts vanishes as often as it is made: %v"
				return rec, fmt.Errorf(text, err) // not wrapped: what is missing is no node of the queue's
			}
			if err := makeDir(ctx, sess, zk.Node{Path: r.dir, Mode: zk.Container, ACL: r.acl}, zk.Container); err != nil {
				return rec, err
			}
		case errors.Is(err, zk.ErrConnectionLost) && sess.Err() == nil && ctx.Err() == nil:
		default:
			return rec, err
		}
	}
}
