package certainty_test

// The rule for certainty, and weaker ones.

// An age is how long ago something happened. An age that proves no more than the credit does is replaced by the
// credit's, so that equivalent states become equal.
type age = int8

// maxGap limits the gap of a rule.
const maxGap = 5

// A client is what the client remembers. Each rule uses only some of it.
type client struct {
	timeout int8 // with which the client counts
	credit  age  // the client is certain for the timeout, less the margin, from here on
	base    age  // when the current connection's handshake was sent
	// What an answered write will prove to have reached the leader, whenever it is sent from now on.
	relay  age
	recent [maxGap + 1]age // when the newest known request was sent: known now, known one unit ago, two units ago, ...
}

func newClient(timeout int8, credit age) client {
	c := client{timeout: timeout, credit: credit, base: credit, relay: credit}
	for i := range c.recent {
		c.recent[i] = credit
	}
	return c
}

// redial forgets what is valid for one connection only.
func (c *client) redial() { *c = newClient(c.timeout, c.credit) }

// prove credits a request: the clock of the leader of the quorum was started no earlier than it was sent.
func (c *client) prove(sent age) { c.credit = min(c.credit, sent) }

// note records a request that has been known for some time.
func (c *client) note(sent, known age) {
	for i := range c.recent[:min(known, maxGap)+1] {
		c.recent[i] = min(c.recent[i], sent)
	}
}

// pass lets one unit of time pass.
func (c *client) pass() {
	c.credit, c.base, c.relay = c.credit+1, c.base+1, c.relay+1
	last := c.recent[0]
	for i := range c.recent {
		last, c.recent[i] = c.recent[i], last+1
	}
}

// trim makes equal what proves nothing new and what a rule with this gap never reads.
func (c *client) trim(gap int) {
	c.base, c.relay = min(c.base, c.credit), min(c.relay, c.credit)
	for i := range c.recent {
		if c.recent[i] = min(c.recent[i], c.credit); i > gap {
			c.recent[i] = c.credit
		}
	}
}

// A rule says what a client concludes from answers. All rules credit the creation of the session, which is a write.
type rule struct {
	gap    int8
	proves func(kind) bool // whether an answer of this kind can raise the credit
	send   func(c *client, m *message)
	answer func(c *client, m message)
}

func relayed(k kind) bool { return k == sync || k == write }
func isWrite(k kind) bool { return k == write }
func anyKind(kind) bool   { return true }

// answeredBeforeRelay is the rule that holds by itself. Let w be a write that was answered OK. It proves that the clock
// of the leader of the quorum was started no earlier than
//
//   - the handshake of the connection was sent, and
//   - any request r of the connection was sent, provided that a sync or write y was sent at least a gap after r was
//     answered, and w was sent after y was answered.
//
// The gap is the longest time between two PINGs of the leader. The follower had touched the session before it answered
// r. The leader handled y at least a gap later, so it had sent a PING in between. The follower received that PING
// before the answer to y, and so sent its report before it forwarded w. Since w was committed, the leader had received
// w, and the report before it. If the quorum has left that leader, it did so after it accepted w, so the next leader
// started its clocks later still.
func answeredBeforeRelay(gap int8) rule {
	return rule{
		gap: gap, proves: isWrite,
		send: func(c *client, m *message) {
			m.sent = 0
			if relayed(m.kind) {
				m.relay = c.recent[gap]
			}
			if m.kind == write {
				m.proof = min(c.base, c.relay)
			}
		},
		answer: func(c *client, m message) {
			if m.kind == handshake {
				c.base = m.sent
			}
			c.note(m.sent, 0)
			c.answerRelay(m)
		},
	}
}

// ours is the rule that the client of package zk follows: answeredBeforeRelay, and beside it a shorter certainty from a
// write w alone. The newest request that was answered a gap before w was sent counts, but no further than a credit that
// ends a quarter of the timeout after w was sent. It lets a client begin to hold a lock with the write that takes it,
// without a y before.
//
// While the client is certain, this adds no risk: it was certain when it sent w, so the leader's clock has the margin
// left at least, and the margin is a quarter of the timeout. It needs the relay before it can go on from there.
//
// A client that was not certain when it sent w, because it held nothing and wrote nothing, needs one more assumption:
// that a PING reaches the follower within a gap of the one before, or not at all. Then the follower has reported r
// before it forwards w. See model.idle.
func ours(gap int8) rule {
	r := answeredBeforeRelay(gap)
	send := r.send
	r.send = func(c *client, m *message) {
		send(c, m)
		if m.kind == write {
			m.proof = min(m.proof, max(c.recent[gap], c.timeout/2)) // the margin is a quarter
		}
	}
	return r
}

// answerRelay concludes from an answer what was attached to it when the request was sent.
func (c *client) answerRelay(m message) {
	if relayed(m.kind) {
		c.relay = min(c.relay, m.relay)
	}
	if m.kind == write {
		c.prove(m.proof)
	}
}

// newestAnswered credits every answered request of some kinds.
func newestAnswered(proves func(kind) bool) rule {
	return rule{
		proves: proves,
		send:   func(_ *client, m *message) { m.sent = 0 },
		answer: func(c *client, m message) {
			if proves(m.kind) {
				c.prove(m.sent)
			}
		},
	}
}

// sentBeforeWrite credits requests that were sent at least a gap before an answered write. They have been answered,
// too: answers come in the order of the requests.
func sentBeforeWrite(gap int8) rule {
	return rule{
		gap: gap, proves: isWrite,
		send: func(c *client, m *message) {
			if m.kind == write {
				m.proof = c.recent[gap]
			}
			c.note(0, 0)
		},
		answer: func(c *client, m message) {
			if m.kind == handshake {
				c.note(m.sent, m.sent)
			}
			if m.kind == write {
				c.prove(m.proof)
			}
		},
	}
}

// sentBeforeRelay is answeredBeforeRelay with the gap measured from when r was sent, not from when it was answered.
func sentBeforeRelay(gap int8) rule {
	return rule{
		gap: gap, proves: isWrite,
		send: func(c *client, m *message) {
			if relayed(m.kind) {
				m.relay = c.recent[gap]
			}
			if m.kind == write {
				m.proof = min(c.base, c.relay)
			}
			c.note(0, 0)
		},
		answer: func(c *client, m message) {
			if m.kind == handshake {
				c.base = m.sent
				c.note(m.sent, m.sent)
			}
			c.answerRelay(m)
		},
	}
}

// answeredBeforeWrite is answeredBeforeRelay with w itself as y.
func answeredBeforeWrite(gap int8) rule {
	return rule{
		gap: gap, proves: isWrite,
		send: func(c *client, m *message) {
			m.sent = 0
			if m.kind == write {
				m.proof = min(c.base, c.recent[gap])
			}
		},
		answer: func(c *client, m message) {
			if m.kind == handshake {
				c.base = m.sent
			}
			c.note(m.sent, 0)
			if m.kind == write {
				c.prove(m.proof)
			}
		},
	}
}
