package line

import (
	"context"

	"github.com/seed-a3166700/turnstile/zk"
)

// Bound returns ctx, which must come from the context of sess, with an Err that looks at the session's deadline itself: who was stopped for a
// while must not find alive what has ended with the session, because he runs before the session's timer does.
func Bound(ctx context.Context, sess *zk.Session) context.Context { return bound{ctx, sess} }

type bound struct {
	context.Context //nolint:containedctx // it is one
	sess            *zk.Session
}

// Err returns nil as long as the context and the session live. A context ends before those that come from it, one after the other, and
// whoever ends them may be suspended in between: so once the session is over this waits until its end has come here.
func (b bound) Err() error {
	if b.sess.Err() != nil {
		<-b.Done()
	}
	return b.Context.Err()
}
