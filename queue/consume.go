package queue

// Running a function for each item.

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// RejectError is what a handler of Consume returns to move the item to the dead letters at once, with the error as the
// reason: return &queue.RejectError{Err: err}.
type RejectError struct{ Err error } // may be nil

// Error returns the text of the error that it wraps.
func (e *RejectError) Error() string {
	if e.Err == nil {
		return "rejected"
	}
	return e.Err.Error()
}

// Unwrap returns the error that it wraps.
func (e *RejectError) Unwrap() error { return e.Err }

// Consume calls handle for one item after the other, in n goroutines, until ctx ends. Then it takes no more items,
// waits for the running handlers, and returns nil. It returns an error when taking fails for good: the client was
// closed, or the servers refuse its credentials.
//
// The error of handle decides what becomes of the item: nil is Done, a *RejectError is Reject, any other error is Fail,
// which a *RetryError tells when the item is ready again. If handle has finished the item itself, its error does not
// matter; if it has left a call that finishes the item, it decides when that has failed. Consume does not recover a
// panic of handle: the item is delivered again when the session has ended. If handle leaves by runtime.Goexit the item
// has failed, and Consume returns an error.
//
// The context of handle has the values of ctx and ends when the claim is lost; it does not end with ctx. If the claim
// is lost, the item goes to another consumer, whatever handle returns.
//
// If the item has a time limit (Message.Timeout, Config.Timeout), the context also ends, with ErrTimeout, when that is
// over. Then an error of handle is Fail as usual, and nil is Done: the item is still this consumer's. If handle has not
// returned a quarter of the session timeout later, the attempt fails without it, and the item may go to another
// consumer while handle still runs, which keeps its goroutine of the n busy.
func (q *Queue) Consume(ctx context.Context, n int, handle func(ctx context.Context, item *Item) error) error {
	if n < 1 || n > maxPrefetch {
		return q.failed("consume", fmt.Errorf("%w: %d workers, want 1 to %d", zk.BadArguments, n, maxPrefetch))
	}
	if handle == nil {
		return q.failed("consume", fmt.Errorf("%w: handle is nil", zk.BadArguments))
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() {
			errs[i] = q.failed("consume", errExited)
			defer func() {
				if errs[i] != nil {
					stop()
				}
			}()
			errs[i] = q.work(ctx, handle)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// errExited is how an attempt fails whose handler leaves by runtime.Goexit, as t.FailNow does.
var errExited = errors.New("the handler has ended its goroutine")

// work is one goroutine of Consume.
func (q *Queue) work(ctx context.Context, handle func(ctx context.Context, item *Item) error) error {
	for {
		items, err := q.dispatcher.take(ctx, 1, false)
		switch {
		case ctx.Err() != nil && err != nil:
			return nil //nolint:nilerr // this is how it ends
		case err != nil:
			return q.failed("take", err)
		}
		if err := items[0].handle(ctx, handle); err != nil && !errors.Is(err, ErrClaimLost) {
			return err
		}
	}
}

// handle calls f with the item, and finishes the item as the error of f says.
func (it *Item) handle(ctx context.Context, f func(ctx context.Context, item *Item) error) error {
	values := context.WithoutCancel(ctx)
	late := it.failWhenLate(values)
	returned := false
	defer func() {
		if returned {
			return
		}
		attempt.Repanic(recover())
		if failed, _ := late(); !failed {
			_ = it.settle(func() error { return it.Fail(values, errExited) }) // Consume ends with errExited
		}
	}()
	err := f(workContext{it.Context(), values}, it)
	returned = true
	if failed, lateErr := late(); failed {
		return lateErr
	}
	err = it.settle(func() error { return it.finishAs(values, err) })
	if errors.Is(err, ErrFinished) {
		return nil // f has finished the item itself
	}
	return err
}

// finishAs finishes the item as the error of its handler says.
func (it *Item) finishAs(ctx context.Context, err error) error {
	var reject *RejectError
	switch {
	case err == nil:
		return it.Done(ctx)
	case errors.As(err, &reject):
		return it.Reject(ctx, reject.Error())
	case errors.Is(context.Cause(it.Context()), ErrTimeout):
		return it.Fail(ctx, it.timeoutError(err))
	}
	return it.Fail(ctx, err)
}
