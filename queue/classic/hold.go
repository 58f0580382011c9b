package classic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
)

// watchAfter is how long a hold must last before its lock is watched. It keeps the watch off the path of short ones.
const watchAfter = 100 * time.Millisecond

// hold is the time for which the lock of an item is ours.
type hold struct {
	item  *Item
	own   *zk.Ownership
	ctx   context.Context //nolint:containedctx // ends with the hold
	end   context.CancelCauseFunc
	timer *time.Timer // starts watch
}

// begin begins the hold of an item whose lock was created, once the session is certain that the lock is ours.
func (it *Item) begin(ctx context.Context) error {
	if err := it.sess.Certify(ctx, it.lockPath()); err != nil {
		if errors.Is(err, zk.NoNode) {
			return fmt.Errorf("%w: its lock is gone", ErrLost)
		}
		return errors.Join(err, it.unlock(ctx))
	}
	h := &hold{item: it}
	ctx, h.end = context.WithCancelCause(it.sess.Context())
	h.own = it.sess.NewOwnership(h)
	h.ctx = line.Bound(ctx, h.own)
	h.timer = time.AfterFunc(watchAfter, h.watch)
	it.hold = h // first: a loss lets another goroutine release the item
	h.own.Begin()
	return nil
}

// Nodes returns the path of the lock.
func (h *hold) Nodes() []string { return []string{h.item.lockPath()} }

// watch ends the hold when the lock is not there any more. It looks whose lock there is: another consumer may have
// made its own by the time that we look, and the session's proofs take that for ours.
func (h *hold) watch() {
	if attempt.AwaitGone(h.ctx, h.item.sess, h.item.lockPath(), h.item.made) {
		h.Gone("")
	}
}

// Gone ends the hold because another client has deleted the lock.
func (h *hold) Gone(string) {
	h.end(fmt.Errorf("%w: its lock is gone", ErrLost))
	h.over()
}

// Lost ends the hold because the session is uncertain. If the lock still exists, it goes as soon as a server can be
// reached, but not before the consumer has had the cooldown to stop. If the consumer is removing it by then, that is
// left alone: the lock must not be another one's when that removal arrives.
func (h *hold) Lost(cause error, cooldown time.Duration) {
	h.end(fmt.Errorf("%w: %w", ErrLost, cause))
	if errors.Is(context.Cause(h.ctx), ErrLost) {
		time.AfterFunc(cooldown, func() { _ = h.item.unlock(h.item.sess.Context()) })
	}
}

// over ends the hold of an item whose lock was removed, or is about to be. There may be no hold.
func (h *hold) over() {
	if h != nil {
		h.own.End()
		h.timer.Stop()
		h.end(queue.ErrFinished)
	}
}
