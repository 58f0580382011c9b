package queue

// Time limits of attempts.

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// workContext is the context of a handler: it ends when the item's does, and has the values of another.
type workContext struct {
	context.Context                 //nolint:containedctx // it is one: the item's
	values          context.Context //nolint:containedctx // it is one
}

// Value looks among the caller's values first. The item's context has none of its own but those of package context,
// which tell its cause.
func (w workContext) Value(key any) any {
	if v := w.values.Value(key); v != nil {
		return v
	}
	return w.Context.Value(key)
}

// timeoutError is the reason of an attempt that has failed because its time was over. Err is what the handler says of
// it, nil if it says nothing.
func (it *Item) timeoutError(err error) error {
	if err == nil || errors.Is(err, ErrTimeout) {
		return fmt.Errorf("%w: it was %v", ErrTimeout, it.Timeout())
	}
	return fmt.Errorf("%w: it was %v: %w", ErrTimeout, it.Timeout(), err)
}

// failWhenLate makes the attempt fail when its handler has not returned a while after the time limit. The handler's
// context has ended by then. Late is to be called when the handler has returned: it reports whether the attempt has
// failed, or could not be made to for an error that is the item's end for this consumer, too.
func (it *Item) failWhenLate(ctx context.Context) (late func() (bool, error)) {
	limit := it.Timeout()
	if limit == 0 {
		return func() (bool, error) { return false, nil }
	}
	failed := make(chan error, 1)
	patience := it.co.sess.Timeout() / 4 // as long as a handler has to stop that has lost its claim
	timer := time.AfterFunc(time.Until(it.begun.Add(limit))+patience, func() {
		failed <- it.settle(func() error { return it.Fail(ctx, it.timeoutError(nil)) })
	})
	return func() (bool, error) {
		if timer.Stop() {
			return false, nil
		}
		switch err := <-failed; {
		case err == nil, errors.Is(err, ErrFinished): // the handler has finished the item itself
			return true, nil
		case errors.Is(err, ErrClaimLost):
			return true, err
		}
		return false, nil // it is still ours, to be finished as the handler says
	}
}
