package counter

// A single write.

import (
	"context"
	"errors"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// write does the change once, under the next sessions if need be, and returns what outcome does. It returns errConflict
// if the node is not what the change is conditional on.
func (r *register) write(ctx context.Context, change zk.Op) (zk.Stat, error) {
	for {
		if ctx.Err() != nil {
			return zk.Stat{}, context.Cause(ctx)
		}
		sess, err := r.client.Session(ctx)
		if err != nil {
			return zk.Stat{}, err
		}
		rec, err := r.receipts.get(ctx, sess)
		if err == nil {
			b := sess.Batch()
			w := r.add(sess, b, rec, change)
			b.Send()
			var stat zk.Stat
			if stat, err = w.outcome(ctx); err == nil {
				return stat, nil
			}
		}
		switch {
		case errors.Is(err, errConflict), errors.Is(err, ErrUnresolved):
			return zk.Stat{}, err
		case errors.Is(err, errParents):
			err = r.makeParents(ctx, sess)
		case errors.Is(err, errReceipt), errors.Is(err, errLost):
			err = nil
		}
		if err != nil && ctx.Err() == nil && sess.Context().Err() == nil {
			if err := line.AwaitRetry(ctx, sess, err); err != nil && ctx.Err() == nil && sess.Context().Err() == nil {
				return zk.Stat{}, err
			}
		}
	}
}
