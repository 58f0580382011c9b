package server

import (
	"time"

	"github.com/seed-a3166700/turnstile/internal/tree"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// Whose turn it is. There is one owner for all, so whatever it does for one client, the others wait for. Two rules
// keep that short.
//
// A connection has at most maxGiven batches of readBatch requests in the owner's queue: its reader gives the next one
// when the owner has come to the end of one. So one that sends without a pause gets its share of each round, and no
// more. There are two, so that the next one is there when the owner has served the first: with one alone, a client that
// has 256 writes in flight was slower by a tenth.
//
// A large request is put aside, and with it what its connection sends later. The owner serves one large request, or a
// few, and then looks what else has come, so a client whose own requests are small waits for one large one at most. How
// large a request is must be known before it is served, or a client that connects anew for each of them would never have
// had one. What takes long is not done by the owner, or not at once:
//
//   - A large reply is encoded by the connection's writer (see bulk).
//   - Watches are set and removed some at a time. Other requests may come between the pieces of one request, which its
//     client cannot tell: each path is looked at for itself, and the reply comes after the last piece. If the client
//     has gone meanwhile its watches are removed, as far as they were set.
//   - Large writes are committed one after the other (see mayServeLarge).

const (
	maxGiven   = 2         // batches of one connection that wait for the owner
	largeSize  = 64 << 10  // of a request, or of its reply, in bytes
	largeShare = 512 << 10 // bytes of them that are served in one round, and that one commit has

	watchesAtOnce = 100 // that are set or removed in one round
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
	if len(c.parked) == 0 && !o.mustWait(it, !o.isLarge(it)) {
		return false
	}
	c.parked = append(c.parked, *it)
	return true
}

// mustWait reports whether the first request of those that wait has to go on waiting, for its client or for its turn,
// and sees to it that its connection is resumed.
func (o *owner) mustWait(it *item, turn bool) bool {
	c := it.conn
	if c.backlog.Load() > softBacklog && c.park() {
		return true
	}
	if turn {
		return false
	}
	o.large = append(o.large, c)
	token(o.queue.wake)
	return true
}

// resume serves the requests that were put aside, as far as the client has made room, and as far as one turn goes: what
// waits behind a large request may be much together. The first may be large if it is its turn.
//
// Nothing is done for a client that has gone: work whose answers are no bytes would have no end.
func (o *owner) resume(c *conn, turn bool) {
	if c.ended() {
		c.parked = nil
		return
	}
	start := o.cost
	for i := range c.parked {
		it := &c.parked[i]
		mine := turn && i == 0 || o.cost-start < largeShare && !o.isLarge(it)
		if o.mustWait(it, mine) {
			clear(c.parked[:i])
			c.parked = c.parked[i:]
			return
		}
		o.request(it)
		if it.more {
			it.more = false
			o.cost = start + largeShare
			c.parked = c.parked[i:]
			o.large = append(o.large, c)
			return
		}
		if turn && i == 0 && o.cost-start < largeSize {
			o.cost = start + largeShare // much was done, and refused in the end
		}
	}
	c.parked = nil
}

// serveLarge serves some of the large requests.
func (o *owner) serveLarge() {
	for start := o.cost; o.mayServeLarge() && o.cost-start < largeShare; {
		c := o.large[0]
		o.large[0] = nil
		o.large = o.large[1:]
		before := o.cost
		isWrite := len(c.parked) > 0 && tree.IsWrite(c.parked[0].op)
		o.resume(c, true)
		if isWrite && o.open != nil {
			o.open.large += o.cost - before
			o.heavy = o.open.seq
		}
	}
	o.flush()
}

// mayServeLarge reports whether it is the turn of a large request. A write has to wait. There is one commit at a time with
// large writes, and it has few, as a small write waits for all commits before its own. If there were small ones while it
// went on, the next one leaves the disk to them for as long as it has taken. How much there is of small ones does not
// matter, or enough of them would keep the large ones waiting for ever.
func (o *owner) mayServeLarge() bool {
	if len(o.large) == 0 {
		return false
	}
	first := o.large[0].parked
	switch {
	case len(first) == 0 || !tree.IsWrite(first[0].op):
		return true
	case o.open != nil && o.open.large > 0:
		return o.open.large < largeShare
	default:
		return o.heavy <= o.durable.seq.Load() && !time.Now().Before(o.rest)
	}
}

// unwatch removes the watches of a connection, the rest of them in later rounds if there are many. Events for it are
// dropped already.
func (o *owner) unwatch(id tree.WatcherID) {
	if o.tree.RemoveWatcher(id, watchesAtOnce) {
		o.left = append(o.left, id)
		token(o.queue.wake)
	}
}

// removeWatches removes some of the watches of a connection that has gone.
func (o *owner) removeWatches() {
	if len(o.left) == 0 {
		return
	}
	if !o.tree.RemoveWatcher(o.left[0], watchesAtOnce) {
		o.left = o.left[1:]
	}
}

// spent counts the bytes of a request or of a reply.
func (o *owner) spent(n int) {
	o.cost += n
	o.took(n)
}
