package zk

// Until when the ensemble cannot have ended a session.

import "time"

// certainty is what a session knows about how long the ensemble cannot have ended it. It does not count from every answer: a follower that
// is cut off from its leader goes on answering pings, and a leader that was replaced without noticing answers pings, reads and syncs,
// both for seconds after the session has expired elsewhere. It counts from certificates. The rule, for a session timeout T (the argument is
// in docs/partitions.md, and internal/certainty tries the rule in every interleaving of a model):
//
//   - A certificate is a write of this session that was answered with OK. Only a quorum can have accepted it.
//   - The leader asks every follower each half tick, at most T/4, which sessions it has heard from. So it knows of a request r that was
//     answered 5T/16 before a sync or write y was sent on the same connection: y went to the leader and back, and brought the question
//     along. The follower's report is ahead of any write that is sent after y was answered.
//   - A certificate makes the session certain until T, less the margin, after the newest such r was sent. The handshake of the connection
//     always counts as r: the leader is asked about it at once.
//   - A certificate without a y before it counts with the newest request that was answered 5T/16 before itself, but until T/4 after its
//     sending at most: enough to begin with after a time without writes, and not to go on.
type certainty struct {
	until time.Time // zero as long as there was no certificate

	// Of the connection.
	timeout time.Duration // negotiated
	opened  time.Time     // when the handshake was sent
	newest  time.Time     // when the newest certificate was sent; opened if there is none
	answers ring          // of requests
	trips   ring          // of syncs and writes, each with the newest r that was answered before it as its sending time
}

// gap is how long before a trip to the leader a request must have been answered to be known there: a leader's question may be late by as
// much as this is longer than half a tick. Servers grant no timeout below two ticks by default.
func (c *certainty) gap() time.Duration { return 5 * c.timeout / 16 }

// grain is the time between two exchanges, or two certificates, that are worth remembering. It bounds what is kept and what is computed.
func (c *certainty) grain() time.Duration { return c.timeout / 64 }

// connected begins a connection whose handshake was sent at the given time. A new session was made by a write.
func (c *certainty) connected(opened time.Time, timeout, margin time.Duration, fresh bool) {
	limit := opened.Add(timeout - margin)
	if fresh || timeout < c.timeout && limit.Before(c.until) { // the leader counts by the new timeout since the handshake
		c.until = limit
	}
	*c = certainty{until: c.until, timeout: timeout, opened: opened, newest: opened}
}

// answered books a request that was answered.
func (c *certainty) answered(sent, now time.Time) { c.answers.add(exchange{sent, now}, c.grain()) }

// travelled books a sync or a write that was answered with OK.
func (c *certainty) travelled(sent, now time.Time) {
	c.trips.add(exchange{c.answers.before(sent.Add(-c.gap())), now}, c.grain())
}

// certified books a certificate.
func (c *certainty) certified(sent time.Time, margin time.Duration) {
	if sent.Sub(c.newest) < c.grain() && !c.newest.Equal(c.opened) {
		return
	}
	life := c.timeout - margin
	known := later(c.opened, c.trips.before(sent)).Add(life)
	likely := earlier(c.answers.before(sent.Add(-c.gap())).Add(life), sent.Add(c.timeout/4))
	c.until = later(c.until, later(known, likely))
	c.newest = sent
}

// An exchange is a request and its answer.
type exchange struct{ sent, answered time.Time }

// A ring remembers the newest exchanges.
type ring struct {
	kept [32]exchange
	next int // where the next one goes
}

// at returns the i-th exchange, counted from the newest.
func (r *ring) at(i int) exchange { return r.kept[(r.next+2*len(r.kept)-1-i)%len(r.kept)] }

// add remembers an exchange if its request is at least a grain newer than the last one's.
func (r *ring) add(e exchange, grain time.Duration) {
	if last := r.at(0); last.answered.IsZero() || e.sent.Sub(last.sent) >= grain {
		r.kept[r.next] = e
		r.next = (r.next + 1) % len(r.kept)
	}
}

// before returns when the newest request was sent that was answered by the given time, the zero time if none was.
func (r *ring) before(limit time.Time) time.Time {
	for i := range r.kept {
		if e := r.at(i); !e.answered.After(limit) {
			return e.sent // zero if there is no such exchange
		}
	}
	return time.Time{}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
