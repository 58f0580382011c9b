package lock

// Keeping a lock after the last unlock.

import "time"

// A retention says how long an ownership has been kept while no goroutine here wants the lock.
type retention struct {
	timer *time.Timer // nil until the ownership is first kept
	since time.Time   // when it was last unlocked
	idle  bool        // it is kept: no goroutine has held it since
}

func (r *retention) stop() {
	if r.timer != nil {
		r.timer.Stop()
	}
}

// retain keeps the ownership for a while, if Config.Retain says so and no other contender stands in the line. The
// caller holds the queue's mu, and no goroutine waits.
func (g *group) retain() bool {
	keep := g.queue.base.cfg.Retain
	o, now := g.ownership, time.Now()
	kept := g.retained.timer != nil
	if keep == 0 || o.Turn() == 0 || o.Spent() || !g.bound.keeps(g.queue.base.cfg.Handoff, kept, now) {
		return false
	}
	g.retained.idle, g.retained.since, g.bound.silent = true, now, g.bound.watched && g.unheard(now)
	if !kept {
		g.retained.timer = time.AfterFunc(keep, func() { g.expire() })
		g.watchOnce()
	}
	return true
}

// unheard reports whether a retained lock, which was used until now, may not be used again before the server has
// answered. The time for which it was not used does not count: its next use is checked. The caller holds the queue's
// mu.
func (g *group) unheard(now time.Time) bool {
	limit := g.queue.base.cfg.Handoff.Time
	if g.bound.checks > 0 || now.Sub(g.bound.at) < limit {
		return g.bounded(now)
	}
	g.bound.at, g.bound.asked = now, now
	time.AfterFunc(limit/2, func() {
		g.queue.mu.Lock()
		defer g.queue.mu.Unlock()
		if !g.over {
			g.check(g.ownership.Turn(), time.Now())
		}
	})
	return false
}

// expire ends an ownership that was retained for as long as Config.Retain says.
func (g *group) expire() {
	g.queue.mu.Lock()
	defer g.queue.mu.Unlock()
	if g.over {
		return
	}
	left := g.queue.base.cfg.Retain
	if g.holds == 0 && len(g.waiting) == 0 {
		left -= time.Since(g.retained.since)
	}
	if left > 0 {
		g.retained.timer.Reset(left)
		return
	}
	g.release()
}

// watchOnce starts watchLine, once in an ownership. The caller holds the queue's mu.
func (g *group) watchOnce() {
	if !g.watching {
		g.watching = true
		go g.watchLine()
	}
}

// watchLine watches the line of an ownership that is retained or passed on, and gives it up when another contender
// comes: at once if it is not held, with the unlock or at the hand-off's bound otherwise.
func (g *group) watchLine() {
	o := g.ownership
	err := o.Own().WatchLine(o.Context(), func(others bool) (goOn bool) {
		g.queue.mu.Lock()
		defer g.queue.mu.Unlock()
		if g.over {
			return false
		}
		if !others {
			g.bound.watched, g.bound.asked = true, time.Now()
			g.bound.turn, g.bound.at = g.ownership.Turn(), g.bound.asked
			return true
		}
		g.othersCame()
		return false
	})
	if err == nil || o.Err() != nil {
		return
	}
	g.queue.mu.Lock()
	defer g.queue.mu.Unlock()
	if !g.over { // the line cannot be watched, so the lock cannot be kept
		g.othersCame()
	}
}

// othersCame notes that another contender stands in the line, and gives the lock up if it is not held. The caller holds
// the queue's mu.
func (g *group) othersCame() {
	if !g.bound.contended {
		// It was not there before: the bound counts from now.
		g.bound.turn, g.bound.at, g.bound.contended = g.ownership.Turn(), time.Now(), true
	}
	if g.holds == 0 && len(g.waiting) == 0 {
		g.release()
	}
}
