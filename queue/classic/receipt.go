package classic

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// receipts does transactions whose outcome can be found out. The receipts are ephemeral nodes outside the queue's
// directory, so a late transaction is refused after its client has looked, also if a partition has held it up meanwhile
// (see TestCreationMayBeDoneAfterALaterWriteOfItsSession).
type receipts struct {
	attempt.Pool
	client *zk.Client
}

func newReceipts(client *zk.Client, cfg Config) *receipts {
	dir, acl := cfg.Receipts, cfg.ACL
	return &receipts{client: client, Pool: attempt.Pool{
		Node: func() zk.Node { return zk.Node{Path: dir + "/" + attempt.NewGUID(), Mode: zk.Ephemeral, ACL: acl} },
		MakeDir: func(ctx context.Context, sess *zk.Session, dir string) error {
			return attempt.Dirs{Keep: attempt.WhileUsed, ACL: acl, AnyACL: cfg.AnyACL}.Make(ctx, sess, dir)
		},
		Created: func(string, int64) {},
	}}
}

// maxTries bounds how often a transaction is sent, and a directory made, that is lost in between.
const maxTries = 10

// do executes a transaction, in a batch to which add adds what else is to travel with it; add may be nil. It returns
// the transaction's id if it was done, also if the reply was lost; an error that is ErrUnresolved if the receipt could
// not be read; and otherwise an error that says why the transaction was not done, and will not be.
//
// If ctx ends while the request has left and the answer has not come, do still waits for it, at most until the
// session ends: an item that was taken must not vanish with its caller, and a caller that does not know must not put
// one again.
func (r *receipts) do(ctx context.Context, sess *zk.Session, add func(*zk.Batch), ops ...zk.Op) (int64, error) {
	for tries := 1; ; tries++ {
		rec, err := r.Get(ctx, sess)
		if err != nil {
			return 0, err
		}
		b := sess.Batch()
		t := r.Send(r.client, sess, b, rec, ops...)
		if add != nil {
			add(b)
		}
		b.Send()
		done, err := t.Outcome(ctx)
		switch {
		case errors.Is(err, attempt.ErrUnresolved) && sess.Err() != nil:
			return 0, &UnresolvedError{Err: sess.Err()}
		case errors.Is(err, attempt.ErrUnresolved):
			return 0, &UnresolvedError{Err: err}
		case !errors.Is(err, attempt.ErrNotDone) && !errors.Is(err, attempt.ErrGone):
			return done.Zxid, err
		case ctx.Err() != nil:
			return 0, context.Cause(ctx)
		case tries >= maxTries: // as a server does to what is too large for it
			// Not wrapped: it must not be tried again.
			const text = "not done: the connection was lost %d times in a row (is Config.MaxPacket right?): %v"
			return 0, fmt.Errorf(text, tries, err)
		}
	}
}
