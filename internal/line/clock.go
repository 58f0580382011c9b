package line

import "time"

// A clock is a timer that serves many in turn, and is set again only after it has run out: setting one wakes the runtime's poller, which is a
// good part of what a lock costs that is taken and given back at once. Its owner's mutex guards it.
type clock struct {
	timer *time.Timer // nil until it is first needed
	runs  bool
}

// start has f called in a while. The clock must not run; f says that it does not any more.
func (c *clock) start(d time.Duration, f func()) {
	if c.timer == nil {
		c.timer = time.AfterFunc(d, f)
	} else {
		c.timer.Reset(d)
	}
	c.runs = true
}

func (c *clock) stop() {
	c.timer.Stop()
	c.runs = false
}
