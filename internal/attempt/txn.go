package attempt

// A transaction that is done once.

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-a3166700/turnstile/zk"
)

// ErrNotDone reports that a transaction was not done, and never will be: it can be sent again.
var ErrNotDone = errors.New("the write was lost on its way")

// A Txn is a transaction that was sent once, behind the change of a receipt.
type Txn struct {
	client *zk.Client
	pool   *Pool
	sess   *zk.Session
	rec    *Receipt // nil if there is none
	stamp  string
	reply  *zk.Future[[]zk.Result]
	birth  *birth // if the transaction creates the receipt
}

// Done is what a transaction has done.
type Done struct {
	Results []zk.Result // of its operations; nil if the reply was lost
	Zxid    int64       // the transaction
}

// Send adds ops to b, in one transaction with the change of a receipt, which the Txn gives back to the pool. If rec is
// nil there is none, and a lost reply is ErrUnresolved.
func (p *Pool) Send(client *zk.Client, sess *zk.Session, b *zk.Batch, rec *Receipt, ops ...zk.Op) *Txn {
	t := &Txn{client: client, pool: p, sess: sess, rec: rec}
	if rec != nil {
		var op zk.Op
		op, t.stamp = rec.Stamp(0)
		ops = append([]zk.Op{op}, ops...)
	}
	t.reply = b.Multi(ops...)
	return t
}

// Outcome waits until it is known whether the transaction was done. An error is ErrUnresolved, or the transaction was
// not done and never will be. Then it is ErrNotDone if it may just be sent again; ErrGone if another client has deleted
// the receipt, perhaps together with the node that is written to, or has written to it; and otherwise the server's
// refusal, whose MultiError counts the caller's operations alone.
//
// If ctx ends Outcome gives up only after the session has ended, too.
func (t *Txn) Outcome(ctx context.Context) (Done, error) {
	results, err := t.reply.Get(context.Background()) //nolint:contextcheck // the end of the session ends it
	own := 0
	if t.rec != nil {
		own = 1
	}
	if t.birth != nil {
		return t.birth.outcome(ctx, t, results, err)
	}
	if err == nil {
		if t.rec != nil {
			t.rec.Done()
		}
		t.pool.Put(t.rec)
		return Done{Results: results[own:], Zxid: results[0].Zxid}, nil
	}
	refusal, refused := errors.AsType[*zk.MultiError](err)
	switch {
	case refused && refusal.Index < own && (refusal.Err == zk.NoNode || refusal.Err == zk.BadVersion):
		return Done{}, ErrGone
	case zk.OutcomeOf(err) == zk.Unknown:
		return t.resolve(ctx, err)
	}
	t.pool.Put(t.rec)
	return Done{}, without(own, err)
}

// without returns err, without the first n operations if it is about one of a transaction.
func without(n int, err error) error {
	if refusal, ok := errors.AsType[*zk.MultiError](err); ok && n > 0 && refusal.Index >= n {
		e := *refusal
		e.Index -= n
		e.Results = e.Results[min(n, len(e.Results)):]
		return &e
	}
	return err
}

// resolve finds out whether a transaction was done whose reply was lost.
func (t *Txn) resolve(ctx context.Context, lost error) (Done, error) {
	if t.rec == nil {
		return Done{}, unresolved(lost)
	}
	done, err := t.rec.Resolve(context.WithoutCancel(ctx), t.session(ctx), []string{t.stamp}, func(int64) {})
	if err != nil {
		return Done{}, unresolved(err)
	}
	t.pool.Put(t.rec)
	if done == 0 {
		return Done{}, ErrNotDone
	}
	return Done{Zxid: t.rec.Mzxid()}, nil
}

func unresolved(why error) error { return fmt.Errorf("%w: %w", ErrUnresolved, why) }

// session returns the session under which to look. As long as the transaction's lives, the answer is near, and worth
// more than to leave when ctx ends.
func (t *Txn) session(ctx context.Context) func(context.Context) (*zk.Session, error) {
	return func(context.Context) (*zk.Session, error) {
		if t.sess.Err() == nil {
			return t.sess, nil
		}
		if t.rec.sess != nil { // it has gone with the session
			return nil, t.sess.Err()
		}
		return t.client.Session(ctx)
	}
}
