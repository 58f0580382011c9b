package queue

// Finishing items.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/queue/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// Done acknowledges the item, together with other writes if there are any: either all is done, or nothing. After it
// has returned nil the item is never delivered again. If the servers refuse one of ops, it returns that refusal, with
// the index in ops in a *zk.MultiError, and the item is still the caller's.
//
// A broken connection does not make it fail: it finds out whether the item is gone before it tries again. It returns
// ErrClaimLost if the claim was lost before: then the item is, or will be, delivered to another consumer, unless the
// acknowledgement had reached the servers in the session's last moments. If it cannot find out whether ops are done, it
// returns ErrUnresolved, too. If ctx ends first, it returns ctx's cause and goes on in the background.
func (it *Item) Done(ctx context.Context, ops ...zk.Op) error {
	f := it.acknowledge
	if len(ops) > 0 {
		f = func() error { return it.remove(removal{ops: ops, final: true}) }
	}
	return it.finish(ctx, ItemEnd{Result: ResultDone}, f, it.tellDone)
}

// tellDone calls the hook. Ctx is that of the caller, which may have left.
func (it *Item) tellDone(ctx context.Context) {
	if hook := it.co.q.cfg.Hooks.Done; hook != nil {
		hook(context.WithoutCancel(ctx), it)
	}
}

// Fail says that this attempt has failed, and why. The item is delivered again after the time that Config.Backoff
// gives for this attempt, or that a *RetryError in reason gives, behind what has arrived by then. When
// Config.MaxAttempts have been made it goes to the dead letters instead. Fail itself fails as Done does.
func (it *Item) Fail(ctx context.Context, reason error) error {
	retry, given := errors.AsType[*RetryError](reason)
	switch {
	case !given && reason == nil:
		return it.retry(ctx, it.backoff(), "failed")
	case !given:
		return it.retry(ctx, it.backoff(), reason.Error())
	case retry.Err == nil:
		return it.retry(ctx, retry.After, "")
	}
	return it.retry(ctx, retry.After, reason.Error())
}

// backoff returns how long after a failure of this attempt the item is ready again: it never keeps its place.
func (it *Item) backoff() time.Duration {
	return max(time.Millisecond, it.co.q.cfg.Backoff.Delay(it.attempt))
}

// RetryError is a reason for Item.Fail, and an error for a handler of Consume to return. It says when the item is to
// be delivered again: return &queue.RetryError{Err: err, After: time.Minute}.
//
// If After is zero the item is ready at once, in its old place, and Err is not recorded. Places are kept for a
// thousand items that wait to be delivered again; an item that goes back beyond that arrives anew. A negative After is
// taken for zero, as that of a time that is past, and one of more than ten years for ten years.
type RetryError struct {
	Err   error // may be nil
	After time.Duration
}

// Error returns the text of the error that it wraps.
func (e *RetryError) Error() string {
	if e.Err == nil {
		return "retry"
	}
	return e.Err.Error()
}

// Unwrap returns the error that it wraps.
func (e *RetryError) Unwrap() error { return e.Err }

// Return gives the item back as if it had not been delivered: at once and in its old place, or after delay, behind
// what has arrived by then. The attempt does not count. It is for a consumer that cannot work now, for reasons that
// are not the item's. It fails as Done does.
func (it *Item) Return(ctx context.Context, delay time.Duration) error {
	return it.again(ctx, delay, it.attempt-1, "")
}

// Reject moves the item to the dead letters, with the reason. It fails as Done does.
func (it *Item) Reject(ctx context.Context, reason string) error { return it.bury(ctx, reason, "") }

// bury moves the item to the dead letters. Last is why its last attempt failed, if that is known and is not the reason.
func (it *Item) bury(ctx context.Context, reason, last string) error {
	return it.finish(ctx, ItemEnd{Result: ResultDead, Err: reasonError(reason)}, func() error {
		it.endContext()
		return it.moveToDead(reason, last)
	}, nil)
}

// retry makes the item be delivered again, unless this was its last attempt. No delay is refused: the item would stay
// claimed for a value that may be computed, and Consume would end.
func (it *Item) retry(ctx context.Context, delay time.Duration, reason string) error {
	limit := it.co.q.cfg.MaxAttempts
	if limit > 0 && it.attempt >= limit {
		text := fmt.Sprintf("%d attempts failed", it.attempt)
		if it.attempt == 1 {
			text = "1 attempt failed"
		}
		if reason != "" {
			text += ", the last one: " + reason
		}
		return it.bury(ctx, text, reason)
	}
	return it.again(ctx, min(max(0, delay), maxDelay), it.attempt, reason)
}

// again makes the item be delivered again, with so many attempts made.
func (it *Item) again(ctx context.Context, delay time.Duration, attempts int, reason string) error {
	if delay < 0 || delay > maxDelay {
		return it.failed(attempt.Bad("delay must be between 0 and ten years: %v", delay))
	}
	return it.finish(ctx, ItemEnd{Result: ResultRetried, Err: reasonError(reason)}, func() error {
		it.endContext()
		if delay < time.Millisecond && it.co.mayPutBack() {
			return it.putBack(attempts - it.rec.Attempts)
		}
		later := *it.rec
		later.Priority, later.Attempts = it.lease.Priority, attempts
		later.Enqueued = it.EnqueuedAt().UnixMilli()
		later.Delay, later.Due = max(1, delay.Milliseconds()), 0
		if reason != "" {
			later.Failures = slices.Clone(later.Failures)
			later.Fail(it.co.q.clock.now(), reason)
		}
		to := func() *segment.List { return it.co.q.target(&later) }
		return it.remove(removal{to: to, data: later.Encode()})
	}, func(ctx context.Context) {
		if hook := it.co.q.cfg.Hooks.Retried; hook != nil {
			hook(context.WithoutCancel(ctx), it, delay)
		}
	})
}

// reasonError returns a reason as an error, nil if there is none.
func reasonError(reason string) error {
	if reason == "" {
		return nil
	}
	return errors.New(reason)
}

// finish calls f to finish the item as wanted says, unless another call does or has, and then told, unless nil. If ctx
// ends first, f goes on: it ends with the session at the latest.
func (it *Item) finish(ctx context.Context, wanted ItemEnd, f func() error, told func(context.Context)) error {
	if ctx.Err() != nil {
		return it.failed(context.Cause(ctx))
	}
	if !it.begin() {
		return it.failed(ErrFinished)
	}
	var err error
	if left := through(ctx, func() {
		err = f()
		end := it.end(err, wanted)
		if err == nil && told != nil {
			told(ctx)
		}
		it.tellEnded(ctx, end)
	}); left != nil {
		return it.failed(&zk.Error{Op: "finish", Path: it.Path(), Err: left, Outcome: zk.Unknown})
	}
	return it.failed(err)
}

// through runs f, and returns nil once that has returned. If ctx ends first it returns ctx's cause, and f goes on. The
// item's own context ends while f finishes the item, so a caller that uses it waits for f.
func through(ctx context.Context, f func()) error {
	if ctx.Done() == nil {
		f()
		return nil
	}
	ctx, stop := attempt.Outlive(ctx, ErrFinished)
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// begin reports whether the caller may finish the item. If so, it calls end.
func (it *Item) begin() bool {
	it.mu.Lock()
	defer it.mu.Unlock()
	if it.finished || it.busy != nil {
		return false
	}
	it.busy, it.settling = make(chan struct{}), time.Now()
	return true
}

// end ends a call that was to finish the item. It returns what to tell the hook.
func (it *Item) end(err error, wanted ItemEnd) ItemEnd {
	it.mu.Lock()
	defer it.mu.Unlock()
	close(it.busy)
	it.busy = nil
	if err == nil || errors.Is(err, ErrClaimLost) {
		it.finished = true
		it.cancelContext(cmp.Or(err, ErrFinished))
	}
	return it.ending(err, wanted)
}

// settle calls f, which finishes the item, and again if another call that was about to finish it then has failed: the
// caller of that may have left before it was refused, and then f is the last that would finish the item.
func (it *Item) settle(f func() error) error {
	for {
		if err := f(); !errors.Is(err, ErrFinished) || it.settled() {
			return err
		}
	}
}

// settled waits for the call that is about to finish the item, if there is one: it returns at the end of the session at
// the latest. It reports whether the item is finished.
func (it *Item) settled() bool {
	it.mu.Lock()
	busy := it.busy
	it.mu.Unlock()
	if busy != nil {
		<-busy
	}
	it.mu.Lock()
	defer it.mu.Unlock()
	return it.finished
}

// cancelContext ends the item's context. The caller holds it.mu.
func (it *Item) cancelContext(cause error) {
	it.over = true
	if it.cancel != nil {
		it.cancel(cause)
	}
}

// endContext ends the item's context before a request that gives the item to others: one of them may have it before
// the answer comes.
func (it *Item) endContext() {
	it.mu.Lock()
	defer it.mu.Unlock()
	it.cancelContext(ErrFinished)
}

func (it *Item) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("queue: item %s of %s: %w", it.ID(), it.co.q.layout.root, err)
}
