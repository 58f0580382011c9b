package lock

import (
	"context"
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
)

// A readers is goroutines of this process that read together, behind one contender in the line. The RWMutex's mu guards
// all of it.
type readers struct {
	lock      *RWMutex
	ctx       context.Context //nolint:containedctx // of the wait for the contender's turn
	giveUp    context.CancelFunc
	waiting   []*waiter
	behind    bool            // other contenders have been found ahead
	ownership *line.Ownership // nil until the contender is first
	holds     int             // that are not unlocked
	bound     bound
	rest      *readers // where those wait for whom the ownership has no tokens left
}

func (m *RWMutex) newGroup() *readers {
	g := &readers{lock: m}
	g.ctx, g.giveUp = context.WithCancel(context.Background())
	return g
}

// group returns the group in which w waits, if it waits: it joined g.
func (w *waiter) group(g *readers) *readers {
	for g.rest != nil {
		g = g.rest
	}
	return g
}

// open reports whether another reader may join.
func (g *readers) open(now time.Time) bool {
	o := g.ownership
	if o == nil {
		return g.ctx.Err() == nil
	}
	if o.Stopped() != nil || o.Exhausted() {
		return false
	}
	turn, limits := o.Turn(), g.lock.cfg.Handoff
	if g.bound.near(limits, turn, now) {
		g.bound.looking = true
		go g.look(turn, now)
	}
	return !g.bound.reached(limits, turn, now)
}

// look finds out whether other contenders wait to write. What it finds is as of when it was sent.
func (g *readers) look(turn int, sent time.Time) {
	writers, err := g.ownership.Own().Others(g.ownership.Context(), isWriter)
	m := g.lock
	m.mu.Lock()
	defer m.mu.Unlock()
	g.bound.looking = false
	if err != nil || writers { // a process that cannot know lets others have their turn
		g.bound.crowded = true
	} else {
		g.bound.turn, g.bound.at = turn, sent
	}
}

// close lets no other reader join.
func (g *readers) close() {
	if g.lock.group == g {
		g.lock.group = nil
	}
}

// stand waits until the contender is first, for all who wait here.
func (g *readers) stand(t *ticket) {
	m := g.lock
	o, err := m.own(g.ctx, m.stand(g.ctx, &m.read, t, g.queued))
	t.drop(&m.mu)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		g.close()
		for _, w := range g.waiting {
			w.answer <- answer{err: err}
		}
		g.waiting = nil
		g.giveUp()
		return
	}
	g.begin(o)
	if len(g.waiting) == 0 { // all have left meanwhile
		g.close()
		o.Release(ErrUnlocked)
		return
	}
	for len(g.waiting) > 0 && !o.Exhausted() {
		g.waiting[0].answer <- answer{hold: g.serve()}
		g.waiting = g.waiting[1:]
	}
	if len(g.waiting) > 0 {
		g.rest = m.newGroup()
		g.rest.waiting, g.waiting = g.waiting, nil
		if m.group == g {
			m.group = g.rest
		}
		go g.rest.stand(m.tickets.draw())
	}
}

// queued tells all who wait here that other contenders are ahead.
func (g *readers) queued() {
	g.lock.mu.Lock()
	defer g.lock.mu.Unlock()
	g.behind = true
	for _, w := range g.waiting {
		w.behind()
	}
}

// begin begins to serve from an ownership.
func (g *readers) begin(o *line.Ownership) {
	g.ownership = o
	g.bound = bound{at: time.Now()}
	g.giveUp() // nothing is waited for any more
}

// serve gives the lock to one more reader.
func (g *readers) serve() *Hold {
	g.holds++
	return newRWHold(g.ownership, g)
}

// take takes the lock back from a hold. The last takes the node along.
func (g *readers) take(o *line.Ownership) *line.Removal {
	m := g.lock
	m.mu.Lock()
	defer m.mu.Unlock()
	if g.holds--; g.holds > 0 {
		return nil
	}
	g.close()
	return o.Release(ErrUnlocked)
}
