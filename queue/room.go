package queue

// Waiting for room.

import (
	"context"
	"errors"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// How long a put that waits for room waits before it looks again.
const (
	roomFirst = 20 * time.Millisecond
	roomMax   = time.Second
)

// room waits until n more items may be put, or returns an error if they may not. It calls full, unless nil, whenever
// there is no room; if full fails, room returns its error.
//
// What it counts may have changed when the put is done: puts at the same time do not see each other.
func (p *producer) room(ctx context.Context, sess *zk.Session, n int, full func(context.Context) error) error {
	if p.cfg.MaxItems == 0 {
		return nil
	}
	for pause := roomFirst; ; pause = min(2*pause, roomMax) {
		ready, err := p.fillsBelow(ctx, sess, dirReady)
		if err != nil {
			return err
		}
		delayed, err := p.fillsBelow(ctx, sess, dirDelayed)
		if err != nil {
			return err
		}
		stored := ready.left() + delayed.left()
		// To count what waits takes a request for each busy group, so a bound of it comes first.
		if most, err := p.waitingAtMost(ctx, sess); err == nil && stored+most+n <= p.cfg.MaxItems {
			return nil
		} else if err != nil && !errors.Is(err, zk.Unimplemented) {
			return err
		}
		waiting, err := p.countWaiting(ctx, sess)
		if err != nil {
			return err
		}
		if stored+waiting+n <= p.cfg.MaxItems {
			return nil
		}
		if full != nil {
			if err := full(ctx); err != nil {
				return err
			}
		}
		if !p.cfg.WaitWhenFull || n > p.cfg.MaxItems {
			return &FullError{Items: stored + waiting, MaxItems: p.cfg.MaxItems}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.ctx.Done():
			return context.Cause(p.ctx)
		}
	}
}
