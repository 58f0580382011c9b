package queue

// The servers' time.

import (
	"sync/atomic"
	"time"
)

// clock tells the servers' time, as far as it is known: from the times that servers put into the Stat of what was
// written, and from how long ago, by our own monotonic clock, the answer came. It is never ahead of the servers: an
// answer takes time to travel.
type clock struct {
	last atomic.Pointer[reading] // nil while the time is unknown
}

// reading is a server's time, and when it came.
type reading struct {
	ms int64 // since 1970
	at time.Time
}

// saw records a server's time, which came just now. The last one counts: another server, with another clock, may lead
// from now on.
func (c *clock) saw(ms int64) {
	if ms != 0 {
		c.last.Store(&reading{ms, time.Now()})
	}
}

// clockLasts is how long a time that was learned is trusted. Later the servers' time may differ: their clock was set,
// or another server leads.
const clockLasts = time.Minute

// fresh reports whether the servers' time is known, and was learned lately.
func (c *clock) fresh() bool {
	last := c.last.Load()
	return last != nil && time.Since(last.at) < clockLasts
}

// now returns the servers' time in ms since 1970, 0 if it is not known.
func (c *clock) now() int64 {
	last := c.last.Load()
	if last == nil {
		return 0
	}
	return last.ms + time.Since(last.at).Milliseconds()
}
