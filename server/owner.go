package server

import (
	"runtime"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/store"
	"github.com/seed-a3166700/turnstile/internal/tree"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// owner is the state that one goroutine at a time owns: the tree, the sessions, and the batch that is being filled. That goroutine is
// run, to which all others send items, or for a moment a reader, see lone. Whoever has the turn never waits for the disk or for a client.
type owner struct {
	*Server
	turn   sync.Mutex // guards everything below
	ended  bool       // nobody is served any more
	tree   *tree.Tree
	secret []byte
	seed   int64 // the last session id given out
	zxid   int64 // the last one spent

	watchers map[tree.WatcherID]*conn // connections that have finished the handshake
	sessions map[int64]*session
	openedBy map[string]int // of them by address
	expiry   expiry
	idle     idle
	reaper   reaper

	open    *batch            // being filled; nil if nothing waits for a commit of its own
	spare   *batch            // for reuse
	seq     uint64            // of the last batch begun
	dirty   map[string]uint64 // the last batch that changes a path, for paths of batches that may not be durable
	isDirty func(path string) bool
	loud    []*conn // connections with direct replies to flush
	landed  []*batch
	large   []*conn          // connections whose next request is large and waits for its turn
	heavyAt time.Time        // when it was sealed
	rest    time.Time        // the next one may not come before
	heavy   uint64           // the last batch with a large write
	left    []tree.WatcherID // watchers that have gone and whose watches are still to be removed
	cost    int              // bytes of requests and replies so far
}

func newOwner(s *Server, t *tree.Tree) *owner {
	o := &owner{
		Server: s, tree: t, zxid: t.Zxid(),
		watchers: make(map[tree.WatcherID]*conn), sessions: make(map[int64]*session), openedBy: make(map[string]int), dirty: make(map[string]uint64),
	}
	o.isDirty = func(path string) bool {
		seq, ok := o.dirty[path]
		return ok && seq > o.durable.seq.Load()
	}
	now := s.clock.now()
	o.expiry.init(s.cfg.TickTime)
	for id, ms := range t.Sessions() { // each gets a full timeout from now on
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
		timer.Reset(o.nextAlarm())
		more := o.mayServeLarge() || len(o.left) > 0
		o.turn.Unlock()
		if more { // what is small comes first, if there is any by now
			token(o.queue.wake)
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
			o.serve(items)
			clear(items)
		case wokenByAlarm:
			o.alarm()
		case wokenByRoom:
		}
		o.serveLarge()
		o.removeWatches()
		o.recycle()
		if o.open != nil && o.flight.room() {
			o.seal()
		}
	}
}

// wake says why the owner's goroutine runs.
type wake uint8

const (
	wokenToStop wake = iota
	wokenByItems
	wokenByRoom
	wokenByAlarm
)

// sleep waits until there is something to do.
func (o *owner) sleep(alarm <-chan time.Time) wake {
	select {
	case <-o.stopping:
		return wokenToStop
	case <-o.queue.wake:
		return wokenByItems
	case <-o.flight.land:
		return wokenByRoom
	case <-alarm:
		return wokenByAlarm
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
		token(it.conn.taken)
	}
}

// flush writes the direct replies of this round.
func (o *owner) flush() {
	for i, c := range o.loud {
		c.loud = false
		c.flush()
		o.loud[i] = nil
	}
	o.loud = o.loud[:0]
}

// nextAlarm returns how long the owner may wait for the next item. It is never zero: see golang/go#78156 in
// docs/bugs.md.
func (o *owner) nextAlarm() time.Duration {
	wait := time.Hour
	if len(o.expiry.buckets) > 0 && o.clock.running() {
		wait = o.expiry.wait(o.clock.now())
	}
	if len(o.large) > 0 && !o.rest.IsZero() {
		wait = min(wait, time.Until(o.rest))
	}
	return max(time.Nanosecond, min(wait, o.idle.wait(o), o.reaper.wait()))
}

// alarm does what has become due.
func (o *owner) alarm() {
	if len(o.expiry.buckets) > 0 {
		for _, s := range o.expiry.expired(o.clock.now()) {
			o.cfg.Logger.Info("server: session expired", "session", sessionName(s.id))
			o.endSession(s)
		}
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
	}
	return o.open
}

// pending reports whether there are batches that are not durable yet.
func (o *owner) pending() bool { return o.seq > o.durable.seq.Load() }

// seal has the batch being filled committed.
func (o *owner) seal() {
	if b := o.finish(); b != nil {
		o.sealed <- b
	}
}

// finish ends the filling of a batch. It returns the batch, for somebody to apply and to release, or nil if there is none.
func (o *owner) finish() *batch {
	b := o.open
	if b == nil {
		return nil
	}
	o.open = nil
	b.zxid = o.zxid
	if b.large > 0 {
		o.heavyAt = time.Now()
	}
	if b.tx == nil && b.zxid > o.store.Reserved() {
		b.tx = o.store.NewBatch()
	}
	o.flight.count.Add(1)
	return b
}

// recycle takes durable batches back.
func (o *owner) recycle() {
	o.landed = o.flight.collect(o.landed)
	for i, b := range o.landed {
		for _, path := range b.dirty {
			if o.dirty[path] == b.seq {
				delete(o.dirty, path)
			}
		}
		if b.large > 0 && o.seq > b.seq { // other writes have come meanwhile
			now := time.Now()
			o.rest = now.Add(now.Sub(o.heavyAt))
		}
		b.reset()
		o.spare = b
		o.landed[i] = nil
	}
}

// spend returns the zxid of the next write.
func (o *owner) spend() int64 {
	o.zxid++
	return o.zxid
}

// record puts what a write changed into the batch being filled, and sends its events.
func (o *owner) record(r *tree.Result) {
	if o.store != nil && len(r.Changes) > 0 {
		b := o.current()
		o.tx(b).Add(r.Changes)
		for path := range r.Touched() {
			if o.dirty[path] != b.seq {
				o.dirty[path] = b.seq
				b.dirty = append(b.dirty, path)
			}
		}
	}
	o.fire(r.Events, o.store != nil)
}

func (o *owner) tx(b *batch) *store.Batch {
	if b.tx == nil {
		b.tx = o.store.NewBatch()
	}
	return b.tx
}

// fire sends events, into the batch being filled if hold. Several connections that get the same event share its bytes.
func (o *owner) fire(events []tree.Fired, hold bool) {
	var made frame         // has the bytes of the event that several get
	var shared *tree.Fired // that event; those before it may have had no connection
	for i := range events {
		e := &events[i]
		c := o.watchers[e.Watcher]
		if c == nil || c.state != connOpen {
			continue
		}
		h := wire.ReplyHeader{Xid: wire.XidNotification, Zxid: e.Zxid}
		if !hold {
			o.spent(c.putReply(&frame{op: wire.OpNotification}, h, &e.Event, 0))
			o.direct(c)
		} else {
			b := o.current()
			if shared == nil || shared.Event != e.Event || shared.Zxid != e.Zxid {
				event := e.Event // a large one stays
				made, shared = frame{op: wire.OpNotification, large: largeFrame(h, &event)}, e
				if made.large == nil {
					made.from = len(b.buf)
					b.buf = wire.AppendReply(b.buf, h, &e.Event)
					made.to = len(b.buf)
				}
			}
			made.conn = c
			// A later reply may overtake the event if it does not wait itself: then it shows nothing of the change.
			b.frames = append(b.frames, made)
			c.backlog.Add(int64(made.bytes()))
			o.spent(made.bytes())
		}
		if full(int(c.backlog.Load()), o.cfg.Limits.Unsent) { // events are made without asking the client
			o.hit(limitUnsent, c.remote)
			c.kill()
		}
	}
}

// direct remembers to flush a connection.
func (o *owner) direct(c *conn) {
	if !c.loud {
		c.loud = true
		o.loud = append(o.loud, c)
	}
}
