package server

import (
	"github.com/seed-a3166700/turnstile/internal/tree"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// Whose turn it is. There is one owner for all, so whatever it does for one client, the others wait for. Two rules
// keep that short.
//
// A connection has at most readBatch requests in the owner's queue: its reader gives the next ones when the owner has
// come to the last of these. So one that sends without a pause gets its share of each round, and no more.
//
// A large request is put aside, and with it what its connection sends later. The owner serves one large request, or a
// few, and then looks what else has come. Nobody whose own requests are small waits for more than one large one at a
// time. How large a request is must be known before it is served, or whoever connects anew for each of them would
// never have had one.

const (
	largeSize  = 64 << 10 // of a request, or of its reply, in bytes
	largeShare = 1 << 20  // bytes of them that are served in one round, and that one commit has
)

// isLarge reports whether much is to be done for a request.
func (o *owner) isLarge(it *item) bool {
	if it.size > largeSize {
		return true
	}
	read := it.kind == itemRequest && it.code == wire.OK && tree.IsRead(it.op)
	return read && o.tree.Exceeds(&it.conn.caller, it.op, it.req, largeSize)
}

// mustPark puts a request aside if it has to wait: for those of its connection that wait already, for the client to
// read its earlier replies, as one that asks and never reads would fill the memory, or for the turn of the large
// ones.
func (o *owner) mustPark(it *item) bool {
	c := it.conn
	if len(c.parked) == 0 && !o.mustWait(it) {
		return false
	}
	c.parked = append(c.parked, *it)
	return true
}

// mustWait reports whether the first request of those that wait has to go on waiting, and sees to it that its
// connection is resumed.
func (o *owner) mustWait(it *item) bool {
	c := it.conn
	if c.backlog.Load() > softBacklog && c.park() {
		return true
	}
	if !o.isLarge(it) {
		return false
	}
	o.large = append(o.large, c)
	token(o.queue.wake)
	return true
}

// resume serves the requests that were put aside, as far as the client has made room. The first may be large if it is
// its turn.
func (o *owner) resume(c *conn, turn bool) {
	for i := range c.parked {
		it := &c.parked[i]
		if turn && (c.backlog.Load() <= softBacklog || !c.park()) {
			turn = false
		} else if turn || o.mustWait(it) {
			clear(c.parked[:i])
			c.parked = c.parked[i:]
			return
		}
		o.request(it)
	}
	c.parked = nil
}

// serveLarge serves some of the large requests.
func (o *owner) serveLarge() {
	for start := o.cost; o.mayServeLarge() && o.cost-start < largeShare; {
		c := o.large[0]
		o.large[0] = nil
		o.large = o.large[1:]
		o.resume(c, true)
	}
	o.flush()
}

// mayServeLarge reports whether there is a large request that need not wait for a commit: the small ones wait for the
// same.
func (o *owner) mayServeLarge() bool {
	return len(o.large) > 0 && (o.open == nil || o.open.cost < largeShare)
}

// spent counts the bytes of a request or of a reply.
func (o *owner) spent(n int) {
	o.cost += n
	if o.open != nil {
		o.open.cost += n
	}
	o.took(n)
}
