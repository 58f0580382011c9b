package server

import (
	"sync"
	"sync/atomic"

	"github.com/seed-a3166700/turnstile/internal/store"
)

// maxInFlight is how many batches are sealed before the first of them is durable. While one is being synced
// the next one is already in the log's buffer, so that the disk never waits for the owner; more would only make smaller batches.
const maxInFlight = 2

// flight counts the batches that are sealed and that the owner has not got back. It wakes the owner only when that
// waits.
type flight struct {
	count atomic.Int32
	full  atomic.Bool   // the owner waits until there are less
	land  chan struct{} // has a token when it need not wait any more

	mu   sync.Mutex // guards back; nothing blocks under it
	back []*batch   // durable, for the owner to clean up and to use again
}

// room reports whether another batch may be given to the store. If not, land will get a token when one may.
func (f *flight) room() bool {
	if f.count.Load() < maxInFlight {
		return true
	}
	f.full.Store(true)
	if f.count.Load() < maxInFlight { // just landed, perhaps before it could see that somebody waits
		f.full.Store(false)
		return true
	}
	return false
}

func (f *flight) landed(b *batch) {
	large := b.large > 0 // the next large write waits for it
	f.mu.Lock()
	f.back = append(f.back, b)
	f.mu.Unlock()
	f.count.Add(-1)
	if f.full.CompareAndSwap(true, false) || large {
		token(f.land)
	}
}

// collect returns the batches that have landed.
func (f *flight) collect(buf []*batch) []*batch {
	f.mu.Lock()
	defer f.mu.Unlock()
	buf = append(buf[:0], f.back...)
	clear(f.back)
	f.back = f.back[:0]
	return buf
}

// durability is how far the disk is. The committer moves it, the owner reads it.
type durability struct {
	seq   atomic.Uint64 // the last batch that is durable and whose frames are in the outboxes
	zxid  atomic.Int64  // the last zxid that may be shown
	limit atomic.Int64  // the last zxid that is reserved on disk
}

// raise moves zxid up to at least z.
func (d *durability) raise(z int64) {
	if z > d.zxid.Load() {
		d.zxid.Store(z)
	}
}

// apply gives the batches that the owner has sealed to the store, in order. The store may wait for the disk even before
// it syncs: for a new log, or for room. The owner must not, because the pings and the reads of all clients wait for it.
func (s *Server) apply() {
	defer close(s.commits)
	for b := range s.sealed {
		s.applying <- struct{}{}
		b.apply((*store.Batch).Apply)
		<-s.applying
		s.commits <- b
	}
}

// commit releases the batches that were applied, in order. It ends when the owner has sealed the last one and nobody
// else releases one.
func (s *Server) commit() {
	var loud []*conn
	for b := range s.commits {
		s.releasing <- struct{}{}
		loud = s.release(b, loud)
		<-s.releasing
	}
	s.releasing <- struct{}{}
}

// release waits for a batch to be durable and hands out its frames. After a failure of the disk it hands out nothing any more. The caller has
// the turn to release, which goes from batch to batch in their order.
func (s *Server) release(b *batch, loud []*conn) []*conn {
	if err := b.wait(&s.durable); err != nil {
		s.lost = true
		s.stop(err)
		return loud
	}
	if s.lost || s.failed() {
		return loud
	}
	loud = b.put(s.clock.now(), loud)
	// After its frames stand in the outboxes: a reply that shows this zxid must not overtake an event of it, or a client that
	// loses its connection between the two would say that it has seen the event.
	s.durable.raise(b.zxid)
	// Before any client can know its reply: what it asks next must not be held up by a batch that it knows to be durable.
	s.durable.seq.Store(b.seq)
	b.flush(loud)
	s.flight.landed(b)
	return loud
}
