package lock

import (
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
)

// A retention is what is known of an ownership that is kept although no goroutine here wants the lock.
type retention struct {
	timer *time.Timer // nil until the ownership is first kept
	since time.Time   // when it was last unlocked
}

func (r *retention) stop() {
	if r.timer != nil {
		r.timer.Stop()
	}
}

// retain keeps the ownership for a while, if Config.Retain says so and no other contender stands in the line. The
// caller holds q.mu, and no goroutine waits.
func (q *localQueue) retain() bool {
	keep := q.mutex.cfg.Retain
	o, now := q.ownership, time.Now()
	kept := q.retained.timer != nil
	if keep == 0 || o.Turn() == 0 || o.Exhausted() || !q.bound.keeps(q.mutex.cfg.Handoff, kept, now) {
		return false
	}
	q.retained.since = now
	if !kept {
		q.retained.timer = time.AfterFunc(keep, func() { q.expire(o) })
		q.watchOnce()
	}
	return true
}

// serveRetained gives the lock out if it is retained, nil otherwise. The caller holds q.mu.
func (q *localQueue) serveRetained() *Hold {
	if q.ownership == nil || q.held || len(q.waiting) > 0 || q.ownership.Stopped() != nil {
		return nil
	}
	q.held = true
	return newHold(q.ownership, q)
}

// expire ends an ownership that was retained for as long as Config.Retain says.
func (q *localQueue) expire(o *line.Ownership) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ownership != o {
		return
	}
	left := q.mutex.cfg.Retain
	if !q.held && len(q.waiting) == 0 {
		left -= time.Since(q.retained.since)
	}
	if left > 0 {
		q.retained.timer.Reset(left)
		return
	}
	q.release()
}

// watchOnce starts watchLine, once in an ownership. The caller holds q.mu.
func (q *localQueue) watchOnce() {
	if !q.watching {
		q.watching = true
		go q.watchLine(q.ownership)
	}
}

// watchLine watches the line of an ownership that is retained or passed on, and gives it up when another contender
// comes: at once if it is not held, with the unlock or at the hand-off's bound otherwise.
func (q *localQueue) watchLine(o *line.Ownership) {
	err := o.Own().WatchLine(o.Context(), func(others bool) (goOn bool) {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.ownership != o {
			return false
		}
		if !others {
			q.bound.watched = true
			return true
		}
		q.othersCame()
		return false
	})
	if err == nil || o.Err() != nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ownership == o { // the line cannot be watched, so the lock cannot be kept
		q.othersCame()
	}
}

// othersCame notes that another contender stands in the line. The caller holds q.mu.
func (q *localQueue) othersCame() {
	if !q.bound.crowded {
		// It was not there before: the bound counts from now.
		q.bound = bound{turn: q.ownership.Turn(), at: time.Now(), crowded: true}
	}
	if !q.held && len(q.waiting) == 0 {
		q.release()
	}
}
