package server

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

const (
	keepBuffer = 16 << 10 // larger buffers are not kept for reuse: a connection may have two
	bulkSize   = 32 << 10 // larger frames are encoded by the writer
)

// outbox is the writing half of a connection: frames are appended by the owner and by the committer, and leave in order,
// as many as there are in one write. Whoever appends calls flush afterwards.
type outbox struct {
	c       *conn
	wake    chan struct{} // to the writer: the turn to write is yours
	room    chan struct{} // to the reader: look again whether there is room
	backlog atomic.Int64  // bytes of replies and events made but not written, those that wait for the disk included
	raw     syscall.RawConn
	rawTry  func(fd uintptr) bool
	rawBuf  []byte
	rawLen  int
	rawErr  error

	mu      sync.Mutex // guards the fields below; nothing blocks under it
	out     []byte
	bulk    []bulk // what comes after out
	spare   []byte
	writing bool // somebody has the turn to write
	last    bool // close after what is in out
	dead    bool // the connection is closed: nothing is kept for it any more
	pending int  // requests read and not answered
	bytes   int  // of those
	full    bool // the reader waits for room
	parked  bool // the owner waits for the backlog to shrink
}

// bulk is a large reply or event, and what comes behind it. The writer encodes it when all before it has been written:
// for a few megabytes that takes as many milliseconds, in which the owner would serve nobody, and for as long as a client
// does not read, what it has asked for takes no memory of its own.
type bulk struct {
	*large
	behind []byte
}

// large is a frame that is not encoded yet. It may be for many connections.
type large struct {
	header wire.ReplyHeader
	body   wire.Record // refers to the tree, where data and lists are only replaced
	size   int         // about
}

// largeFrame returns the frame of a reply or an event if that is large, and nil if not.
func largeFrame(h wire.ReplyHeader, body wire.Record) *large {
	if n := wire.ReplySize(h, body); n > bulkSize {
		return &large{h, body, n}
	}
	return nil
}

// end returns where to append what is small. The caller holds o.mu.
func (o *outbox) end() *[]byte {
	if n := len(o.bulk); n > 0 {
		return &o.bulk[n-1].behind
	}
	return &o.out
}

func (o *outbox) init(c *conn) {
	o.c = c
	o.wake = make(chan struct{}, 1)
	o.room = make(chan struct{}, 1)
	o.initRaw(c.nc)
}

// admit waits until the client has not too many requests unanswered, and counts those that were read. One that is larger than all may be
// together waits until there is none beside it. It reports false when the connection has ended.
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

// answered counts a request of size bytes that has its reply in the outbox. The caller holds o.mu.
func (o *outbox) answered(size int) {
	o.pending--
	o.bytes -= size
	if o.full && (o.pending == 0 || o.pending <= maxPending/2 && o.bytes <= maxRequests/2) {
		o.full = false
		token(o.room)
	}
}

// stalled reports whether nobody reads what the client sends because of requests that the server has not answered, and
// not because the client leaves its replies unread.
func (o *outbox) stalled() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.full && !o.parked
}

// token puts a token into a channel, unless that is full.
func token(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// isSmall reports whether what there is to write is so little that whoever has made it may write it. The caller holds o.mu.
func (o *outbox) isSmall() bool { return len(o.bulk) == 0 && len(o.out) <= sendChunk }

// flush sees to it that what was appended is written: here, if it can be done without waiting, or by the writer.
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
	token(o.wake)
}

// next takes bytes to write. If there are none it gives the turn to write back, unless there is more to do that only the
// writer does: to encode a large frame, or to hang up.
func (o *outbox) next(written []byte) (buf []byte, more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if cap(written) <= keepBuffer && cap(written) > cap(o.spare) {
		o.spare = written[:0]
	}
	if len(o.out) == 0 {
		o.writing = len(o.bulk) > 0 || o.last // after the last frame nobody writes again
		return nil, o.writing
	}
	buf, o.out, o.spare = o.out, o.spare, nil
	return buf, false
}

// nextLarge takes a large frame to encode when all before it has been written, or nil if there is none.
func (o *outbox) nextLarge() (f *large) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.bulk) > 0 {
		f, o.out = o.bulk[0].large, o.bulk[0].behind
		o.bulk[0] = bulk{}
		o.bulk = o.bulk[1:]
	}
	return f
}

// write writes what flush could not, until the connection ends.
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

// writeAll writes in pieces, each of which the client has to take in time.
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
			runtime.Gosched() // what is small goes first
		}
	}
	return c.nc.SetWriteDeadline(time.Time{}) // flush is next, and waits for nobody
}

// wrote counts bytes that have left, and tells the owner if it waits for that.
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

// hangUp closes the connection so that the peer still reads the last reply: the sockets of an operating system drop what
// they have sent when they are closed with something unread, so the peer gets a while to close first.
func (c *conn) hangUp() {
	half, ok := c.nc.(interface{ CloseWrite() error })
	_, secure := c.nc.(*tls.Conn)
	if _, plain := c.nc.(syscall.Conn); !ok || !plain && !secure {
		return
	}
	c.srv.discount(c)
	if half.CloseWrite() != nil || c.nc.SetReadDeadline(time.Now().Add(maxLinger)) != nil {
		return
	}
	late := time.NewTimer(maxLinger) // the reader may wait for something else than the client
	defer late.Stop()
	select {
	case <-c.done:
	case <-late.C:
	}
}

// park asks for an itemResume when the client has caught up. It reports false if it has already.
func (o *outbox) park() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.backlog.Load() <= softBacklog/2 {
		return false
	}
	o.parked = true
	return true
}

// put appends a frame's bytes for which backlog has been counted already.
func (o *outbox) put(f *frame, b []byte, now time.Duration) {
	o.mu.Lock()
	n := len(b)
	switch {
	case f.large != nil:
		n = f.large.size
		o.append(f.large)
	case !o.dead:
		end := o.end()
		*end = append(*end, b...)
	}
	o.finish(f, n, now)
	o.mu.Unlock()
}

// append appends a frame that is encoded later. The caller holds o.mu.
func (o *outbox) append(f *large) {
	if !o.dead {
		o.bulk = append(o.bulk, bulk{large: f})
	}
}

// putReply puts a reply right into the outbox, and returns its size.
func (o *outbox) putReply(f *frame, h wire.ReplyHeader, body wire.Record, now time.Duration) int {
	late := largeFrame(h, body)
	o.mu.Lock()
	n := 0
	switch {
	case o.dead:
	case late != nil:
		n = late.size
		o.append(late)
	default:
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

// discard drops what is not written, for good.
func (o *outbox) discard() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dead, o.out, o.bulk, o.spare = true, nil, nil, nil
}

// finish does the accounts of a frame that has been appended. The caller holds o.mu.
func (o *outbox) finish(f *frame, n int, now time.Duration) {
	if f.request {
		if s := o.c.sess.Load(); s != nil && o.full { // before full may change, see stalled
			s.touch(now)
		}
		o.answered(f.size)
	}
	if f.last {
		o.last = true
	}
	o.c.sent(f, n, now)
}

// rawConn returns nc's raw form if its writes can be tried without waiting.
func rawConn(nc net.Conn) syscall.RawConn {
	switch nc := nc.(type) {
	case *net.TCPConn:
		raw, _ := nc.SyscallConn()
		return raw
	case *net.UnixConn:
		raw, _ := nc.SyscallConn()
		return raw
	}
	return nil
}
