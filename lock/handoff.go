package lock

// The bounds of passing a lock on in memory.

import (
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
)

// Handoff limits how long goroutines of one process may pass a lock to each other in memory while contenders of other
// processes wait: at most Count times, and for at most Time, whichever comes first. Then the process goes to the end
// of the line. While no other process waits there is no limit. If the process cannot find out whether one waits, or the
// servers do not answer within Time, it assumes so.
type Handoff struct {
	Count int           // 64 if zero
	Time  time.Duration // 50ms if zero
}

// StrictFIFO turns the hand-off in memory off: each acquisition has a node of its own in the line, in the server's
// order.
var StrictFIFO = Handoff{Count: -1} //nolint:gochecknoglobals // a constant that Go cannot write as one

func (h Handoff) withDefaults() (Handoff, error) {
	if h == StrictFIFO {
		return h, nil
	}
	if h.Count < 0 || h.Time < 0 {
		return h, attempt.Bad("lock: Handoff must not be negative: %d, %v; use StrictFIFO for none", h.Count, h.Time)
	}
	if h.Count == 0 {
		h.Count = 64
	}
	if h.Time == 0 {
		h.Time = 50 * time.Millisecond
	}
	return h, nil
}

// bound is how far an ownership has used up its limits for passing the lock on locally. It counts from the last moment
// at which the line is known to have had no other contender: one that came later has not waited longer than that.
//
// Where the line is watched, that is when the server has last answered, because events come before the answers to what
// is asked later. A connection that is silent tells of no contender.
type bound struct {
	turn      int       // the turn that was next then
	at        time.Time // when that was
	asked     time.Time // when the last check began
	checks    int       // that are under way
	contended bool      // another contender stands in it
	watched   bool      // the line is watched: we hear of every contender that comes
	silent    bool      // the ownership is retained, and not used before the server has answered
}

// reached reports whether the bound is reached at the given turn.
func (b *bound) reached(h Handoff, turn int, now time.Time) bool {
	counts := !b.watched || b.contended
	return now.Sub(b.at) >= h.Time || counts && turn-b.turn >= h.Count
}

// near reports whether it is time to check the line, so that the answer is there before the bound is. A line that is
// watched may be far away: its checks do not wait for each other.
func (b *bound) near(h Handoff, turn int, now time.Time) bool {
	switch {
	case b.contended:
		return false
	case b.watched:
		return now.Sub(b.asked) >= h.Time/2
	default:
		return b.checks == 0 && (turn-b.turn >= h.Count/2 || now.Sub(b.at) >= h.Time/2)
	}
}

// keeps reports whether an ownership may be kept while no goroutine here wants the lock: it may if no other contender
// is known to stand in the line. Once it has been kept before, a goroutine watches the line; until the watch is set,
// the last check of the line counts for Handoff.Time only.
func (b *bound) keeps(h Handoff, before bool, now time.Time) bool {
	return !b.contended && (!before || b.watched || now.Sub(b.at) < h.Time)
}

// bounded reports whether the bound of the hand-off is reached. Shortly before that it starts to check the line.
func (g *group) bounded(now time.Time) bool {
	turn, limits := g.ownership.Turn(), g.queue.base.cfg.Handoff
	if g.bound.near(limits, turn, now) {
		g.check(turn, now)
	}
	return g.bound.reached(limits, turn, now)
}

// check starts to check the line. The caller holds the queue's mu.
func (g *group) check(turn int, now time.Time) {
	g.bound.checks++
	g.bound.asked = now
	go g.checkLine(turn, now)
}

// checkLine finds out whether other contenders stand in the line. Its answer counts from when the request was sent, or
// from now on if the line is watched.
func (g *group) checkLine(turn int, at time.Time) {
	others, err := g.ownership.Own().Others(g.ownership.Context(), g.queue.others)
	g.queue.mu.Lock()
	defer g.queue.mu.Unlock()
	if g.over {
		return
	}
	g.bound.checks--
	g.bound.silent = false
	switch {
	case err != nil || others: // a process that cannot find out lets others have their turn
		g.bound.contended = true
	case g.bound.contended:
	default:
		if g.bound.watched {
			at = time.Now()
		}
		g.bound.turn, g.bound.at = turn, at
		if !g.queue.shares {
			g.watchOnce() // hear of other contenders instead of asking again and again
		}
	}
	switch {
	case g.holds > 0:
	case len(g.waiting) > 0:
		g.next()
	case g.bound.contended:
		g.release()
	}
}
