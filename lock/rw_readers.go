package lock

import (
	"context"
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
)

// readers is goroutines of this process that read together, behind one node in the line. The RWMutex's mu guards all
// of it.
type readers struct {
	lock    *RWMutex
	ctx     context.Context //nolint:containedctx // of the wait for the node's turn
	giveUp  context.CancelFunc
	waiting []*waiter
	behind  bool    // somebody has been found ahead
	tenure  *tenure // nil until the node's turn has come
	holds   int     // that are not unlocked
	bound   bound
	rest    *readers // whom those were given to whom the node has no turns for
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
	t := g.tenure
	if t == nil {
		return g.ctx.Err() == nil
	}
	if t.stopped() != nil || t.exhausted() {
		return false
	}
	limits := g.lock.cfg.Handoff
	if g.bound.near(limits, t.turn, now) {
		g.bound.looking = true
		go g.look(t.turn, now)
	}
	return !g.bound.reached(limits, t.turn, now)
}

// look finds out whether anybody waits to write. What it finds is as of when it was sent.
func (g *readers) look(turn int, sent time.Time) {
	writers, err := g.tenure.place.Any(g.tenure.ctx, isWriter)
	m := g.lock
	m.mu.Lock()
	defer m.mu.Unlock()
	g.bound.looking = false
	if err != nil || writers { // who cannot know lets others have their turn
		g.bound.crowded = true
	} else {
		g.bound.turn, g.bound.at = turn, sent
	}
}

// close lets nobody join any more.
func (g *readers) close() {
	if g.lock.group == g {
		g.lock.group = nil
	}
}

// stand waits for the node's turn, for all who wait here.
func (g *readers) stand(t *ticket) {
	m := g.lock
	began, err := m.cfg.tenure(m.place(g.ctx, &m.read, t, g.queued))
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		g.close()
		err = m.failed(err)
		for _, w := range g.waiting {
			w.answer <- answer{err: err}
		}
		g.waiting = nil
		g.giveUp()
		return
	}
	g.begin(began)
	if len(g.waiting) == 0 { // all have left meanwhile
		g.close()
		began.leave()
		return
	}
	for len(g.waiting) > 0 && !began.exhausted() {
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

// queued tells everybody who waits here that somebody is ahead.
func (g *readers) queued() {
	g.lock.mu.Lock()
	defer g.lock.mu.Unlock()
	g.behind = true
	for _, w := range g.waiting {
		w.behind()
	}
}

// begin starts the group's tenure.
func (g *readers) begin(t *tenure) {
	g.tenure = t
	g.bound = bound{at: time.Now()}
	g.giveUp() // nothing is waited for any more
}

// serve gives the lock to one more reader.
func (g *readers) serve() *Hold {
	g.holds++
	h := g.tenure.hold(g.release)
	h.kind = &kind{lock: g.lock, place: g.tenure.place, group: g, busy: make(chan struct{}, 1)}
	return h
}

// release takes the lock back from a hold. The last takes the node along.
func (g *readers) release(t *tenure) *line.Removal {
	m := g.lock
	m.mu.Lock()
	defer m.mu.Unlock()
	if g.holds--; g.holds > 0 {
		return nil
	}
	g.close()
	return t.leave()
}
