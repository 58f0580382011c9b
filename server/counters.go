package server

// Counters of requests, replies and latencies.

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// counters are a connection's figures for the four-letter words. The reader counts the first two; the outbox's mutex
// guards the rest.
type counters struct {
	recved atomic.Int64
	lcxid  atomic.Int32

	sentN   int64
	lop     wire.Op
	lzxid   int64
	lresp   time.Time
	llat    time.Duration
	latency latency
}

// latency summarizes how long requests took.
type latency struct {
	n             int64
	sum, min, max time.Duration
}

func (l *latency) add(d time.Duration) {
	if l.n == 0 || d < l.min {
		l.min = d
	}
	l.max = max(l.max, d)
	l.sum += d
	l.n++
}

// avg returns the mean in milliseconds.
func (l *latency) avg() float64 {
	if l.n == 0 {
		return 0
	}
	return float64(l.sum) / float64(l.n) / float64(time.Millisecond)
}

// received counts a packet from the client.
func (c *conn) received(op wire.Op, xid int32) {
	c.recved.Add(1)
	if op != wire.OpPing && xid > 0 {
		c.lcxid.Store(xid)
	}
	c.srv.stats.received.Add(1)
}

// sent counts a packet to the client. The caller holds the outbox's mutex.
func (c *conn) sent(f *frame, n int, now time.Duration) {
	c.sentN++
	c.srv.stats.sent.Add(1)
	if !f.request {
		c.srv.stats.eventBytes.Add(int64(n))
		return
	}
	c.lop, c.llat = f.op, now-f.at
	c.lresp = c.srv.clock.wall(now)
	if f.zxid > 0 {
		c.lzxid = f.zxid
	}
	c.latency.add(c.llat)
	c.srv.stats.add(f, c.llat, n)
}

// resetStats resets a connection's figures, for crst.
func (c *conn) resetStats() {
	c.recved.Store(0)
	c.outbox.mu.Lock()
	defer c.outbox.mu.Unlock()
	c.sentN, c.lop, c.lzxid, c.latency, c.llat = 0, 0, 0, latency{}, 0
}

// stats are the server's figures for the four-letter words.
type stats struct {
	received   atomic.Int64
	sent       atomic.Int64
	authFailed atomic.Int64
	tlsFailed  atomic.Int64
	ahead      atomic.Int64                               // clients closed that had seen a later zxid
	ensemble   struct{ success, fail, skip atomic.Int64 } // clients that name their ensemble
	hits       [limitCount]atomic.Int64                   // how often clients have hit each limit

	// For /metrics alone: nothing resets them.
	eventBytes                               atomic.Int64
	connects, rejected, dropped, sessionless atomic.Int64 // connections
	resumed, expired                         atomic.Int64 // sessions
	tooLarge                                 atomic.Int64 // requests
	ttlCreated, ttlDeleted                   atomic.Int64 // nodes

	mu                sync.Mutex // guards the fields below
	latency           latency
	requests, replies int64                        // bytes
	size              struct{ last, min, max int } // of responses in bytes; -1 if there was none
	reads             summary                      // how long requests took, in microseconds
	updates           summary
	loads             summary // how long it took to load the data, in microseconds
	syncs             summary // how long batches waited for the disk, in microseconds
	batches           summary // requests in a batch
	batchWaits        summary // from the begin of a batch until it is given to the disk, in microseconds
	batchesAhead      summary // batches that are not durable when another one is sealed
	queued            summary // requests and other messages that the owner finds in its queue
	watchers          [watcherKinds]summary
}

// How many watchers an event has, by its type.
const (
	watchersCreated = iota
	watchersDeleted
	watchersChanged
	watchersChildren
	watcherKinds
)

// watched counts the watchers of an event.
func (s *stats) watched(t wire.EventType, n int) {
	i := int(t - wire.EventCreated)
	if i < 0 || i >= watcherKinds {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers[i].add(int64(n))
}

// committed counts a batch that is durable, and how long it waited for the disk.
func (s *stats) committed(b *batch, waited time.Duration) {
	requests := b.requests()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches.add(int64(requests))
	s.batchWaits.add(b.began.Sub(b.opened).Microseconds())
	s.batchesAhead.add(int64(b.ahead))
	s.syncs.add(waited.Microseconds())
}

// took counts what the owner has found in its queue.
func (s *stats) took(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queued.add(int64(n))
}

// add counts a reply of n bytes, d after its request.
func (s *stats) add(f *frame, d time.Duration, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latency.add(d)
	s.requests += int64(f.size)
	s.replies += int64(n)
	if f.op.Writes() {
		s.updates.add(d.Microseconds())
	} else {
		s.reads.add(d.Microseconds())
	}
	s.size.last = n
	s.size.max = max(s.size.max, n)
	if s.size.min < 0 || n < s.size.min {
		s.size.min = n
	}
}

// resetStats resets the figures of the server, for srst.
func (s *Server) resetStats() {
	s.stats.reset()
	_ = s.do(func(o *owner) { o.tree.ResetQuotaRefusals() }) // fails only when the server has stopped
}

func (s *stats) reset() {
	s.received.Store(0)
	s.sent.Store(0)
	s.ensemble.success.Store(0)
	s.ensemble.fail.Store(0)
	s.ensemble.skip.Store(0)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latency = latency{}
	s.size.last, s.size.min, s.size.max = -1, -1, -1
}
