package lock

import (
	"context"
	"errors"
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
)

// DelayPath returns the path of the directory, a sibling of the lock's path, in which holders with a Config.Delay
// leave a node while they hold the lock and after an unclean loss.
func DelayPath(path string) string { return path + "-__delay__" }

// waitsOut lets a delay pass, after it has told of that.
func waitsOut(queued func()) func(time.Duration) bool {
	return func(time.Duration) bool {
		queued()
		return true
	}
}

// waitsNot lets no delay pass.
func waitsNot(time.Duration) bool { return false }

// start does what Config.Delay asks of a place that is first. If it returns an error it has left the place; that is
// ErrHeld if there is a delay that rest does not want to let pass.
func (c *Config) start(
	ctx context.Context, path string, place *line.Place, rest func(time.Duration) bool,
) (*line.Place, error) {
	if c.Delay == 0 {
		return place, nil
	}
	if err := place.Start(ctx, DelayPath(path), c.Delay, rest); err != nil {
		place.Leave()
		return nil, resting(err)
	}
	return place, nil
}

// startAll is start for all places of a set.
func (c *Config) startAll(ctx context.Context, g *line.Group, rest func(time.Duration) bool) (*line.Group, error) {
	if c.Delay == 0 {
		return g, nil
	}
	if err := g.Start(ctx, DelayPath, c.Delay, rest); err != nil {
		g.Leave()
		return nil, resting(err)
	}
	return g, nil
}

func resting(err error) error {
	if errors.Is(err, line.ErrResting) {
		return ErrHeld
	}
	return err
}
