package classic

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/internal/receipt"
	"github.com/seed-a3166700/turnstile/zk"
)

// receipts does transactions whose outcome can be found out. The receipts are ephemeral nodes outside the queue's
// directory, so a late transaction is refused after its client has looked, also if a partition has held it up meanwhile
// (see TestCreationMayBeDoneAfterALaterWriteOfItsSession).
type receipts struct{ receipt.Pool }

func newReceipts(dir string, acl []zk.ACL) *receipts {
	return &receipts{receipt.Pool{
		Node: func() zk.Node { return zk.Node{Path: dir + "/" + line.NewGUID(), Mode: zk.Ephemeral, ACL: acl} },
		MakeDir: func(ctx context.Context, sess *zk.Session, dir string) error {
			return makeDir(ctx, sess, zk.Node{Path: dir, Mode: zk.Container, ACL: acl}, zk.Container)
		},
		Created: func(string, int64) {},
	}}
}

// multi is do for a transaction that nothing else is to travel with.
func (r *receipts) multi(ctx context.Context, sess *zk.Session, ops ...zk.Op) error {
	return r.do(ctx, sess, func(stamp zk.Op) error {
		_, err := sess.Multi(ctx, append([]zk.Op{stamp}, ops...)...)
		return err
	})
}

// do executes a transaction, which send sends: stamp is to be its first operation. It returns nil if the transaction
// was done, also if the reply was lost; an error that is ErrUnresolved if the session ended before the receipt could
// be read; and otherwise an error that says why the transaction was not done, and will not be.
//
// If ctx ends while the request has left and the answer has not come, do still waits for it, at most until the
// session ends: an item that was taken must not vanish with its caller, and a caller that does not know must not put
// one again.
func (r *receipts) do(ctx context.Context, sess *zk.Session, send func(stamp zk.Op) error) error {
	rec, err := r.Get(ctx, sess)
	if err != nil {
		return err
	}
	defer func() { r.Put(rec) }()
	for tries := 1; ; tries++ {
		op, stamp := rec.Stamp(0)
		err := send(op)
		if err == nil {
			rec.Done()
			return nil
		}
		refusal, refused := errors.AsType[*zk.MultiError](err)
		switch {
		case refused && refusal.Index == 0 && tries < maxTries &&
			(refusal.Err == zk.NoNode || refusal.Err == zk.BadVersion):
			// Another client has deleted the receipt or written to it.
			if rec, err = r.New(ctx, sess); err != nil {
				return err
			}
		case zk.OutcomeOf(err) != zk.Unknown:
			return err
		default:
			done, resolveErr := resolve(context.WithoutCancel(ctx), sess, rec, stamp)
			switch {
			case resolveErr != nil:
				rec = nil // the transaction may still come, and would take later ones for its own
				return &UnresolvedError{Err: resolveErr}
			case done:
				return nil
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case tries >= maxTries: // as a server does to what is too large for it
				// Not wrapped: it must not be tried again, as a lost connection is.
				const text = "classic: not done: the connection was lost %d times in a row" +
					" (is Config.MaxPacket right?): %v"
				return fmt.Errorf(text, tries, err)
			}
		}
	}
}

// resolve reports whether the transaction with the stamp was done. If not it never will be. It fails only if the
// session has ended. A receipt that another client has deleted counts as one without the stamp. That is a guess: no
// client has a reason to delete one.
func resolve(ctx context.Context, sess *zk.Session, rec *receipt.Receipt, stamp string) (bool, error) {
	for {
		live := func(context.Context) (*zk.Session, error) { return sess, sess.Err() }
		done, err := rec.Resolve(ctx, live, []string{stamp}, func(int64) {})
		switch {
		case sess.Err() != nil:
			return false, sess.Err()
		case err == nil, errors.Is(err, receipt.ErrGone):
			return done > 0, nil
		}
		if err := pause(ctx, sess, err); err != nil {
			return false, err
		}
	}
}
