package attempt

// Calls that end the context which they are given, and calls that its end stops.

import (
	"context"
	"errors"
	"time"
)

// Outlive returns the context of a call that ends something, such as a hold, whose own context ends with the cause
// ended: callers give such a call that context, or one made from it, because it is the one that they have worked with.
// What is returned does not end for that cause, also if ctx has ended for it before the call. It ends as ctx does for
// any other, and at ctx's deadline. Stop must be called when the call returns.
func Outlive(ctx context.Context, ended error) (outliving context.Context, stop func()) {
	if ctx.Done() == nil || ctx.Err() != nil && !errors.Is(context.Cause(ctx), ended) {
		return ctx, func() {}
	}
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	detach := context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); !errors.Is(cause, ended) {
			cancel(cause)
			return
		}
		if at, ok := ctx.Deadline(); ok {
			late := time.AfterFunc(time.Until(at), func() { cancel(context.DeadlineExceeded) })
			context.AfterFunc(out, func() { late.Stop() })
		}
	})
	return out, func() { detach(); cancel(context.Canceled) }
}

// Stopped returns what a call returns that runs until its context ends: nil if err only says that ctx has ended, and
// err otherwise.
func Stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && (errors.Is(err, context.Cause(ctx)) || errors.Is(err, ctx.Err())) {
		return nil
	}
	return err
}
