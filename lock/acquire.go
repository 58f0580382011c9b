package lock

// What all locks have in common: one way to acquire.

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/internal/waits"
	"github.com/seed-a3166700/turnstile/zk"
)

// A base is what all locks have in common.
type base struct {
	client *zk.Client
	name   string // of the lock, for errors and hooks: its path, or a set's paths
	cfg    Config
	passes *localQueue // whose goroutines have one ownership one after the other; nil if there is none
}

// acquire acquires the lock of which b is the base: by nesting in a hold if the caller re-enters, or as take does it.
// It calls the hooks, and adds the lock's name to an error.
//
// Its frame is on the stack of every goroutine that waits in take (see localQueue.lock): the compiler must not inline
// what it calls.
func (b *base) acquire(
	ctx context.Context, of any, kind Kind, take func(context.Context, *report) (*Hold, error),
) (*Hold, error) {
	r := b.report(kind)
	outer, nested, err := b.outer(ctx, of, kind != Reader)
	switch {
	case err != nil:
		return nil, r.failed(ctx, err)
	case nested != nil:
		return nested, nil
	}
	if b.cfg.OnDeadlock != IgnoreDeadlock && waits.Inside(ctx, outer) {
		return b.acquireInside(ctx, of, kind, outer, r, take)
	}
	h, err := take(ctx, r)
	return b.acquired(ctx, of, outer, r, h, err)
}

// acquired makes what acquire returns of what was taken.
func (b *base) acquired(ctx context.Context, of any, outer waits.Hold, r *report, h *Hold, err error) (*Hold, error) {
	if err != nil {
		return nil, r.failed(ctx, b.failed(err))
	}
	h.outer, h.grant.of = outer, of
	r.acquired(ctx, h)
	return h, nil
}

// outer returns a hold of the lock nested in one that ctx descends from, if the caller re-enters. Otherwise it returns
// the innermost hold that ctx descends from, of any lock. Both are nil if there is none.
//
//go:noinline
func (b *base) outer(ctx context.Context, of any, write bool) (outer waits.Hold, nested *Hold, err error) {
	if ctx.Err() != nil {
		return nil, nil, b.failed(context.Cause(ctx))
	}
	innermost := waits.Innermost(ctx)
	if innermost != nil && ctx.Value(reenterKey{}) == true {
		if nested, err = nestedIn(ctx, innermost, of, write); err != nil {
			return nil, nil, b.failed(err)
		}
	}
	return waits.Lasting(innermost), nested, nil
}

// own makes a contender that is first, by try, and begins its ownership. It tries again as Config.Retry says.
func (b *base) own(ctx context.Context, try func(*zk.Session) (*line.Own, error)) (*line.Ownership, error) {
	own, err := line.Policy(b.cfg.Retry).Acquire(ctx, b.client, try)
	if err != nil {
		return nil, err
	}
	return b.begin(own)
}

// begin begins the ownership of a contender that is first.
func (b *base) begin(own *line.Own) (*line.Ownership, error) {
	o, err := line.Begin(own, ErrDeleted, b.asked)
	if err == nil && b.cfg.OnSuspend == EndHold {
		endSuspended(o)
	}
	return o, err
}

// contend makes a contender of a session's that is first. It calls queued when it has to wait, with the contender that
// stands in line, or nil if it waits without one.
type contend func(ctx context.Context, sess *zk.Session, queued func(*line.Own)) (*line.Own, error)

// alone is own for a contender that serves one grant.
func (b *base) alone(ctx context.Context, r *report, try contend) (*Hold, error) {
	queued := func(own *line.Own) { r.standing(ctx, own) }
	o, err := b.own(ctx, func(sess *zk.Session) (*line.Own, error) { return try(ctx, sess, queued) })
	if err != nil {
		return nil, err
	}
	return newHold(o, sole{}), nil
}

// first waits until the contender that was asked for is first, and lets a delay pass. It calls queued with it when
// it has to wait.
func (b *base) first(ctx context.Context, request *line.Request, queued func(*line.Own)) (*line.Own, error) {
	own, err := request.Own(ctx)
	if err != nil {
		request.Cancel()
		return nil, err
	}
	return b.await(ctx, own, queued)
}

func (b *base) await(ctx context.Context, own *line.Own, queued func(*line.Own)) (*line.Own, error) {
	if !own.First() {
		queued(own)
	}
	if err := own.Await(ctx); err != nil {
		own.Release()
		return nil, err
	}
	return b.cfg.start(ctx, own, queued)
}

// failed adds the lock's name to err and, if the wait was cut short while no server answered, the reason for that.
func (b *base) failed(err error) error {
	if errors.Is(err, ErrHeld) {
		return err
	}
	return fmt.Errorf("lock: %s: %w", b.name, attempt.Explain(b.client, err))
}
