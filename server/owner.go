package server

// The goroutine that owns the tree, the sessions and the batch being filled.

import (
	"container/list"
	"iter"
	"runtime"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/server/internal/store"
	"github.com/seed-a3166700/turnstile/server/internal/tree"
)

// owner is the state that one goroutine at a time owns: the tree, the sessions and the batch being filled. Usually that
// goroutine is run, to which the others send items; briefly it can be a connection's reader (serveInline). While a
// goroutine has the turn it never waits for the disk or for a client.
type owner struct {
	*Server
	turn   sync.Mutex // guards everything below
	ended  bool       // no request is served any more
	tree   *tree.Tree
	secret []byte
	seed   int64 // the last session id given out
	zxid   int64 // the last one used

	watchers map[tree.WatcherID]*conn // connections that have finished the handshake
	sessions map[int64]*session
	openedBy map[string]int // number of sessions by the address that opened them, as addressKey
	unknown  list.List      // sessions in which nobody has logged in, if Config.RequireSASL; the oldest first
	expiry   expiry
	idle     idle
	reaper   reaper

	open       *batch            // the batch being filled, nil if there is none
	spare      *batch            // for reuse
	seq        uint64            // number of the last batch begun
	wrote      time.Time         // when the last batch with something to write was sealed
	dirty      map[string]uint64 // by path, the last batch that changes it, for batches that may not be durable
	isDirty    func(path string) bool
	toFlush    []*conn          // connections with direct replies to flush
	recycled   []*batch         // scratch of recycle
	cost       int              // bytes of requests and replies so far
	unwatching []tree.WatcherID // closed connections with watches left to remove
	watches    int              // how many there were when some were last removed
	expired    []*session       // left to end
	endings    []ending         // ended sessions with nodes left to delete
	backup     *backupRun       // that a client makes, nil if none does

	full        line      // connections whose next request is a write for which the open batch has no room
	large       line      // connections whose next request is a large read, or what may be one, and waits for its turn
	largeWrites line      // those whose next request is a large write
	readLarge   bool      // the last large request that was served is from large
	largeBatch  uint64    // the last batch with a large write
	largeAt     time.Time // when it was sealed
	largeNext   time.Time // no large write may be served before
	endingsNext bool      // an ending is to be continued before a session that has expired is ended
}

func newOwner(s *Server, t *tree.Tree) *owner {
	o := &owner{
		Server: s, tree: t, zxid: t.Zxid(),
		watchers: make(map[tree.WatcherID]*conn), sessions: make(map[int64]*session),
		openedBy: make(map[string]int), dirty: make(map[string]uint64),
	}
	o.isDirty = func(path string) bool {
		seq, ok := o.dirty[path]
		return ok && seq > o.durable.seq.Load()
	}
	now := s.clock.now()
	o.expiry.init(s.cfg.TickTime)
	for id, ms := range t.Sessions() { // each gets its full timeout from now on
		o.addSession(id, time.Duration(ms)*time.Millisecond, now)
	}
	return o
}

// run serves items until the server stops.
func (o *owner) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var items []item
	o.turn.Lock()
	defer o.turn.Unlock()
	for {
		timer.Reset(o.nextDue())
		more := o.mayServeLarge() || len(o.unwatching) > 0 || o.tree.MustTend() || o.mayEnd()
		o.turn.Unlock()
		if more { // serve small requests first, if any have come by now
			signal(o.queue.wake)
			runtime.Gosched()
		}
		why := o.sleep(timer.C)
		o.turn.Lock()
		switch why {
		case wokenToStop:
			o.seal()
			o.ended = true
			close(o.sealed)
			o.queue.close()
			return
		case wokenByItems:
			items = o.queue.take(items)
			o.stats.took(len(items))
			o.serve(items)
			clear(items)
		case wokenByTimer:
			o.runDue()
		case wokenByRoom:
		}
		o.endSessions() // before large writes, which would leave no room for it in a commit
		o.serveLarge()
		o.removeWatches()
		o.tend()
		o.recycle()
		if o.open != nil && o.inFlight.room() {
			o.seal()
		}
		o.serveFull()
	}
}

// wake is why the owner's goroutine runs.
type wake uint8

const (
	wokenToStop wake = iota
	wokenByItems
	wokenByRoom
	wokenByTimer
)

// sleep waits until there is something to do.
func (o *owner) sleep(timer <-chan time.Time) wake {
	select {
	case <-o.stopping:
		return wokenToStop
	case <-o.queue.wake:
		return wokenByItems
	case <-o.inFlight.hasRoom:
		return wokenByRoom
	case <-timer:
		return wokenByTimer
	}
}

func (o *owner) serve(items []item) {
	for i := range items {
		o.serveOne(&items[i])
	}
	o.flush()
}

func (o *owner) serveOne(it *item) {
	switch it.kind {
	case itemCall:
		it.call()
	case itemGone:
		o.connGone(it.conn)
	case itemResume:
		o.resume(it.conn, false)
	case itemConnect, itemRequest:
		if !o.mustPark(it) {
			o.request(it)
		}
	}
	if it.tail {
		signal(it.conn.taken)
	}
}

// flush writes the direct replies of this round.
func (o *owner) flush() {
	for i, c := range o.toFlush {
		c.needsFlush = false
		c.flush()
		o.toFlush[i] = nil
	}
	o.toFlush = o.toFlush[:0]
}

// nextDue returns the time until runDue has something to do. It is never zero: golang/go#78156.
func (o *owner) nextDue() time.Duration {
	wait := time.Hour
	if len(o.expiry.buckets) > 0 && o.clock.running() {
		wait = o.expiry.wait(o.clock.now())
	}
	// Afterwards they wait for a commit at most, whose end wakes.
	if next := time.Until(o.largeNext); next > 0 && len(o.largeWrites)+len(o.expired)+len(o.endings) > 0 {
		wait = min(wait, next)
	}
	return max(time.Nanosecond, min(wait, o.idle.wait(o), o.reaper.wait()))
}

// runDue does what has become due: expiry, collection, stopping when idle.
func (o *owner) runDue() {
	if len(o.expiry.buckets) > 0 {
		o.expired = append(o.expired, o.expiry.expired(o.clock.now())...)
	}
	o.reaper.run(o)
	o.idle.run(o)
	o.flush()
}

// current returns the batch being filled.
func (o *owner) current() *batch {
	if o.open == nil {
		o.open, o.spare = o.spare, nil
		if o.open == nil {
			o.open = new(batch)
		}
		o.seq++
		o.open.seq = o.seq
		o.open.opened = time.Now()
	}
	return o.open
}

// pending reports whether there are batches that are not durable yet.
func (o *owner) pending() bool { return o.seq > o.durable.seq.Load() }

// seal sends the batch being filled, if any, to be committed.
func (o *owner) seal() {
	if b := o.finish(); b != nil {
		o.sealed <- b
	}
}

// finish ends the batch being filled. The caller must have it applied and released. It returns nil if there is none.
func (o *owner) finish() *batch {
	b := o.open
	if b == nil {
		return nil
	}
	o.open = nil
	b.zxid = o.zxid
	if b.large > 0 {
		o.largeAt = time.Now()
	}
	if b.tx == nil && b.zxid > o.store.Reserved() {
		b.tx = o.store.NewBatch()
	}
	if b.tx != nil {
		o.wrote = time.Now()
	}
	b.ahead = int(o.inFlight.count.Add(1)) - 1
	return b
}

// recycle reuses durable batches.
func (o *owner) recycle() {
	o.recycled = o.inFlight.collect(o.recycled)
	for i, b := range o.recycled {
		for _, path := range b.dirty {
			if o.dirty[path] == b.seq {
				delete(o.dirty, path)
			}
		}
		if b.large > 0 && o.seq > b.seq { // other writes came meanwhile
			now := time.Now()
			o.largeNext = now.Add(now.Sub(o.largeAt))
		}
		b.reset()
		o.spare = b
		o.recycled[i] = nil
	}
}

// nextZxid returns the zxid of the next write.
func (o *owner) nextZxid() int64 {
	o.zxid++
	return o.zxid
}

// record adds the changes of a write to the batch being filled, and sends its events.
func (o *owner) record(r *tree.Result) {
	for _, id := range r.Cut {
		if c := o.watchers[id]; c != nil {
			o.hit(limitEvents, c.remote)
			c.kill()
		}
	}
	if o.tree.MustTend() {
		signal(o.queue.wake)
	}
	if o.store != nil && len(r.Changes) > 0 {
		b := o.current()
		o.tx(b).Add(r.Changes)
		stored := 0
		for i := range r.Changes {
			stored += len(r.Changes[i].Value)
			b.bytes += len(r.Changes[i].Path)
		}
		b.bytes += stored
		if stored > largeSize { // more than what its request contains: access lists
			o.countBytes(stored)
		}
		for path := range r.Touched() {
			if o.dirty[path] != b.seq {
				o.dirty[path] = b.seq
				b.dirty = append(b.dirty, path)
			}
		}
	}
	o.fire(r.Events, o.store != nil)
}

// tend does a part of what writes have left to do.
func (o *owner) tend() {
	if o.tree.MustTend() {
		r, _ := o.tree.Tend()
		o.record(&r)
	}
}

func (o *owner) tx(b *batch) *store.Batch {
	if b.tx == nil {
		b.tx = o.store.NewBatch()
	}
	return b.tx
}

// groups yields the events of consecutive watchers that are told the same.
func groups(events []tree.Fired) iter.Seq[[]tree.Fired] {
	return func(yield func([]tree.Fired) bool) {
		for len(events) > 0 {
			n := 1
			for n < len(events) && events[n].Event == events[0].Event && events[n].Zxid == events[0].Zxid {
				n++
			}
			if !yield(events[:n]) {
				return
			}
			events = events[n:]
		}
	}
}

// fire sends events: in the batch being filled if hold, else directly. Connections that get the same event share its
// bytes.
func (o *owner) fire(events []tree.Fired, hold bool) {
	for same := range groups(events) {
		o.stats.watched(same[0].Event.Type, len(same))
	}
	var made frame         // of the last event
	var shared *tree.Fired // the last event with a connection, whose frame is made
	for i := range events {
		e := &events[i]
		c := o.watchers[e.Watcher]
		if c == nil || c.state != connOpen {
			continue
		}
		h := wire.ReplyHeader{Xid: wire.XidNotification, Zxid: e.Zxid}
		if !hold {
			o.countBytes(c.putReply(&frame{op: wire.OpNotification}, h, &e.Event, 0))
			o.direct(c)
		} else {
			b := o.current()
			if shared == nil || shared.Event != e.Event || shared.Zxid != e.Zxid {
				event := e.Event // a copy, because a large frame refers to it until it is encoded
				made, shared = frame{op: wire.OpNotification, large: largeFrame(h, &event)}, e
				if made.large == nil {
					made.from = len(b.buf)
					b.buf = wire.AppendReply(b.buf, h, &e.Event)
					made.to = len(b.buf)
				}
			}
			made.conn = c
			// A later reply may overtake the event only if it need not wait, and then it shows nothing of the change.
			b.frames = append(b.frames, made)
			c.backlog.Add(int64(made.bytes()))
			o.countBytes(made.bytes())
		}
		// clients do not ask for events, so parking requests is not enough
		if full(int(c.backlog.Load()), o.cfg.Limits.Unsent) {
			o.hit(limitUnsent, c.remote)
			c.kill()
		}
	}
}

// direct notes that a connection has a direct reply to flush.
func (o *owner) direct(c *conn) {
	if !c.needsFlush {
		c.needsFlush = true
		o.toFlush = append(o.toFlush, c)
	}
}
