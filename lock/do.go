package lock

// Running a function under a lock.

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// Do calls f while it holds the lock: it waits for the lock as Lock does, calls f, and unlocks. The context that f gets
// carries ctx's values, and ends with ctx as well as with the hold.
//
// Do returns Lock's error, without calling f, or else f's. If the hold was lost before f returned, Do returns an error
// that wraps the cause of the loss and f's error. If f panics, the lock is released and the panic goes on.
func (m *Mutex) Do(ctx context.Context, f func(ctx context.Context, h *Hold) error) error {
	return do(ctx, m.Lock, f)
}

// Do calls f while it holds the lock for writing, as Mutex.Do does.
func (m *RWMutex) Do(ctx context.Context, f func(ctx context.Context, h *Hold) error) error {
	return do(ctx, m.Lock, f)
}

// RDo calls f while it holds the lock for reading, as Mutex.Do does.
func (m *RWMutex) RDo(ctx context.Context, f func(ctx context.Context, h *Hold) error) error {
	return do(ctx, m.RLock, f)
}

// Do calls f while it holds n permits, as Mutex.Do does.
func (s *Semaphore) Do(ctx context.Context, n int, f func(ctx context.Context, h *Hold) error) error {
	return do(ctx, func(ctx context.Context) (*Hold, error) { return s.Acquire(ctx, n) }, f)
}

// Do calls f while it holds all locks of the set, as Mutex.Do does.
func (s *Set) Do(ctx context.Context, f func(ctx context.Context, h *Hold) error) error {
	return do(ctx, s.Lock, f)
}

// Do calls f while it holds the lock, as Mutex.Do does.
func (s *Simple) Do(ctx context.Context, f func(ctx context.Context, h *Hold) error) error {
	return do(ctx, s.Lock, f)
}

func do(
	ctx context.Context, acquire func(context.Context) (*Hold, error), f func(context.Context, *Hold) error,
) (err error) {
	if f == nil {
		return fmt.Errorf("lock: %w: f is nil", zk.BadArguments)
	}
	h, err := acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { err = h.finish(err) }() // also when f panics
	work, stop := line.Within(h.Context(), ctx)
	defer stop()
	if work.Err() != nil { // Lock can return a hold although ctx has just ended
		return fmt.Errorf("lock: hold of %s: %w", h.Path(), context.Cause(work))
	}
	return f(work, h)
}

// finish unlocks h after work that returned err, and returns what to report of the two.
func (h *Hold) finish(err error) error {
	ended := h.grant.Stopped()
	lost := h.Unlock()
	switch {
	case lost != nil:
		ended = lost // since the work returned, perhaps
	case err == nil, errors.Is(ended, ErrUnlocked):
		// The work is done, and the lock was held until now: a request to release it, or a lost connection, need not
		// concern the caller. Or the work has unlocked by itself.
		return err
	}
	if ended == nil || errors.Is(err, ended) {
		return err
	}
	return errors.Join(err, fmt.Errorf("lock: hold of %s has ended: %w", h.Path(), ended))
}
