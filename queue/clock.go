package queue

// The servers' time.

import (
	"sync"
	"time"
)

// clock tells the servers' time, as far as it is known: from the times that servers put into the Stat of what was
// written, and from how long ago, by our own monotonic clock, the answer came. It is never ahead of the servers: an
// answer takes time to travel.
type clock struct {
	mu   sync.Mutex // guards what follows
	base int64      // ms since 1970 by the server; 0 while unknown
	at   time.Time
}

// saw records a server's time, which came just now. The last one counts: another server, with another clock, may lead
// from now on.
func (c *clock) saw(ms int64) {
	if ms == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.base, c.at = ms, time.Now()
}

// clockLasts is how long a time that was learned is trusted. Later the servers' time may differ: their clock was set,
// or another server leads.
const clockLasts = time.Minute

// fresh reports whether the servers' time is known, and was learned lately.
func (c *clock) fresh() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.base != 0 && time.Since(c.at) < clockLasts
}

// now returns the servers' time in ms since 1970, 0 if it is not known.
func (c *clock) now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.base == 0 {
		return 0
	}
	return c.base + time.Since(c.at).Milliseconds()
}
