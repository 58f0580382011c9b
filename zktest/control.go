package zktest

import (
	"maps"
	"slices"
	"time"
)

// Control makes f choose the fault of every request from now on, and restarts the counts of Request; a nil f passes all
// requests. Calls of f never overlap, so f needs no lock for its own variables, and the previous function has returned
// when Control returns.
//
// All connections wait while f runs, so f must not block, wait for the server or call Control. It may call the Link's
// other methods that inject faults, as in l.HalfOpen(r.Session).
func (l *Link) Control(f func(Request) Fault) {
	l.controlSlot <- struct{}{}
	defer func() { <-l.controlSlot }()
	l.control, l.seq = f, 0
	clear(l.nth)
}

// Drop ends connections once; clients may reconnect at once.
func (l *Link) Drop(sessions ...int64) {
	for _, p := range l.matching(sessions) {
		p.close()
	}
}

// Cut ends connections and refuses new ones until Heal.
func (l *Link) Cut(sessions ...int64) {
	for _, p := range l.change(sessions, func(r *rule) { r.cut = true }) {
		p.close()
	}
}

// HalfOpen makes writes in both directions succeed and vanish until Heal. Nothing arrives, not even the end of a
// connection, and neither side notices.
func (l *Link) HalfOpen(sessions ...int64) {
	l.change(sessions, func(r *rule) { r.halfOpen = true })
}

// Mute drops the server's replies and events until Heal, while the server still receives and applies the clients'
// requests.
func (l *Link) Mute(sessions ...int64) {
	l.change(sessions, func(r *rule) { r.mute = true })
}

// Freeze holds everything in both directions until Heal delivers it all in order, like a network that is away for a
// moment. Together with Server.StopClock it looks like a stopped server process.
func (l *Link) Freeze(sessions ...int64) {
	l.change(sessions, func(r *rule) { r.frozen = true })
}

// Delay makes every message arrive d later, in either direction: a round trip takes 2 × d more. A d of 0 ends the
// delay.
func (l *Link) Delay(d time.Duration, sessions ...int64) {
	l.change(sessions, func(r *rule) { r.delay = d })
}

// Heal undoes Cut, HalfOpen, Mute, Freeze and Delay for all sessions. A connection that has lost something ends; the
// others continue. Given sessions, Heal undoes only the faults that were aimed at these sessions.
func (l *Link) Heal(sessions ...int64) {
	conns := l.change(sessions, func(r *rule) { *r = rule{hold: r.hold} })
	for _, p := range conns {
		if p.isBeyondRepair() {
			p.close()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range conns {
		p.thawLocked()
	}
}

// isBeyondRepair reports whether a connection without faults now has lost something earlier.
func (p *proxied) isBeyondRepair() bool {
	p.link.mu.Lock()
	defer p.link.mu.Unlock()
	r := p.link.ruleLocked(p)
	return !r.halfOpen && !r.mute && (p.lost || p.muted)
}

// HoldWatches holds back the server's watch events from now on and lets its replies pass. It breaks ZooKeeper's
// promise, on purpose, that an event comes before every reply that shows the change. A connection that ends loses its
// held events.
func (l *Link) HoldWatches(sessions ...int64) {
	l.change(sessions, func(r *rule) { r.hold = true })
}

// ReleaseWatches ends HoldWatches and delivers the held events in the order in which the server sent them.
func (l *Link) ReleaseWatches(sessions ...int64) {
	conns := l.change(sessions, func(r *rule) { r.hold = false })
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range conns {
		p.releaseLocked()
	}
}

// Overtake makes the next watch event of the node at path swap places with the event behind it, once for each
// connection of the sessions. ZooKeeper promises no order among the events of one transaction, such as the end of a
// session or a multi. The delayed event still comes before any later reply of the server.
func (l *Link) Overtake(path string, sessions ...int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.matchingLocked(sessions) {
		p.overtakePath = path
	}
}

// Traffic counts what a Link has received.
type Traffic struct {
	Connections int        // from clients
	Requests    map[Op]int // from clients, including those that a fault kept from the server
	Replies     int        // from servers, including those that a fault kept from the client
	Events      int        // watch events from servers, likewise
}

// Traffic returns the counts since the start.
func (l *Link) Traffic() Traffic {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.traffic
	t.Requests = maps.Clone(t.Requests)
	return t
}

// Connected returns the ids of the sessions that have a connection now, sorted.
func (l *Link) Connected() []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ids []int64
	for p := range l.conns {
		if p.session != 0 && p.handshakeDone {
			ids = append(ids, p.session)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// ExpireSession ends a session of this link behind its client's back: another connection takes the session over and
// closes it, which looks to the client as if the session had expired. It returns false if the link has not seen the
// session, if the session has already ended, or if no server answers.
func (l *Link) ExpireSession(id int64) bool {
	l.mu.Lock()
	password, known := l.passwords[id]
	l.mu.Unlock()
	if !known {
		return false
	}
	s, err := l.open(id, password)
	if err != nil {
		return false
	}
	return s.close() == nil
}
