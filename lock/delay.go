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
func DelayPath(path string) string { return line.DelayPath(path) }

// tryEnter enters the lines if no other contender is there and every delay has passed, and returns ErrHeld otherwise.
func (c *Config) tryEnter(ctx context.Context, sess *zk.Session, lines ...*line.Line) (*line.Own, error) {
	own, err := line.TryEnter(ctx, sess, lines...)
	switch {
	case err != nil:
		return nil, err
	case own == nil:
		return nil, ErrHeld
	}
	err = own.TryStart(ctx, c.Delay)
	if errors.Is(err, line.ErrResting) {
		err = ErrHeld
	}
	return own, err
}

// start does what Config.Delay asks of a contender that is first. It calls queued if it has to wait. If it returns an
// error it has released the contender.
func (c *Config) start(ctx context.Context, own *line.Own, queued func(*line.Own)) (*line.Own, error) {
	return own, own.Start(ctx, c.Delay, func(time.Duration) bool {
		queued(own)
		return true
	})
}
