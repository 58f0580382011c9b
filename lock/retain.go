package lock

import (
	"time"
)

// retention is a tenure that is kept although nobody here wants the lock, for when somebody does again.
type retention struct {
	timer *time.Timer // nil until the tenure is first kept
	since time.Time   // when it was last unlocked
}

func (r *retention) stop() {
	if r.timer != nil {
		r.timer.Stop()
	}
}

// retain keeps the tenure for a while, if that is wanted and nobody else stands in the line. The caller holds c.mu,
// and nobody waits here.
func (c *cohort) retain() bool {
	keep := c.mutex.cfg.Retain
	t := c.tenure
	now := time.Now()
	kept := c.retained.timer != nil
	if keep == 0 || t.turn == 0 || t.exhausted() || !c.bound.keeps(c.mutex.cfg.Handoff, kept, now) {
		return false
	}
	c.retained.since = now
	if !kept {
		c.retained.timer = time.AfterFunc(keep, func() { c.expire(t) })
		c.attendOnce(t)
	}
	return true
}

// fromRetained gives the lock out if it is kept, nil otherwise. The caller holds c.mu.
func (c *cohort) fromRetained() *Hold {
	if c.tenure == nil || c.held || len(c.queue) > 0 || c.tenure.stopped() != nil {
		return nil
	}
	c.held = true
	return c.tenure.hold(c.unlock)
}

// expire ends a tenure that was kept for as long as was wanted.
func (c *cohort) expire(t *tenure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tenure != t {
		return
	}
	left := c.mutex.cfg.Retain
	if !c.held && len(c.queue) == 0 {
		left -= time.Since(c.retained.since)
	}
	if left > 0 {
		c.retained.timer.Reset(left)
		return
	}
	c.drop()
}

// attendOnce starts attend, once in a tenure. The caller holds c.mu.
func (c *cohort) attendOnce(t *tenure) {
	if !t.attended {
		t.attended = true
		go c.attend(t)
	}
}

// attend watches the line of a tenure that is kept or passed on, and gives it up when somebody else comes: at once if
// nobody holds the lock, with the unlock or at the hand-off's bound otherwise.
func (c *cohort) attend(t *tenure) {
	err := t.place.WatchLine(t.ctx, func(others bool) (goOn bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.tenure != t {
			return false
		}
		if !others {
			c.bound.watched = true
			return true
		}
		c.crowd()
		return false
	})
	if err == nil || t.err() != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tenure == t { // the line cannot be watched, so it cannot be kept
		c.crowd()
	}
}

// crowd notes that somebody else stands in the line. The caller holds c.mu.
func (c *cohort) crowd() {
	if !c.bound.crowded {
		// Who came was not there before: the bound counts from now.
		c.bound = bound{turn: c.tenure.turn, at: time.Now(), crowded: true}
	}
	if !c.held && len(c.queue) == 0 {
		c.drop()
	}
}
