package classic

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// consumer is the consumer's side of Curator's queues and of kazoo's.
type consumer struct{ base *base }

// Take takes the first item, and waits until there is one. If ctx ends first it returns ctx's cause. If ctx ends
// while it is taking an item, it waits for the servers' answer, at most until the session ends, and returns the item
// if it got it. It returns a CorruptError for a node that cannot be read, once, and the node stays.
func (t consumer) Take(ctx context.Context) (*Item, error) { return t.base.take(ctx, true) }

// TryTake is Take, but returns ErrEmpty if there is no item, or none that is due and not locked by others.
func (t consumer) TryTake(ctx context.Context) (*Item, error) { return t.base.take(ctx, false) }

// Len returns how many items there are, including those that are locked or not yet due, but no foreign nodes.
func (t consumer) Len(ctx context.Context) (int, error) {
	items, err := t.base.all(ctx)
	return len(items), err
}

// Consume takes items until ctx ends, and calls f with each element of each. Then it returns nil. It returns the error
// with which Take fails for good.
//
// If the queue has locks, an item is done when f has returned nil for all its elements. If f fails, Config.OnError
// says what becomes of the whole item, and Consume goes on; but if ctx has ended by then the item stays in its old
// place. Consume also goes on if the lock was lost meanwhile, since the item is delivered again. The context of f
// ends with ctx and with the session. If the queue has no locks Consume returns f's error: the item is gone. Consume
// does not recover a panic of f: the item stays locked until the session ends.
//
// Several goroutines may call it at once.
func (t consumer) Consume(ctx context.Context, f func(ctx context.Context, body []byte) error) error {
	if f == nil {
		return fmt.Errorf("classic: %w: f is nil", zk.BadArguments)
	}
	for {
		item, err := t.Take(ctx)
		if err != nil {
			return attempt.Stopped(ctx, err)
		}
		if err := t.handle(ctx, item, f); err != nil {
			return err
		}
	}
}

func (t consumer) handle(ctx context.Context, item *Item, f func(ctx context.Context, body []byte) error) error {
	err := call(ctx, item, f)
	if item.id == nil {
		if err != nil {
			return fmt.Errorf("classic: item %s is removed and failed: %w", item.Name(), err)
		}
		return nil
	}
	after := context.WithoutCancel(ctx)
	switch {
	case err != nil && (ctx.Err() != nil || t.base.cfg.OnError == Release):
		err = item.Release(after)
	case err == nil || t.base.cfg.OnError == Drop:
		err = item.Done(after)
	default:
		err = item.Requeue(after)
	}
	if errors.Is(err, ErrLost) {
		return nil
	}
	return err
}

// call calls f with each element, under a context that ends with ctx and with the item's.
func call(ctx context.Context, item *Item, f func(ctx context.Context, body []byte) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	lost := item.Context()
	stop := context.AfterFunc(lost, func() { cancel(context.Cause(lost)) })
	defer stop()
	for _, body := range item.Elements {
		if err := f(ctx, body); err != nil {
			return err
		}
	}
	return nil
}
