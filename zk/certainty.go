package zk

import "time"

// certainty is what a session knows about how long the ensemble cannot have ended it. It does not count from every answer: a follower that
// is cut off from its leader goes on answering pings, and a leader that was replaced without noticing answers pings, reads and syncs,
// both for seconds after the session has expired elsewhere. It counts from certificates. The rule, in full in docs/partitions.md:
//
//   - A certificate is a write of this session that was answered with OK. Only a quorum can have accepted it.
//   - Its credit is the sending time of the newest request, of any kind and on the same connection, that was answered at least a quarter of
//     the session timeout T before the certificate was sent. The leader asks every follower each half tick, at most T/4, which sessions it
//     has heard from, and learns of that request before the certificate reaches it on the same link. A connection's first request, the
//     handshake, is put to the leader at once, so its sending time always counts.
//   - The session is certain until the credit plus T, less the margin.
//   - A certificate that was sent more than T/4 after the last one was answered makes the session certain until T/4 after its sending and no
//     longer, unless the handshake's credit goes further: if the leader's messages to the follower are held up, the
//     reports may be older than the credit says, and such a certificate cannot tell.
type certainty struct {
	until time.Time // zero as long as there was no certificate

	// Of the connection.
	timeout time.Duration // negotiated
	opened  time.Time     // when the handshake was sent
	sent    time.Time     // when the newest certificate was sent; opened if there is none
	seen    time.Time     // when its answer came
	answers [32]exchange  // a ring of requests that were answered, with some time between them
	next    int           // where the next one goes
}

// An exchange is a request and its answer.
type exchange struct{ sent, answered time.Time }

// gap is how long before a certificate a request must have been answered to be its credit: at least as long as a leader takes from one look at
// its followers to the next, which is half a tick. Servers grant no timeout below two ticks by default.
func (c *certainty) gap() time.Duration { return c.timeout / 4 }

// grain is the time between two exchanges, or two certificates, that are worth remembering. It bounds what is kept and what is computed.
func (c *certainty) grain() time.Duration { return c.timeout / 64 }

// connected begins a connection whose handshake was sent and answered at the given times. A new session was made by a write.
func (c *certainty) connected(opened, now time.Time, timeout, margin time.Duration, fresh bool) {
	limit := opened.Add(timeout - margin)
	if fresh || timeout < c.timeout && limit.Before(c.until) { // the leader counts by the new timeout since the handshake
		c.until = limit
	}
	c.timeout, c.opened, c.sent, c.seen = timeout, opened, opened, now
	clear(c.answers[:])
	c.next = 0
}

// answered books a request that was answered.
func (c *certainty) answered(sent, now time.Time) {
	last := c.answers[(c.next+len(c.answers)-1)%len(c.answers)]
	if sent.Sub(last.sent) >= c.grain() || last.sent.IsZero() {
		c.answers[c.next] = exchange{sent, now}
		c.next = (c.next + 1) % len(c.answers)
	}
}

// certified books a certificate.
func (c *certainty) certified(sent, now time.Time, margin time.Duration) {
	if sent.Sub(c.sent) < c.grain() && c.sent != c.opened {
		return
	}
	until := c.credit(sent).Add(c.timeout - margin)
	if sent.Sub(c.seen) > c.gap() {
		until = earlier(until, later(sent.Add(c.timeout/4), c.opened.Add(c.timeout-margin)))
	}
	c.until = later(c.until, until)
	c.sent, c.seen = sent, now
}

// credit returns the credit of a certificate.
func (c *certainty) credit(sent time.Time) time.Time {
	limit := sent.Add(-c.gap())
	for i := range c.answers {
		e := c.answers[(c.next+2*len(c.answers)-1-i)%len(c.answers)]
		if e.sent.IsZero() {
			break
		}
		if !e.answered.After(limit) {
			return later(e.sent, c.opened)
		}
	}
	return c.opened
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
