package zktest

import (
	"maps"
	"slices"
	"time"
)

// Control makes f decide about every request from now on, and starts the counts of Request anew; nil lets all pass.
// Calls of f do not overlap, whatever the number of connections, so that f needs no lock for what only f uses. The previous function is
// not running any more when Control returns.
//
// While f decides, everybody waits: it must not wait itself, not for the server either, and not call Control. It may call what else
// makes faults on a Link, as in l.HalfOpen(r.Session).
func (l *Link) Control(f func(Request) Fault) {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	l.control, l.seq = f, 0
	clear(l.nth)
}

// Drop ends connections, once: the clients may connect again at once.
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

// HalfOpen makes connections dead while both sides believe in them: writes succeed and vanish, nothing arrives, not even the end of
// the connection, until Heal.
func (l *Link) HalfOpen(sessions ...int64) {
	l.change(sessions, func(r *rule) { r.dark = true })
}

// Mute makes the server's answers and events vanish until Heal, while the clients' requests go on to arrive and to be applied.
func (l *Link) Mute(sessions ...int64) {
	l.change(sessions, func(r *rule) { r.mute = true })
}

// Freeze holds up everything, in both directions, until Heal delivers it all in order: what a network does that is away for a moment.
// With Server.StopClock it is what a server does whose process is stopped.
func (l *Link) Freeze(sessions ...int64) {
	l.change(sessions, func(r *rule) { r.frozen = true })
}

// Delay makes every message arrive d later, in either direction: a round trip takes 2 × d more. A d of 0 ends it.
func (l *Link) Delay(d time.Duration, sessions ...int64) {
	l.change(sessions, func(r *rule) { r.delay = d })
}

// Heal undoes Cut, HalfOpen, Mute, Freeze and Delay, whichever sessions they were for. A connection on which something vanished meanwhile
// ends; the others go on. With sessions it undoes only what was said about these sessions.
func (l *Link) Heal(sessions ...int64) {
	pairs := l.change(sessions, func(r *rule) { *r = rule{hold: r.hold} })
	for _, p := range pairs {
		if p.isBeyondRepair() {
			p.close()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range pairs {
		p.thawLocked()
	}
}

// isBeyondRepair says whether something has vanished on a connection that is whole otherwise.
func (p *pair) isBeyondRepair() bool {
	p.link.mu.Lock()
	defer p.link.mu.Unlock()
	r := p.link.ruleLocked(p)
	return !r.dark && !r.mute && (p.lost || p.muted)
}

// HoldWatches holds back the watch events that the server sends from now on, while its replies pass. That breaks, on purpose, the
// order that ZooKeeper promises: an event before every reply that shows the change. The events of a connection that ends are lost.
func (l *Link) HoldWatches(sessions ...int64) {
	l.change(sessions, func(r *rule) { r.hold = true })
}

// ReleaseWatches delivers the events that were held back, in the order in which the server sent them, and holds back no more.
func (l *Link) ReleaseWatches(sessions ...int64) {
	pairs := l.change(sessions, func(r *rule) { r.hold = false })
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range pairs {
		p.releaseLocked()
	}
}

// Overtake has the next watch event of the node at path wait until the connection's next event has gone by. Each
// connection of the sessions does so once. ZooKeeper promises no order among the events of one transaction: the nodes
// of a session that ends, or those that a multi changes. The event that waits still comes before any reply that the
// server sends after it, and ends with its connection.
func (l *Link) Overtake(path string, sessions ...int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.matchingLocked(sessions) {
		p.waits = path
	}
}

// Traffic counts what has come to a Link.
type Traffic struct {
	Connections int        // of clients
	Requests    map[Op]int // of clients, also those that a fault kept from the server
	Replies     int        // of the server, also those that a fault kept from the client
	Events      int        // watch events of the server, likewise
}

// Traffic returns the counts since the start.
func (l *Link) Traffic() Traffic {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.traffic
	t.Requests = maps.Clone(t.Requests)
	return t
}

// Connected returns the sessions that have a connection now, in the order of their ids.
func (l *Link) Connected() []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ids []int64
	for p := range l.pairs {
		if p.session != 0 && p.greeted {
			ids = append(ids, p.session)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// ExpireSession ends a session that was seen on this link, past its client: another connection takes the session over and closes it.
// To the client that looks as if the session had expired. False if the session was not seen, has ended already or no server answers.
func (l *Link) ExpireSession(id int64) bool {
	l.mu.Lock()
	password, known := l.sessions[id]
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
