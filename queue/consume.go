package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/seed-a3166700/turnstile/zk"
)

// RejectError is what a handler of Consume returns to send the item to the dead letters at once, with the error as
// the reason. It is a pointer that is an error: return &queue.RejectError{Err: err}.
type RejectError struct{ Err error }

// Error returns what the error it wraps does.
func (e *RejectError) Error() string { return e.Err.Error() }

// Unwrap returns the error it wraps.
func (e *RejectError) Unwrap() error { return e.Err }

// Consume calls handle for one item after the other, in n goroutines, until ctx ends. Then it takes no more items, waits for the handlers that
// run, and returns nil. What handle returns decides what becomes of the item: nil is Done, a *RejectError is Reject, any other error is Fail.
// A panic of handle is not recovered: the item is delivered again when the session has ended.
//
// The context that handle gets has the values of ctx and ends when the claim is lost; it does not end with ctx. An item whose claim is lost
// is somebody else's, whatever handle returns. Consume returns an error when taking fails for good: the client was closed, or its
// credentials are refused.
func (q *Queue) Consume(ctx context.Context, n int, handle func(ctx context.Context, item *Item) error) error {
	if n < 1 || n > maxPrefetch {
		return q.failed("consume", fmt.Errorf("%w: %d workers, want 1 to %d", zk.BadArguments, n, maxPrefetch))
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() {
			if errs[i] = q.work(ctx, handle); errs[i] != nil {
				stop()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// work is one goroutine of Consume.
func (q *Queue) work(ctx context.Context, handle func(ctx context.Context, item *Item) error) error {
	for {
		item, err := q.Take(ctx)
		switch {
		case ctx.Err() != nil && err != nil:
			return nil //nolint:nilerr // this is how it ends
		case err != nil:
			return err
		}
		if err := item.settle(ctx, handle); err != nil && !errors.Is(err, ErrClaimLost) {
			return err
		}
	}
}

// settle lets handle work on the item and does what it says.
func (it *Item) settle(ctx context.Context, handle func(ctx context.Context, item *Item) error) error {
	values := context.WithoutCancel(ctx)
	work, cancel := context.WithCancelCause(values)
	held := it.Context()
	stop := context.AfterFunc(held, func() { cancel(context.Cause(held)) })
	err := handle(work, it)
	stop()
	cancel(ErrFinished)
	var reject *RejectError
	switch {
	case err == nil:
		err = it.Done(values)
	case errors.As(err, &reject):
		err = it.Reject(values, reject.Error())
	default:
		err = it.Fail(values, err)
	}
	if errors.Is(err, ErrFinished) {
		return nil // by handle itself
	}
	return err
}
