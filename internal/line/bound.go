package line

// A context that reads the clock.

import (
	"context"

	"github.com/seed-a3166700/turnstile/zk"
)

// Bound returns ctx, which must end when the ownership is lost, with an Err that looks at the clock itself: in a
// process that was stopped for a while, a goroutine may run before the timer that ends the ownership does, and must not
// find it alive.
func Bound(ctx context.Context, own *zk.Ownership) context.Context { return bound{ctx, own} }

type bound struct {
	context.Context //nolint:containedctx // it is one
	own             *zk.Ownership
}

// Err returns nil as long as the context and the ownership last. Contexts are cancelled one after the other, and the
// process may be suspended in between: so once the ownership is over, Err waits until the end has come here.
func (b bound) Err() error {
	if b.own.Err() != nil {
		<-b.Done()
	}
	return b.Context.Err()
}
