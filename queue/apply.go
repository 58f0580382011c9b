package queue

// Transactions that are done once.

import (
	"context"
	"errors"

	"github.com/seed-a3166700/turnstile/zk"
)

// apply executes operations in one transaction, once: if its reply is lost, a receipt tells whether it was done, and it
// is only repeated if it was not and never will be. If the servers refuse an operation, apply returns a *zk.MultiError
// with its index. If ctx ends before the outcome is known, the error's outcome is zk.Unknown, and the transaction may
// have been done, or be done later.
func (p *producer) apply(ctx context.Context, ops ...zk.Op) error {
	for {
		sess, err := p.session(ctx)
		if err != nil {
			return err
		}
		r, err := p.receipts.Get(ctx, sess)
		if err != nil {
			if p.again(ctx, sess, err) || p.missing(err) {
				continue
			}
			return err
		}
		op, stamp := r.Stamp(0)
		results, err := sess.Multi(ctx, append([]zk.Op{op}, ops...)...)
		failed, refused := errors.AsType[*zk.MultiError](err)
		switch {
		case err == nil:
			p.clock.saw(results[0].Stat.Mtime)
			r.Done()
			p.receipts.Put(r)
			return nil
		case refused && failed.Index == 0: // our receipt was swept away: no other transaction needs it
			p.recheckNodes()
			continue
		case refused:
			p.receipts.Put(r)
			return ofCaller(failed, 1, len(ops))
		case zk.OutcomeOf(err) != zk.Unknown:
			p.receipts.Put(r)
			if p.again(ctx, sess, err) {
				continue
			}
			return err
		}
		done, err := r.Resolve(ctx, p.client.Session, []string{stamp}, p.clock.saw)
		if err != nil {
			return &zk.Error{Op: "multi", Path: p.layout.root, Err: err, Outcome: zk.Unknown}
		}
		p.receipts.Put(r)
		if done > 0 {
			return nil
		}
	}
}
