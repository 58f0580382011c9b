package server

import (
	"sync/atomic"
)

// maxInFlight is how many batches are given to the store before the first of them is durable. While one is being synced
// the next one is already in the log's buffer, so that the disk never waits for the owner; more would only make smaller batches.
const maxInFlight = 2

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

// commit waits for each batch to be durable, in order, and releases its frames. It ends when the owner has closed the
// channel; after a failure of the disk it goes on to receive, but releases nothing any more.
func (s *Server) commit() {
	var loud []*conn
	for b := range s.commits {
		if b.tx != nil {
			limit, err := b.tx.Wait()
			if err != nil {
				s.stop(err)
				continue
			}
			s.durable.limit.Store(limit)
		}
		if s.failed() {
			continue
		}
		s.durable.raise(b.zxid)
		loud = b.put(s.clock.now(), loud)
		// Before any client can know its reply: what it asks next must not be held up by a batch that it knows to be durable.
		// Its frames stand in the outbox already, so that nothing overtakes them.
		s.durable.seq.Store(b.seq)
		b.flush(loud)
		s.committed <- b
	}
}
