package classic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// hold is the time for which the lock of an item is ours.
type hold struct {
	item *Item
	own  *zk.Ownership
	ctx  context.Context //nolint:containedctx // ends with the hold
	end  context.CancelCauseFunc
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
	h.own.Begin()
	it.hold = h
	return nil
}

// Nodes returns the path of the lock.
func (h *hold) Nodes() []string { return []string{h.item.lockPath()} }

// Gone ends the hold because another client has deleted the lock.
func (h *hold) Gone(string) { h.end(fmt.Errorf("%w: its lock is gone", ErrLost)) }

// Lost ends the hold because the session is uncertain. If the lock still exists, it goes as soon as a server can be
// reached, but not before the consumer has had the cooldown to stop.
func (h *hold) Lost(cause error, cooldown time.Duration) {
	h.end(fmt.Errorf("%w: %w", ErrLost, cause))
	time.AfterFunc(cooldown, func() { _ = h.item.Release(h.item.sess.Context()) })
}

// over ends the ownership of an item whose lock was removed, or is about to be. There may be no hold.
func (h *hold) over() {
	if h != nil {
		h.own.End()
	}
}
