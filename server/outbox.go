package server

// Replies and events on their way to a client, and a connection's writer.

import (
	"crypto/tls"
	"errors"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

const (
	keepBuffer = 16 << 10 // larger buffers are not reused; a connection keeps up to two
	bulkSize   = 32 << 10 // larger frames are encoded by the writer
)

// outbox is the writing half of a connection. The owner and the committer append frames and then call flush. Frames
// leave in order, all that are present in one write.
type outbox struct {
	c       *conn
	wake    chan struct{} // tells the writer that it has the turn to write
	room    chan struct{} // tells the reader to check again whether there is room
	backlog atomic.Int64  // bytes of replies and events not written yet, those that wait for the disk included
	raw     syscall.RawConn
	rawTry  func(fd uintptr) bool
	rawBuf  []byte
	rawLen  int
	rawErr  error

	mu      sync.Mutex // guards the fields below; nothing blocks under it
	out     []byte
	bulk    []bulk // comes after out
	spare   []byte
	writing bool // a goroutine has the turn to write
	last    bool // close the connection after out is written
	dead    bool // the connection is closed and nothing more is kept for it
	pending int  // requests read but not answered
	bytes   int  // of pending requests
	full    bool // the reader waits for room
	parked  bool // the owner waits for backlog to shrink
}

// bulk is a large frame and the bytes after it. The writer encodes the frame when everything before it has been
// written. Encoding takes about a millisecond per megabyte, in which the owner would serve no other client; and while a
// client does not read, the replies that it has requested take no memory of their own.
type bulk struct {
	*large
	after []byte
}

// large is a frame that is not encoded yet. Several connections may share it.
type large struct {
	header wire.ReplyHeader
	body   wire.Record // may refer to data and lists of the tree, which replaces but never changes them
	size   int         // estimated
}

// largeFrame returns a reply or event as a large frame, or nil if it is not large.
func largeFrame(h wire.ReplyHeader, body wire.Record) *large {
	if n := wire.ReplySize(h, body); n > bulkSize {
		return &large{h, body, n}
	}
	return nil
}

// end returns the buffer to which to append a small frame. The caller holds o.mu.
func (o *outbox) end() *[]byte {
	if n := len(o.bulk); n > 0 {
		return &o.bulk[n-1].after
	}
	return &o.out
}

func (o *outbox) init(c *conn) {
	o.c = c
	o.wake = make(chan struct{}, 1)
	o.room = make(chan struct{}, 1)
	o.initRaw(c.nc)
}

// admit waits until the client has room for more unanswered requests, and counts the given ones. A request that is
// larger than the limit waits until there is no other. It reports false if the connection has ended.
func (c *conn) admit(items []item) bool {
	o := &c.outbox
	size := 0
	for i := range items {
		size += items[i].size
	}
	o.mu.Lock()
	for o.pending > 0 && (o.pending+len(items) > maxPending || o.bytes+size > maxRequests) {
		o.full = true
		o.mu.Unlock()
		select {
		case <-o.room:
		case <-c.done:
			return false
		}
		o.mu.Lock()
	}
	o.pending += len(items)
	o.bytes += size
	o.mu.Unlock()
	return true
}

// answered notes that the reply to a request of size bytes is in the outbox. The caller holds o.mu.
func (o *outbox) answered(size int) {
	o.pending--
	o.bytes -= size
	if o.full && (o.pending == 0 || o.pending <= maxPending/2 && o.bytes <= maxRequests/2) {
		o.full = false
		signal(o.room)
	}
}

// stalled reports whether the reader waits because the server has not answered requests, and not because the client
// does not read its replies.
func (o *outbox) stalled() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.full && !o.parked
}

// signal puts a token into a channel, unless the channel is full.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// isSmall reports whether there is so little to write that any goroutine may do it. The caller holds o.mu.
func (o *outbox) isSmall() bool { return len(o.bulk) == 0 && len(o.out) <= sendChunk }

// flush writes what was appended: here as far as that takes no waiting, the rest by the writer.
func (o *outbox) flush() {
	o.mu.Lock()
	if o.writing || len(o.out) == 0 && len(o.bulk) == 0 && !o.last {
		o.mu.Unlock()
		return
	}
	o.writing = true
	inline := o.raw != nil && o.isSmall()
	o.mu.Unlock()
	if inline && o.writeNow() {
		return
	}
	signal(o.wake)
}

// next takes bytes to write. If there are none it gives up the turn to write, unless there is work left that only the
// writer does: encoding a large frame, or hanging up.
func (o *outbox) next(written []byte) (buf []byte, more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if cap(written) <= keepBuffer && cap(written) > cap(o.spare) {
		o.spare = written[:0]
	}
	if len(o.out) == 0 {
		o.writing = len(o.bulk) > 0 || o.last // after the last frame nothing is written any more
		return nil, o.writing
	}
	buf, o.out, o.spare = o.out, o.spare, nil
	return buf, false
}

// nextLarge takes the next large frame once everything before it has been written. It returns nil if there is none.
func (o *outbox) nextLarge() (f *large) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.bulk) > 0 {
		f, o.out = o.bulk[0].large, o.bulk[0].after
		o.bulk[0] = bulk{}
		o.bulk = o.bulk[1:]
	}
	return f
}

// write is the writer goroutine: it writes what flush could not, until the connection ends.
func (c *conn) write() {
	defer c.kill()
	for {
		select {
		case <-c.wake:
		case <-c.done:
			return
		}
		var buf []byte
		var more bool
		for {
			if buf, more = c.next(buf); buf == nil {
				if !more {
					break
				}
				f := c.nextLarge()
				if f == nil {
					c.hangUp()
					return
				}
				buf = wire.AppendReply(nil, f.header, f.body)
				c.backlog.Add(int64(len(buf) - f.size))
			}
			if c.writeAll(buf) != nil {
				return
			}
		}
	}
}

// writeAll writes in pieces, each of which must be sent within Limits.SendTime.
func (c *conn) writeAll(buf []byte) error {
	for len(buf) > 0 {
		n := min(len(buf), sendChunk)
		if err := c.nc.SetWriteDeadline(time.Now().Add(c.srv.cfg.Limits.SendTime)); err != nil {
			return err
		}
		if _, err := c.nc.Write(buf[:n]); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				c.srv.hit(limitSendTime, c.remote)
			}
			return err
		}
		c.wrote(n)
		if buf = buf[n:]; len(buf) > 0 {
			runtime.Gosched() // goroutines with small frames go first
		}
	}
	return c.nc.SetWriteDeadline(time.Time{}) // the next write may be flush's, which must not see an old deadline
}

// wrote subtracts n written bytes from backlog, and tells the owner if it waits for that.
func (o *outbox) wrote(n int) {
	if o.backlog.Add(-int64(n)) > softBacklog/2 {
		return
	}
	o.mu.Lock()
	parked := o.parked
	o.parked = false
	o.mu.Unlock()
	if parked {
		o.c.srv.queue.push(item{kind: itemResume, conn: o.c})
	}
}

// hangUp ends the connection so that the peer can still read the last reply. Closing a socket with unread input may
// drop sent data that the peer has not read, so the peer gets some time to close first.
func (c *conn) hangUp() {
	half, ok := c.nc.(interface{ CloseWrite() error })
	_, secure := c.nc.(*tls.Conn)
	if _, plain := c.nc.(syscall.Conn); !ok || !plain && !secure {
		return
	}
	c.srv.linger(c)
	if half.CloseWrite() != nil || c.nc.SetReadDeadline(time.Now().Add(maxLinger)) != nil {
		return
	}
	late := time.NewTimer(maxLinger) // the reader may not be reading, and so may not see the deadline
	defer late.Stop()
	select {
	case <-c.done:
	case <-late.C:
	}
}

// park requests an itemResume for when the client has caught up. It reports false if the client has already.
func (o *outbox) park() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.backlog.Load() <= softBacklog/2 {
		return false
	}
	o.parked = true
	return true
}

// put appends a frame's bytes, which backlog includes already.
func (o *outbox) put(f *frame, b []byte, now time.Duration) {
	o.mu.Lock()
	n := len(b)
	switch {
	case f.large != nil:
		n = f.large.size
		if !o.dead {
			o.bulk = append(o.bulk, bulk{large: f.large})
		}
	case !o.dead:
		end := o.end()
		*end = append(*end, b...)
	}
	o.finish(f, n, now)
	o.mu.Unlock()
}

// putReply appends a reply directly to the outbox and returns its size.
func (o *outbox) putReply(f *frame, h wire.ReplyHeader, body wire.Record, now time.Duration) int {
	if f.large = largeFrame(h, body); f.large != nil {
		o.backlog.Add(int64(f.large.size))
		o.put(f, nil, now)
		return f.large.size
	}
	o.mu.Lock()
	n := 0
	if !o.dead {
		end := o.end()
		before := len(*end)
		*end = wire.AppendReply(*end, h, body)
		n = len(*end) - before
	}
	o.backlog.Add(int64(n))
	o.finish(f, n, now)
	o.mu.Unlock()
	return n
}

// discard drops what is not written, and everything appended later.
func (o *outbox) discard() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dead, o.out, o.bulk, o.spare = true, nil, nil, nil
}

// finish updates the counters after a frame was appended. The caller holds o.mu.
func (o *outbox) finish(f *frame, n int, now time.Duration) {
	if f.request {
		if s := o.c.sess.Load(); s != nil && o.full { // before answered changes full, see stalled
			s.touch(now)
		}
		o.answered(f.size)
	}
	if f.last {
		o.last = true
	}
	o.c.sent(f, n, now)
}
