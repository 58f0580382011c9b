package zk

// Until when the ensemble cannot have ended a session.

import "time"

// certainty computes until when the ensemble cannot have ended a session. It does not count from every reply: a
// follower that is cut off from its leader goes on answering pings, and a leader that was replaced without noticing
// answers pings, reads and syncs, both for seconds after the session has expired elsewhere. It counts from
// certificates. The rule for a session timeout T, which test/certainty argues for and checks in every
// interleaving of a model:
//
//   - T is the timeout of the session's creation. A session that is granted less at a later handshake ends: see
//     connectSession.
//   - A certificate is a write of this session that was answered with OK. Only a quorum can have accepted it.
//   - The leader asks every follower each half tick, at most T/4, which sessions it has heard from. So the leader knows
//     of a request r that was answered 5T/16 before a sync or write y was sent on the same connection: y went to the
//     leader and back, behind the leader's question. The follower's report precedes any write sent after the reply to
//     y.
//   - A certificate makes the session certain until T, less the margin, after the newest such r was sent. The handshake
//     of the connection always counts as r, because the server asks the leader about it at once.
//   - A certificate without a y before it counts from the newest request that was answered 5T/16 before the certificate
//     was sent, but at most until T/4 after that time. This suffices to begin an ownership after a time without writes,
//     not to keep it.
type certainty struct {
	until time.Time // zero before the first certificate

	// State of the connection.
	timeout time.Duration // of the session
	opened  time.Time     // when the handshake was sent
	newest  time.Time     // when the newest certificate was sent; opened if there is none
	answers ring          // of requests
	trips   ring          // of syncs and writes y, each with the sending time of the newest r before it
}

// gap returns how long before a trip to the leader a request must have been answered so that the leader knows of it.
// The leader's question may be late by the difference to half a tick. By default servers grant no timeout below two
// ticks.
func (c *certainty) gap() time.Duration { return 5 * c.timeout / 16 }

// grain returns the least time between two exchanges, or two certificates, that are recorded. It bounds memory and
// work.
func (c *certainty) grain() time.Duration { return c.timeout / 64 }

// connected begins a connection whose handshake was sent at the given time. A fresh session was created by a write.
func (c *certainty) connected(opened time.Time, timeout, margin time.Duration, fresh bool) {
	if fresh {
		c.until = opened.Add(timeout - margin)
	}
	*c = certainty{until: c.until, timeout: timeout, opened: opened, newest: opened}
}

// answered records a request that was answered.
func (c *certainty) answered(sent, now time.Time) { c.answers.add(exchange{sent, now}, c.grain()) }

// travelled records a sync or a write that was answered with OK.
func (c *certainty) travelled(sent, now time.Time) {
	c.trips.add(exchange{c.answers.before(sent.Add(-c.gap())), now}, c.grain())
}

// certified records a certificate.
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

// An exchange is a request and its reply.
type exchange struct{ sent, answered time.Time }

// A ring records the newest exchanges.
type ring struct {
	kept [32]exchange
	next int // the index of the next one
}

// at returns the i-th newest exchange.
func (r *ring) at(i int) exchange { return r.kept[(r.next+2*len(r.kept)-1-i)%len(r.kept)] }

// add records an exchange if its request is at least a grain newer than that of the last.
func (r *ring) add(e exchange, grain time.Duration) {
	if last := r.at(0); last.answered.IsZero() || e.sent.Sub(last.sent) >= grain {
		r.kept[r.next] = e
		r.next = (r.next + 1) % len(r.kept)
	}
}

// before returns when the newest request that was answered by the given time was sent, or the zero time.
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
