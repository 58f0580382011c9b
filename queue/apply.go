package queue

// Transactions of a queue without a claim, done once.

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/queue/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// apply executes operations in one transaction, once: if its reply is lost, a receipt tells whether it was done, and it
// is only repeated if it was not and never will be. If the servers refuse an operation, apply returns a *zk.MultiError
// with its index. If ctx ends before the outcome is known, the error is attempt.ErrUnresolved, and the transaction may
// have been done, or be done later. The results are nil if the reply was lost. If the connection breaks each time that
// a large transaction is on it, apply gives up with ErrTooLarge.
func (p *producer) apply(ctx context.Context, ops ...zk.Op) ([]zk.Result, error) {
	size, broken := 0, 0
	for _, op := range ops {
		size += segment.OpSize + len(op.Path()) + len(op.Data())
	}
	return attempt.Run(ctx, p.client, func(sess *zk.Session) ([]zk.Result, error) {
		if err := p.prepare(ctx, sess); err != nil {
			return nil, err
		}
		r, err := p.receipts.Get(ctx, sess)
		switch {
		case p.missing(err):
			return nil, attempt.ErrGone
		case err != nil:
			return nil, err
		}
		op, stamp := r.Stamp(0)
		results, err := sess.Multi(ctx, append([]zk.Op{op}, ops...)...)
		failed, refused := errors.AsType[*zk.MultiError](err)
		switch {
		case err == nil:
			p.clock.saw(results[0].Stat.Mtime)
			r.Done()
			p.receipts.Put(r)
			return results[1:], nil
		case refused && failed.Index == 0: // our receipt was swept away: no other transaction needs it
			p.recheckNodes()
			return nil, attempt.ErrNotDone
		case refused:
			p.receipts.Put(r)
			return nil, ofCaller(failed, 1, len(ops))
		case zk.OutcomeOf(err) != zk.Unknown:
			p.receipts.Put(r)
			return nil, err
		}
		done, err := r.Resolve(ctx, p.client.Session, []string{stamp}, p.clock.saw)
		if err != nil {
			err = fmt.Errorf("%w: %w", attempt.ErrUnresolved, err)
			return nil, &zk.Error{Op: "multi", Path: p.layout.root, Err: err, Outcome: zk.Unknown}
		}
		p.receipts.Put(r)
		if broken++; done == 0 && broken >= maxBroken && size >= largePacket {
			return nil, p.stuckAt(size)
		}
		if done == 0 {
			return nil, attempt.ErrNotDone
		}
		return nil, nil
	})
}
