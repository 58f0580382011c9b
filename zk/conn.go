package zk

// One connection: its reader and its writer.

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/jute"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

const (
	// A write of at most loneBytes with fewer than loneCalls unanswered before it is done by the caller itself, or by the reader if it was to
	// go with an event: it fits into the kernel's buffer and does not block, unless what is unanswered is large and still fills it.
	// Everything else goes through the writer, which collects what comes together.
	loneCalls = 3
	loneBytes = 8 << 10

	readBuffer = 32 << 10
	keepBuffer = 1 << 20 // larger write buffers are not kept
)

// A conn is one connection of a session. Its reader and its writer are its only goroutines.
type conn struct {
	sess   *Session
	server server
	nc     net.Conn
	prompt io.ReadWriter // nc, for the reader and for small writes
	raw    net.Conn      // beneath TLS
	br     *bufio.Reader
	direct bool // callers may write themselves

	timeout  time.Duration // negotiated
	started  time.Time     // when the handshake's first byte was sent
	fresh    bool          // the handshake has made the session, by a write
	readOnly bool
	auths    int    // how many credentials the handshake has sent
	prefix   []byte // what the writer sends first

	kicked chan struct{} // one token: there is something to write
	dead   chan struct{} // closed when the connection has failed
	fail1  sync.Once
	err    error // why; readable once dead is closed
	wg     sync.WaitGroup

	// Guarded by sess.mu.
	writing    bool        // somebody writes or was told to
	extra      []byte      // frames that belong to this connection alone
	pingDue    bool        // a ping goes with the next write
	pings      []time.Time // when those were sent that have no answer yet
	lastSent   time.Time
	lastReply  time.Time
	setWatches int    // packets of restored watches without an answer
	goodbye    int32  // the number of the request that closes the session; 0 before it is sent
	proof      *proof // on its way; nil if there is none

	// The reader's.
	dec jute.Decoder
	buf []byte
}

// fail ends the connection, once.
func (n *conn) fail(err error) {
	n.fail1.Do(func() {
		n.err = err
		close(n.dead)
		_ = n.raw.Close() // beneath TLS, whose own Close may wait for a peer that does not read
	})
}

// failed reports whether the connection has failed: what is queued from then on waits for the next one.
func (n *conn) failed() bool {
	select {
	case <-n.dead:
		return true
	default:
		return false
	}
}

// kick tells the writer that there is something to write. It never blocks.
func (n *conn) kick() {
	select {
	case n.kicked <- struct{}{}:
	default:
	}
}

// start begins to read and to write.
func (n *conn) start() {
	n.wg.Go(func() { n.fail(n.read()) })
	n.wg.Go(n.write)
	if n.readOnly {
		n.wg.Go(n.seek)
	}
	n.kick()
}

// flush sees to it that what is queued gets written. It is called with s.mu held and releases it. inline allows it to write on
// the caller's goroutine.
func (s *Session) flush(inline bool) {
	n := s.conn
	if n == nil || n.writing || !s.hasOutput(n) || n.failed() {
		s.mu.Unlock()
		return
	}
	n.writing = true
	if !inline || !n.direct || s.calls.len()-s.unsent >= loneCalls || len(s.out) > loneBytes {
		s.mu.Unlock()
		n.kick()
		return
	}
	buf, ok := s.takeOutput(n)
	s.mu.Unlock()
	if !ok {
		s.end(ErrLost)
		return
	}
	_, err := n.prompt.Write(buf)
	s.mu.Lock()
	s.keep(buf)
	more := s.conn == n && s.hasOutput(n)
	n.writing = more
	s.mu.Unlock()
	switch {
	case err != nil:
		n.fail(err)
	case more:
		n.kick()
	}
}

func (s *Session) hasOutput(n *conn) bool { return len(s.out) > 0 || n.pingDue || len(n.extra) > 0 }

// takeOutput takes all that waits to be written. It refuses when the session's deadline has passed: a process that was stopped for
// a while must not go on with what it was about to do. The caller holds s.mu, and has set n.writing.
func (s *Session) takeOutput(n *conn) ([]byte, bool) {
	now := s.now()
	if !now.Before(s.deadline()) {
		return nil, false
	}
	s.sweep()
	buf := s.out
	s.out, s.spare = s.spare[:0], nil
	for i := s.calls.len() - s.unsent; i < s.calls.len(); i++ {
		c := s.calls.at(i)
		c.sent, c.waits = now, false
	}
	s.unsent = 0
	buf = append(buf, n.extra...)
	n.extra = nil
	if n.pingDue {
		n.pingDue = false
		n.pings = append(n.pings, now)
		buf = wire.AppendRequest(buf, wire.XidPing, wire.OpPing, nil)
	}
	n.lastSent = now
	return buf, true
}

func (s *Session) keep(buf []byte) {
	if cap(buf) <= keepBuffer {
		s.spare = buf[:0]
	}
}

// write is the writer: it sends what callers leave to it, as much at once as there is.
func (n *conn) write() {
	s := n.sess
	if len(n.prefix) > 0 {
		if _, err := n.nc.Write(n.prefix); err != nil {
			n.fail(err)
			return
		}
		n.prefix = nil
	}
	for {
		select {
		case <-n.kicked:
		case <-n.dead:
			return
		}
		for {
			runtime.Gosched() // lets those callers queue who are about to
			s.mu.Lock()
			if s.conn != n || !s.hasOutput(n) || n.failed() {
				n.writing = false
				s.mu.Unlock()
				break
			}
			buf, ok := s.takeOutput(n)
			s.mu.Unlock()
			if !ok {
				s.end(ErrLost)
				break
			}
			if _, err := n.nc.Write(buf); err != nil {
				n.fail(err)
				return
			}
			s.mu.Lock()
			s.keep(buf)
			s.mu.Unlock()
		}
	}
}

// read is the reader: it handles what comes until the connection fails, and returns why.
func (n *conn) read() error {
	for {
		frame, err := n.frame()
		if err != nil {
			return err
		}
		if err := n.handle(frame); err != nil {
			return err
		}
	}
}

// frame returns the next frame. It is valid until the next call.
func (n *conn) frame() ([]byte, error) {
	head, err := n.br.Peek(4)
	if err != nil {
		return nil, err
	}
	size, limit := int(int32(binary.BigEndian.Uint32(head))), n.sess.client.cfg.MaxFrame
	if size < 0 || size > limit {
		err := fmt.Errorf("%w: a frame of %d bytes, the limit is %d (Config.MaxFrame)", ErrProtocol, size, limit)
		if size > limit {
			n.tooLarge(size, err)
		}
		return nil, err
	}
	if _, err := n.br.Discard(4); err != nil {
		return nil, err
	}
	if size <= n.br.Size() {
		frame, err := n.br.Peek(size)
		if err != nil {
			return nil, err
		}
		_, err = n.br.Discard(size) // the bytes stay where they are until the next read
		return frame, err
	}
	buf, err := wire.ReadBody(n.br, size, n.buf)
	if cap(buf) <= keepBuffer {
		n.buf = buf
	}
	return buf, err
}

// tooLarge tells the call that the next frame answers how large that is, and ends the connection with err. Who repeats the call would get
// the same answer again, so it must not look like one whose connection was lost.
func (n *conn) tooLarge(size int, err error) {
	const header = 4 + bareReply // the frame's length, and the reply's header
	head, short := n.br.Peek(header)
	if short != nil {
		return
	}
	n.dec.Reset(head[4:])
	var h wire.ReplyHeader
	h.Decode(&n.dec)
	if c, _ := n.due(h); c != nil {
		n.fail(err) // first, so that what the caller sends next waits for another connection
		c.err, c.outcome = fmt.Errorf("%w: %d bytes, the limit is %d", ErrAnswerTooLarge, size, n.sess.client.cfg.MaxFrame), Unknown
		n.sess.deliver(c)
	}
}

// handle deals with one frame. An error ends the connection.
func (n *conn) handle(frame []byte) error {
	d := &n.dec
	d.Reset(frame)
	var h wire.ReplyHeader
	h.Decode(d)
	if d.Err() != nil {
		return fmt.Errorf("%w: reply header: %w", ErrProtocol, d.Err())
	}
	if h.Xid < 0 && h.Err == wire.SessionClosedRequireAuth { // whatever that answers: it hangs up now, and would again
		return n.authReply(h)
	}
	switch h.Xid {
	case wire.XidNotification:
		return n.notification(h, d)
	case wire.XidPing:
		return n.pong()
	case wire.XidAuth:
		return n.authReply(h)
	case wire.XidSetWatches:
		return n.watchesRestored(h)
	default:
		return n.reply(h, d)
	}
}

func (n *conn) notification(h wire.ReplyHeader, d *jute.Decoder) error {
	var e wire.Event
	e.Decode(d)
	if d.Err() != nil {
		return fmt.Errorf("%w: watch event: %w", ErrProtocol, d.Err())
	}
	s := n.sess
	s.mu.Lock()
	s.watches.fire(e, h.Zxid)
	s.tidy(e.Path)
	s.flush(true) // what waits for this event (SendOn) need not wait for the writer
	return nil
}

// pong books the answer of the oldest ping without one.
func (n *conn) pong() error {
	s := n.sess
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(n.pings) == 0 {
		return fmt.Errorf("%w: the answer of a ping that was not sent", ErrProtocol)
	}
	s.answered(n, n.pings[0])
	n.pings = append(n.pings[:0], n.pings[1:]...)
	return nil
}

func (n *conn) authReply(h wire.ReplyHeader) error {
	s := n.sess
	if h.Err != wire.OK {
		err := fmt.Errorf("%w: %w", ErrAuthFailed, Code(h.Err))
		s.end(err)
		return err
	}
	s.mu.Lock()
	var c *call
	if len(s.auths) > 0 {
		c = s.auths[0]
		s.auths = append(s.auths[:0], s.auths[1:]...)
	}
	n.lastReply = s.now()
	s.mu.Unlock()
	if c != nil && !c.finish() {
		c.free()
	}
	return nil
}

func (n *conn) watchesRestored(h wire.ReplyHeader) error {
	s := n.sess
	s.mu.Lock()
	var err error
	switch {
	case n.setWatches == 0:
		err = fmt.Errorf("%w: the answer of watches that were not set", ErrProtocol)
	case h.Err != wire.OK:
		err = fmt.Errorf("zk: the server does not restore watches: %v", h.Err)
	default:
		s.answered(n, n.started)
		// The answer's zxid does not count as seen before all packets are answered: after another reconnect it would hide changes
		// from the watches in the packets that were not.
		if n.setWatches--; n.setWatches == 0 {
			s.watches.resynced()
		}
	}
	s.flush(false)
	return err
}

// reply gives the oldest unanswered call its answer.
func (n *conn) reply(h wire.ReplyHeader, d *jute.Decoder) error {
	c, err := n.due(h)
	if c == nil {
		return err
	}
	s := n.sess
	var bad error
	c.zxid = h.Zxid
	if c.code = h.Err; c.code == wire.OK {
		if c.decode(d); d.Err() != nil {
			bad = fmt.Errorf("%w: answer of %v: %w", ErrProtocol, c.op, d.Err())
			c.err, c.outcome = bad, Unknown
			n.fail(bad) // first, so that what the caller sends next waits for another connection
		}
	}
	switch c.code {
	case wire.SessionExpired:
		bad = ErrExpired
		s.end(bad) // first, so that the caller finds the session ended
	case wire.SessionClosedRequireAuth:
		bad = n.authReply(h) // which ends it, too
		c.err, c.outcome = bad, Refused
	case wire.SessionMoved:
		bad = errors.New("zk: the session has moved to another server")
	}
	s.deliver(c)
	return bad
}

// due takes the oldest unanswered call, the one that a frame with header h answers. There is none if the session has ended.
func (n *conn) due(h wire.ReplyHeader) (*call, error) {
	s := n.sess
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != n { // all calls have failed, and nothing but the end of the session is to be answered
		if n.goodbye == 0 || h.Xid != n.goodbye {
			return nil, nil
		}
		if h.Err == wire.OK || h.Err == wire.SessionExpired {
			return nil, errGone
		}
		return nil, fmt.Errorf("zk: the server does not close the session: %w", Code(h.Err))
	}
	if s.calls.len() == s.unsent || n.setWatches > 0 || s.calls.at(0).xid != h.Xid {
		return nil, fmt.Errorf("%w: answer %d is not the one that is due", ErrProtocol, h.Xid)
	}
	c := s.calls.pop()
	s.noteDrained()
	s.lastZxid = max(s.lastZxid, h.Zxid)
	s.answered(n, c.sent)
	if h.Err == wire.OK && (c.op.Writes() || c.op == wire.OpSync) {
		s.travelled(n, c)
	}
	return c, nil
}

// deliver hands an answered call to its caller. What nobody waits for any more leaves no watch behind.
func (s *Session) deliver(c *call) {
	switch {
	case c.watch != nil:
		s.deliverWatch(c)
	case c.proof != nil:
		s.proved(c)
	case c.quiet:
		s.housekept(c)
	case !c.finish():
		c.free()
	}
}
