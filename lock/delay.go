package lock

// The delay after a loss.

import (
	"context"
	"errors"
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// DelayPath returns the path of the directory, a sibling of the lock's path, in which holders with a Config.Delay
// leave a node while they hold the lock and after an unclean loss.
func DelayPath(path string) string { return path + "-__delay__" }

// waitsOut waits for a delay to pass, after it has called queued.
func waitsOut(queued func()) func(time.Duration) bool {
	return func(time.Duration) bool {
		queued()
		return true
	}
}

// waitsNot does not wait for a delay.
func waitsNot(time.Duration) bool { return false }

// tryEnter enters the lines if no other contender is there and every delay has passed, and returns ErrHeld otherwise.
func (c *Config) tryEnter(ctx context.Context, sess *zk.Session, lines ...*line.Line) (*line.Own, error) {
	own, err := line.TryEnter(ctx, sess, lines...)
	if err == nil && own == nil {
		err = ErrHeld
	}
	if err != nil {
		return nil, err
	}
	return c.start(ctx, own, waitsNot)
}

// start does what Config.Delay asks of a contender that is first. If it returns an error it has released the contender.
// The error is ErrHeld if a delay has not passed and rest refuses to wait.
func (c *Config) start(ctx context.Context, own *line.Own, rest func(time.Duration) bool) (*line.Own, error) {
	if c.Delay == 0 {
		return own, nil
	}
	if err := own.Start(ctx, DelayPath, c.Delay, rest); err != nil {
		own.Release()
		return nil, resting(err)
	}
	return own, nil
}

func resting(err error) error {
	if errors.Is(err, line.ErrResting) {
		return ErrHeld
	}
	return err
}
