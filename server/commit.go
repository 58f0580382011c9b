package server

// Committing batches: applying, waiting for the disk, sending replies.

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-a3166700/turnstile/server/internal/store"
)

// maxInFlight is how many batches may be sealed and not durable. While the disk syncs one, the next is already in the
// log's buffer, so the disk never waits for the owner. More would only make batches smaller.
const maxInFlight = 2

// inFlight tracks the batches between the owner's seal and their durability. It wakes the owner only if the owner
// waits.
type inFlight struct {
	count   atomic.Int32
	full    atomic.Bool   // the owner waits for room
	hasRoom chan struct{} // has a token when there is room again

	mu   sync.Mutex // guards back; nothing blocks under it
	back []*batch   // durable ones, for the owner to reuse
}

// room reports whether another batch may be sealed. If not, hasRoom gets a token as soon as one may.
func (f *inFlight) room() bool {
	if f.count.Load() < maxInFlight {
		return true
	}
	f.full.Store(true)
	if f.count.Load() < maxInFlight { // one became durable, perhaps before full was set
		f.full.Store(false)
		return true
	}
	return false
}

// done hands a durable batch back to the owner.
func (f *inFlight) done(b *batch) {
	large := b.large > 0 // the next large write waits for it
	f.mu.Lock()
	f.back = append(f.back, b)
	f.mu.Unlock()
	f.count.Add(-1)
	if f.full.CompareAndSwap(true, false) || large {
		signal(f.hasRoom)
	}
}

// collect returns the batches that have become durable since the last call, in buf's memory.
func (f *inFlight) collect(buf []*batch) []*batch {
	f.mu.Lock()
	defer f.mu.Unlock()
	buf = append(buf[:0], f.back...)
	clear(f.back)
	f.back = f.back[:0]
	return buf
}

// durability is how far the disk is. The committer updates it; the owner reads it.
type durability struct {
	seq   atomic.Uint64 // the last batch that is durable and has its frames in the outboxes
	zxid  atomic.Int64  // the last zxid that replies may show
	limit atomic.Int64  // the last zxid reserved on disk
}

// raise moves zxid up to at least z.
func (d *durability) raise(z int64) {
	if z > d.zxid.Load() {
		d.zxid.Store(z)
	}
}

// apply applies sealed batches to the store, in order. That may wait for the disk even before the sync: for a new log,
// or for room. The owner must not wait for that, because pings and reads of all clients wait for the owner.
func (s *Server) apply() {
	defer close(s.commits)
	for b := range s.sealed {
		s.applying <- struct{}{}
		b.apply((*store.Batch).Apply)
		<-s.applying
		s.commits <- b
	}
}

// commit releases the applied batches, in order. It returns after the owner's last one, when no reader is releasing one
// either.
func (s *Server) commit() {
	var conns []*conn
	for b := range s.commits {
		s.releasing <- struct{}{}
		conns = s.release(b, conns)
		<-s.releasing
	}
	s.releasing <- struct{}{}
}

// release waits until a batch is durable and sends its frames. After a failure of the disk it sends none. The caller
// has the turn to release, which batches get in their order. It returns buf's memory for the next call.
func (s *Server) release(b *batch, buf []*conn) []*conn {
	if err := b.wait(&s.durable); err != nil {
		s.lost = true
		s.stop(&DiskError{err})
		return buf
	}
	if s.lost || s.failed() {
		return buf
	}
	if b.tx != nil {
		s.stats.committed(b, time.Since(b.began))
	}
	buf = b.put(s.clock.now(), buf)
	// Only now that its frames are in the outboxes: a reply that shows this zxid must not overtake an event of it. A
	// client that lost its connection between the two would claim to have seen the event.
	s.durable.raise(b.zxid)
	// Before any client can get its reply: the client's next request must not wait for a batch that is durable.
	s.durable.seq.Store(b.seq)
	b.flush(buf)
	s.inFlight.done(b)
	return buf
}
