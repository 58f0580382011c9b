package line

import (
	"context"

	"github.com/seed-a3166700/turnstile/zk"
)

// Bound returns ctx, which must end when the ownership is lost, with an Err that looks at the clock itself: a process
// that was stopped for a while must not find alive what has ended meanwhile, because its goroutine runs before the
// timer that ends it does.
func Bound(ctx context.Context, own *zk.Ownership) context.Context { return bound{ctx, own} }

type bound struct {
	context.Context //nolint:containedctx // it is one
	own             *zk.Ownership
}

// Err returns nil as long as the context and the ownership last. What ends a context does so one context after the
// other, and may be suspended in between: so once the ownership is over this waits until its end has come here.
func (b bound) Err() error {
	if b.own.Err() != nil {
		<-b.Done()
	}
	return b.Context.Err()
}
