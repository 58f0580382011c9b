package zk

// The clock of a session, which includes the time for which the machine was suspended.

import (
	"sync/atomic"
	"time"
)

// recheck is how far the wall clock and the monotonic clock may drift apart before the suspend clock is read again.
const recheck = 10 * time.Millisecond

// A clock is the monotonic clock of sessions. It includes the time for which the machine was suspended, if the system
// reports it: Go's monotonic clock on Linux does not, and a laptop that slept for an hour would believe that it still
// holds its locks.
//
// Reading the suspend clock takes a system call, which is too expensive for every check of a deadline. A suspension
// also moves the wall clock relative to the monotonic clock, and time.Now returns both. So the suspend clock is read
// again only when these two have moved relative to each other.
type clock struct {
	suspend func() time.Duration // the time suspended since the machine was started; nil if unknown
	start   time.Time
	first   time.Duration // what suspend returned at the start

	drift  atomic.Int64 // of the wall clock from the monotonic one when suspend was last read
	offset atomic.Int64 // the time suspended since the start
}

func newClock(suspend func() time.Duration) *clock {
	c := &clock{suspend: suspend, start: time.Now()}
	if suspend != nil {
		c.first = suspend()
	}
	return c
}

// now returns the time. Only the difference between two results has a meaning.
func (c *clock) now() time.Time {
	t := time.Now()
	return t.Add(c.suspended(t))
}

// system converts a time of this clock to the system's.
func (c *clock) system(t time.Time) time.Time { return t.Add(-time.Duration(c.offset.Load())) }

// suspended returns how long the machine was suspended between the start and t, the current time.
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
