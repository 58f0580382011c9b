package server

// The clock by which sessions expire.

import (
	"sync/atomic"
	"time"
)

// clock measures the time by which sessions expire: monotonic, from 0 at the start of the server. Any goroutine may
// read it; one at a time may stop and start it.
type clock struct {
	base    time.Time
	lag     atomic.Int64 // total nanoseconds for which it was stopped
	stopped atomic.Int64 // its time plus 1 while it is stopped; 0 while it runs
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

// wall returns the wall time of an instant of the clock, for display.
func (c *clock) wall(at time.Duration) time.Time {
	return c.base.Add(at + time.Duration(c.lag.Load())).Round(0)
}
