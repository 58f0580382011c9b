package server

// The order in which requests are served.

import (
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/server/internal/tree"
)

// One owner serves all clients, so every client waits while it serves another. Two rules keep these waits short.
//
// First, a connection has at most maxGiven batches of readBatch requests in the owner's queue. Its reader gives the
// owner another batch when the owner has served one. So a connection that sends without a pause gets its share of each
// round and no more. There are two batches so that the second is ready when the first has been served: with only one, a
// client with 256 writes in flight was slower by a tenth.
//
// Second, a large request is parked, and so are later requests of its connection. The owner serves one or a few large
// requests and then checks for others, so a client with small requests waits for at most one large one. The size of a
// request must be known before it is served: if it were learned from serving, a client could use a new connection for
// each large request and always be served first. The owner leaves slow work to others or does it in pieces:
//
//   - The connection's writer encodes a large reply (see bulk).
//   - The owner sets and removes watches in pieces. Other requests may be served between the pieces of one request, but
//     its client cannot tell: each path is checked on its own, and the reply comes after the last piece. If the
//     connection closes meanwhile, the owner removes the watches set so far. It counts descendants in pieces, too.
//   - The owner commits large writes one after the other (see mayServeLarge).
//
// A batch takes maxBatch bytes, also of small writes. While the disk is slow, further writes wait, and then their
// connections are read no more: or memory would fill with what no limit of a connection counts.

const (
	maxGiven   = 2         // batches of one connection in the owner's queue
	largeSize  = 64 << 10  // bytes of a request or reply above which it is large
	largeShare = 512 << 10 // bytes of large requests and replies in one round, and in one commit
	maxBatch   = 4 << 20   // bytes that one commit writes

	watchesAtOnce = 100  // watches to set or remove in one round
	visitsAtOnce  = 5000 // nodes to count in one round
)

// isLarge reports whether a request or its reply is large.
func (o *owner) isLarge(it *item) bool {
	if it.size > largeSize || tree.Watches(it.req) > watchesAtOnce { // which resume continues
		return true
	}
	known := it.kind == itemRequest && it.code == wire.OK && (tree.IsRead(it.op) || tree.IsWrite(it.op))
	return known && o.tree.Exceeds(&it.conn.caller, it.op, it.req, largeSize)
}

// mustPark parks a request and reports true if it must wait: for parked requests of its connection, for an answer that
// comes later, for the client to read earlier replies, which would otherwise fill the memory, or for its turn as a
// large request.
func (o *owner) mustPark(it *item) bool {
	c := it.conn
	if len(c.parked) == 0 && !o.mustWait(it, !o.isLarge(it)) {
		return false
	}
	c.parked = append(c.parked, *it)
	return true
}

// mustWait reports whether a connection's next request must wait: for an answer that comes later, for its client to
// read or, unless turn, for its turn. It makes sure that the connection is resumed then.
func (o *owner) mustWait(it *item, turn bool) bool {
	c := it.conn
	if c.late {
		return true
	}
	if c.backlog.Load() > softBacklog && c.park() {
		return true
	}
	if it.kind == itemRequest && tree.IsWrite(it.op) && o.batchFull() {
		o.full.add(c)
		return true
	}
	if turn {
		return false
	}
	o.line(it.op).add(c)
	signal(o.queue.wake)
	return true
}

// line returns the line in which the connection waits whose next request has that operation.
func (o *owner) line(op wire.Op) *line {
	if tree.IsWrite(op) {
		return &o.largeWrites
	}
	return &o.large
}

// A line has connections that wait for their turn.
type line []*conn

func (l *line) add(c *conn) { *l = append(*l, c) }

func (l *line) next() *conn {
	c := (*l)[0]
	(*l)[0] = nil
	*l = (*l)[1:]
	return c
}

// batchFull reports whether the batch being filled takes no more writes.
func (o *owner) batchFull() bool { return o.open != nil && o.open.bytes >= maxBatch }

// serveFull serves the writes that waited for another batch.
func (o *owner) serveFull() {
	if len(o.full) == 0 || o.batchFull() {
		return
	}
	waited := o.full
	o.full = nil
	for _, c := range waited {
		o.resume(c, false)
	}
	o.flush()
	signal(o.queue.wake) // to seal the batch
}

// caughtUp has the requests served that waited for an answer.
func (o *owner) caughtUp(c *conn) {
	c.late = false
	if len(c.parked) > 0 {
		o.line(c.parked[0].op).add(c)
		signal(o.queue.wake)
	}
}

// resume serves a connection's parked requests until one must wait for the client to read or the turn is used up,
// because many requests may wait behind a large one. If turn, the first request may be large.
//
// It drops the requests of a closed connection. Their replies make no bytes, so nothing would end the turn.
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
			c.unpark(i)
			return
		}
		o.request(it)
		if it.more {
			it.more = false
			o.cost = start + largeShare
			c.unpark(i)
			o.line(it.op).add(c)
			return
		}
		if turn && i == 0 && o.cost-start < largeSize {
			o.cost = start + largeShare // it was refused, perhaps after much work
		}
	}
	c.parked = nil
}

// unpark drops the first n parked requests, which have been served.
func (c *conn) unpark(n int) {
	clear(c.parked[:n])
	c.parked = c.parked[n:]
}

// writesNext reports whether the first parked request is a write.
func (c *conn) writesNext() bool { return len(c.parked) > 0 && tree.IsWrite(c.parked[0].op) }

// serveLarge serves large requests, up to largeShare in one call.
func (o *owner) serveLarge() {
	for start := o.cost; o.mayServeLarge() && o.cost-start < largeShare; {
		c := o.nextLarge()
		before := o.cost
		isWrite := c.writesNext()
		if isWrite && !o.mayWriteLarge() { // others of its requests were served since it came into the line
			o.largeWrites.add(c)
			continue
		}
		o.resume(c, true)
		if isWrite {
			o.countLarge(before)
		}
	}
	o.flush()
}

// mayServeLarge reports whether a large request may be served. A read always may, so it waits for no write. A small
// write waits for all earlier commits, so only one commit at a time has large writes, and only a few. If small writes
// came during it, the next large one waits for as long again as it took, and leaves the disk to small ones. The number
// of small writes makes no difference, because otherwise enough of them would keep large ones waiting forever.
func (o *owner) mayServeLarge() bool {
	return len(o.large) > 0 || len(o.largeWrites) > 0 && o.mayWriteLarge()
}

// nextLarge returns the connection with the next large request that may be served: of a read and of a write in turn.
func (o *owner) nextLarge() *conn {
	writes := len(o.largeWrites) > 0 && o.mayWriteLarge()
	if o.readLarge = len(o.large) > 0 && (!writes || !o.readLarge); o.readLarge {
		return o.large.next()
	}
	return o.largeWrites.next()
}

// countLarge counts what was written since the cost was start as large: others wait for its commit.
func (o *owner) countLarge(start int) {
	if o.open != nil && o.cost > start {
		o.open.large += o.cost - start
		o.largeBatch = o.open.seq
	}
}

// mayWriteLarge reports whether a commit may have a large write now.
func (o *owner) mayWriteLarge() bool {
	if o.open != nil && o.open.large > 0 {
		return o.open.large < largeShare
	}
	return o.largeBatch <= o.durable.seq.Load() && !time.Now().Before(o.largeNext)
}

// unwatch removes the watches of a closed connection, which gets no events any more. If there are many, it removes the
// rest in later rounds.
func (o *owner) unwatch(id tree.WatcherID) {
	removed, more := o.tree.RemoveWatcher(id, watchesAtOnce)
	o.watches -= removed // which are not to hide how many were set
	if more {
		o.unwatching = append(o.unwatching, id)
		signal(o.queue.wake)
	}
}

// removeWatches removes some watches of a closed connection, if any are left.
func (o *owner) removeWatches() {
	// Clients that connect, set watches and leave, again and again, must not leave them faster than they are removed.
	left := max(watchesAtOnce, 2*(o.tree.WatchCount()-o.watches))
	for len(o.unwatching) > 0 && left > 0 {
		removed, more := o.tree.RemoveWatcher(o.unwatching[0], left)
		if !more {
			o.unwatching = o.unwatching[1:]
		}
		left -= removed
	}
	o.watches = o.tree.WatchCount()
}

// countBytes counts the bytes of a request or reply.
func (o *owner) countBytes(n int) {
	o.cost += n
	o.countMemory(n)
}
