package zk

// The clock of a session, which includes the time for which the machine was suspended.

import (
	"sync/atomic"
	"time"
)

// recheck is how far the system's wall clock and its monotonic clock may drift apart before the suspend clock is read again.
const recheck = 10 * time.Millisecond

// A clock tells the time by which sessions live. It is monotonic and includes the time for which the machine was suspended, where the
// system can tell: Go's monotonic clock stands still meanwhile on Linux, and a laptop that slept for an hour would find its locks held.
//
// Reading the suspend clock is a system call, too dear for every look at a deadline. A suspend also moves the wall clock against the
// monotonic one, and time.Now returns both. So the suspend clock is read again only when these two have moved against each other.
type clock struct {
	suspend func() time.Duration // how long the machine has been suspended since it was started; nil if the system cannot tell
	start   time.Time
	first   time.Duration // what suspend returned at the start

	drift  atomic.Int64 // of the wall clock against the monotonic one when suspend was last read
	offset atomic.Int64 // how long the machine was suspended since the start
}

func newClock(suspend func() time.Duration) *clock {
	c := &clock{suspend: suspend, start: time.Now()}
	if suspend != nil {
		c.first = suspend()
	}
	return c
}

// now returns the time. Only differences between two results mean anything.
func (c *clock) now() time.Time {
	t := time.Now()
	return t.Add(c.suspended(t))
}

// system returns the system's time for one of this clock.
func (c *clock) system(t time.Time) time.Time { return t.Add(-time.Duration(c.offset.Load())) }

// suspended returns for how long the machine was suspended between the start and t, which is now.
func (c *clock) suspended(t time.Time) time.Duration {
	if c.suspend == nil {
		return 0
	}
	drift := t.UnixNano() - int64(t.Sub(c.start))
	if moved := time.Duration(drift - c.drift.Load()); moved > recheck || moved < -recheck {
		c.offset.Store(int64(c.suspend() - c.first))
		c.drift.Store(drift) // last: a goroutine that sees it also sees the offset
	}
	return time.Duration(c.offset.Load())
}
