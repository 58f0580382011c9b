package line

import (
	"context"
	"errors"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// watchAfter is how long a tenure must last before it watches its own node for deletion by somebody else. It keeps the watch off the
// way of short ones.
const watchAfter = 100 * time.Millisecond

// A Tenure is the time for which a place is first in line. It ends once: with Leave, with its session, or when somebody else deletes
// its node. Its methods may be called from any goroutine.
type Tenure struct {
	place *Place
	ctx   context.Context //nolint:containedctx // what is held for the tenure has contexts that come from it
	end   context.CancelCauseFunc
	timer *time.Timer
}

// NewTenure begins the tenure of a place that is first. Deleted is its cause when somebody else deletes the node.
func NewTenure(place *Place, deleted error) *Tenure {
	t := &Tenure{place: place}
	t.ctx, t.end = context.WithCancelCause(place.sess.Context())
	t.timer = time.AfterFunc(watchAfter, func() {
		if err := place.Watch(t.ctx, nil); errors.Is(err, ErrGone) {
			t.end(deleted)
		}
	})
	return t
}

// Context returns a context that ends with the tenure. Contexts for users are made with NewContext.
func (t *Tenure) Context() context.Context { return t.ctx }

// NewContext returns a context that ends with the tenure, for the same cause, or when it is cancelled. Its Err looks at the session's
// deadline itself: a holder that was stopped for a while must not find its context alive because it runs before the session's
// timer does.
func (t *Tenure) NewContext() (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(t.ctx)
	return tenureContext{ctx, t.place.sess}, cancel
}

type tenureContext struct {
	context.Context //nolint:containedctx // it is one
	sess            *zk.Session
}

func (c tenureContext) Err() error {
	_ = c.sess.Err()
	return c.Context.Err()
}

// Err returns nil while the tenure lasts, and why it has ended afterwards.
func (t *Tenure) Err() error {
	if err := t.place.sess.Err(); err != nil && t.ctx.Err() == nil {
		return err
	}
	return context.Cause(t.ctx)
}

// Leave ends the tenure, for that cause, and gives the place up.
func (t *Tenure) Leave(cause error) *Removal {
	t.timer.Stop()
	t.end(cause)
	return t.place.Leave()
}
