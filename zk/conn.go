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
	// The caller itself writes at most inlineBytes behind fewer than inlineCalls pending calls, as does the reader for
	// requests that were to follow an event. Such a write fits into the kernel's buffer and does not block, unless
	// large pending requests still fill that. The writer goroutine writes everything else, and so combines writes under
	// load.
	inlineCalls = 3
	inlineBytes = 8 << 10

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

	timeout  time.Duration // of the session
	started  time.Time     // when the handshake's first byte was sent
	fresh    bool          // the handshake created the session, by a write
	readOnly bool
	auths    int           // the number of credentials that the handshake sent
	restore  [][]byte      // packets of watches, which the writer sends first
	slots    chan struct{} // full if maxRestoring of them have no reply

	kicked chan struct{} // one slot: full if there is something to write
	dead   chan struct{} // closed when the connection has failed
	fail1  sync.Once
	err    error // why it failed; set before dead is closed
	wg     sync.WaitGroup

	// Guarded by sess.mu.
	writing    bool        // a goroutine writes, or the writer was told to
	leaving    bool        // nothing is written any more
	extra      []byte      // frames for this connection only
	pingDue    bool        // the next write includes a ping
	pings      []time.Time // when the pending pings were sent
	restoring  []time.Time // when the pending packets of restored watches were sent
	lastSent   time.Time
	lastReply  time.Time
	setWatches int    // pending packets of restored watches
	closeXid   int32  // of the request that closes the session; 0 before it is sent
	proof      *proof // the pending proof, or nil
	dated      bool   // the server tells the transactions of events, as servers do since 3.9

	// Used by the reader only.
	dec jute.Decoder
	buf []byte
}

// fail ends the connection, once.
func (n *conn) fail(err error) {
	n.fail1.Do(func() {
		n.err = err
		close(n.dead)
		_ = n.raw.Close() // beneath TLS, whose Close may wait for a peer that does not read
	})
}

// failed reports whether the connection has failed. Requests then wait for the next one.
func (n *conn) failed() bool {
	select {
	case <-n.dead:
		return true
	default:
		return false
	}
}

// kick wakes the writer. It never blocks.
func (n *conn) kick() {
	select {
	case n.kicked <- struct{}{}:
	default:
	}
}

// start starts the reader and the writer.
func (n *conn) start() {
	n.wg.Go(func() { n.fail(n.read()) })
	n.wg.Go(n.write)
	if n.readOnly {
		n.wg.Go(n.seek)
	}
	n.kick()
}

// flush writes the queued requests, or has the writer write them. If inline is set it may write on the caller's
// goroutine. The caller holds s.mu, and flush releases it.
func (s *Session) flush(inline bool) {
	n := s.conn
	if n == nil || n.writing || n.leaving || !s.hasOutput(n) || n.failed() {
		s.mu.Unlock()
		return
	}
	n.writing = true
	if !inline || !n.direct || s.calls.len()-s.unsent >= inlineCalls || len(s.out) > inlineBytes {
		s.mu.Unlock()
		n.kick()
		return
	}
	buf, ok := s.takeOutput(n)
	s.mu.Unlock()
	if !ok {
		s.end(errSilent)
		return
	}
	_, err := n.prompt.Write(buf)
	s.mu.Lock()
	s.keep(buf)
	more := s.conn == n && !n.leaving && s.hasOutput(n)
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

// takeOutput returns the frames to write. It returns false if the session's deadline has passed, so that after a pause
// the process does not send what it was about to send. The caller holds s.mu, and has set n.writing.
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

// write is the writer goroutine: it sends all queued frames at once, again and again.
func (n *conn) write() {
	s := n.sess
	for _, packet := range n.restore {
		select {
		case n.slots <- struct{}{}:
		case <-n.dead:
			return
		}
		s.mu.Lock()
		n.restoring = append(n.restoring, s.now())
		s.mu.Unlock()
		if _, err := n.nc.Write(packet); err != nil {
			n.fail(err)
			return
		}
	}
	n.restore = nil
	for {
		select {
		case <-n.kicked:
		case <-n.dead:
			return
		}
		for {
			runtime.Gosched() // lets callers that are about to queue requests do so
			s.mu.Lock()
			if s.conn != n || n.leaving || !s.hasOutput(n) || n.failed() {
				n.writing = false
				s.mu.Unlock()
				break
			}
			buf, ok := s.takeOutput(n)
			s.mu.Unlock()
			if !ok {
				s.end(errSilent)
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

// read is the reader goroutine: it handles frames until the connection fails, and returns why.
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

// frame returns the next frame, which is valid until the next call.
func (n *conn) frame() ([]byte, error) {
	head, err := n.br.Peek(4)
	if err != nil {
		return nil, err
	}
	size, limit := int(int32(binary.BigEndian.Uint32(head))), n.sess.client.cfg.MaxFrame
	if size < 0 {
		return nil, fmt.Errorf("%w: frame of %d bytes", ErrProtocol, size)
	}
	if size > limit {
		err := fmt.Errorf("%w: %d bytes, limit %d", errFrame, size, limit)
		n.tooLarge(size, err)
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

// tooLarge fails the call that the next frame answers with ErrReplyTooLarge, and ends the connection with err. The call
// must not fail with ErrConnectionLost, because repeating it would yield the same reply.
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
		n.fail(err) // first, so that the caller's next request waits for another connection
		c.err = fmt.Errorf("%w: %d bytes, limit %d", ErrReplyTooLarge, size, n.sess.client.cfg.MaxFrame)
		if c.outcome = Unknown; !c.op.Writes() {
			c.outcome = Refused // whatever the reply is, nothing was changed
		}
		n.sess.deliver(c)
	}
}

// handle processes one frame. An error ends the connection.
func (n *conn) handle(frame []byte) error {
	d := &n.dec
	d.Reset(frame)
	var h wire.ReplyHeader
	h.Decode(d)
	if d.Err() != nil {
		return fmt.Errorf("%w: invalid reply header: %w", ErrProtocol, d.Err())
	}
	if h.Xid < 0 && h.Err == wire.SessionClosedRequireAuth { // the server closes the connection, and would do so again
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
		return fmt.Errorf("%w: invalid watch event: %w", ErrProtocol, d.Err())
	}
	s := n.sess
	s.mu.Lock()
	n.dated = n.dated || h.Zxid > 0
	s.watches.fire(e, h.Zxid)
	s.tidy(e.Path)
	s.flush(true) // requests that wait for this event (SendOn) need not wait for the writer
	return nil
}

// pong handles the reply to the oldest pending ping.
func (n *conn) pong() error {
	s := n.sess
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(n.pings) == 0 {
		return fmt.Errorf("%w: reply to a ping that was not sent", ErrProtocol)
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
	case len(n.restoring) == 0:
		err = fmt.Errorf("%w: reply to setWatches that was not sent", ErrProtocol)
	case h.Err != wire.OK:
		err = fmt.Errorf("zk: the server refused to restore watches: %v", h.Err)
	default:
		s.answered(n, n.restoring[0])
		n.restoring = n.restoring[1:]
		<-n.slots
		// lastZxid ignores this reply's zxid. After another reconnect it would hide changes from the watches in packets
		// that were not answered.
		if n.setWatches--; n.setWatches == 0 {
			s.watches.resynced()
		}
	}
	s.flush(false)
	return err
}

// reply delivers the reply to the oldest pending call.
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
			bad = fmt.Errorf("%w: invalid reply to %v: %w", ErrProtocol, c.op, d.Err())
			c.err, c.outcome = bad, Unknown
			n.fail(bad) // first, so that the caller's next request waits for another connection
		}
	}
	switch c.code {
	case wire.SessionExpired:
		bad = ErrExpired
		s.end(bad) // first, so that the caller finds the session ended
	case wire.SessionClosedRequireAuth:
		bad = n.authReply(h) // ends the session
		c.err, c.outcome = bad, Refused
	case wire.SessionMoved:
		bad = errors.New("the session moved to another server")
	}
	if c.quiet && c.op == wire.OpAddWatch && c.code != wire.OK { // the next connection restores the watch
		bad = fmt.Errorf("zk: the server refused to set a watch again: %w", Code(c.code))
	}
	s.deliver(c)
	return bad
}

// due removes and returns the call that a frame with header h answers, which is the oldest pending one. It returns nil
// and why the connection ends, if it does, when the session has ended.
func (n *conn) due(h wire.ReplyHeader) (*call, error) {
	s := n.sess
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != n { // all calls have failed, and only the request that closes the session is pending
		if n.closeXid == 0 || h.Xid != n.closeXid {
			return nil, nil
		}
		if h.Err == wire.OK || h.Err == wire.SessionExpired {
			return nil, errGone
		}
		return nil, fmt.Errorf("zk: the server refused to close the session: %w", Code(h.Err))
	}
	if s.calls.len() == s.unsent {
		return nil, fmt.Errorf("%w: unexpected reply xid %d, no request is pending", ErrProtocol, h.Xid)
	}
	if n.setWatches > 0 {
		return nil, fmt.Errorf("%w: unexpected reply xid %d before the reply to setWatches", ErrProtocol, h.Xid)
	}
	if want := s.calls.at(0).xid; h.Xid != want {
		return nil, fmt.Errorf("%w: unexpected reply xid %d, want %d", ErrProtocol, h.Xid, want)
	}
	c := s.calls.pop()
	if s.client.suspect.Load() == int32(c.op) {
		s.client.suspect.Store(0)
	}
	s.noteDrained()
	s.lastZxid = max(s.lastZxid, h.Zxid)
	s.answered(n, c.sent)
	if h.Err == wire.OK && (c.op.Writes() || c.op == wire.OpSync) {
		s.travelled(n, c)
	}
	return c, nil
}

// deliver hands an answered call to its caller. If the caller has left, it frees the call and removes its watch.
func (s *Session) deliver(c *call) {
	switch {
	case c.watch != nil:
		s.deliverWatch(c)
	case c.proof != nil:
		s.proved(c)
	case c.quiet && c.op == wire.OpRemoveWatches:
		s.removed(c)
	case c.quiet:
		c.free()
	case !c.finish():
		c.free()
	}
}
