package server

import (
	"sync/atomic"
	"time"
)

// clock is the time by which sessions live: monotonic, from 0 at the start of the server, and it can be stopped.
// Any goroutine may read it; one at a time stops and starts it.
type clock struct {
	base    time.Time
	lag     atomic.Int64 // nanoseconds for which it has stood still in all
	stopped atomic.Int64 // its time while it stands still, plus 1; 0 while it runs
}

func newClock() *clock { return &clock{base: time.Now()} }

func (c *clock) now() time.Duration {
	if at := c.stopped.Load(); at != 0 {
		return time.Duration(at - 1)
	}
	return time.Since(c.base) - time.Duration(c.lag.Load())
}

func (c *clock) stop() {
	if c.stopped.Load() == 0 {
		c.stopped.Store(int64(c.now()) + 1)
	}
}

func (c *clock) start() {
	if at := c.stopped.Load(); at != 0 {
		c.lag.Store(int64(time.Since(c.base)) - (at - 1))
		c.stopped.Store(0)
	}
}

func (c *clock) running() bool { return c.stopped.Load() == 0 }

// wall returns the wall time of an instant of the clock. It is meant for people.
func (c *clock) wall(at time.Duration) time.Time {
	return c.base.Add(at + time.Duration(c.lag.Load())).Round(0)
}
