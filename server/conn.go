package server

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-a3166700/turnstile/internal/jute"
	"github.com/seed-a3166700/turnstile/internal/tree"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

const (
	readBuffer = 8 << 10 // of every connection
	readBatch  = 64      // requests that a reader gives to the owner at once, at most
)

// conn is one client's connection. A reader goroutine decodes its frames and gives them to the owner; a writer goroutine
// writes what outbox collects. Only the owner's goroutine touches the fields in the middle.
type conn struct {
	srv    *Server
	id     tree.WatcherID
	nc     net.Conn
	remote string // for people
	ip     string // the identity
	secure bool
	since  time.Time

	counted bool // against the limits, and told of; guarded by the server's mutex

	sess atomic.Pointer[session] // set by the owner once the handshake is done
	done chan struct{}           // closed by kill

	coming atomic.Int64  // bytes of large requests that are being read, or that wait for room
	taken  chan struct{} // has a token for each batch that the reader may give, as the owner has taken one before
	once   sync.Once

	state  connState
	caller tree.Caller
	held   uint64 // the last batch with a reply of this connection
	parked []item // requests that wait until the client has read its replies
	sasl   *saslServer
	loud   bool // is in the owner's list of connections to flush

	outbox
	counters
}

// connState is where a connection stands, as the owner knows it.
type connState uint8

const (
	connNew     connState = iota // before the handshake
	connOpen                     // has a session
	connClosing                  // its last reply is made; whatever it still sends is dropped
)

func newConn(s *Server, nc net.Conn, id uint64, secure bool) *conn {
	c := &conn{
		srv: s, nc: nc, id: tree.WatcherID(id), secure: secure, since: time.Now(),
		remote: remoteName(nc), ip: remoteIP(nc), done: make(chan struct{}),
		taken: make(chan struct{}, maxGiven),
	}
	for range maxGiven {
		token(c.taken)
	}
	c.caller = tree.Caller{Watcher: c.id, IDs: []wire.ID{{Scheme: "ip", ID: c.ip}}}
	c.outbox.init(c)
	return c
}

// kill closes the connection at once. What was not written yet is lost.
func (c *conn) kill() {
	c.once.Do(func() {
		c.srv.remove(c)
		close(c.done)
		if c.backlog.Load() < bulkSize {
			closeNow(c.nc)
		} else {
			c.srv.wg.Go(func() { closeNow(c.nc) }) // a full socket takes a millisecond, and the owner kills many at once
		}
		c.discard()
	})
}

// ended reports whether the connection is closed.
func (c *conn) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// closeNow closes a connection without waiting for its client. The end of TLS would be announced first, for seconds if the client does not read.
func closeNow(nc net.Conn) {
	if secure, ok := nc.(*tls.Conn); ok {
		nc = secure.NetConn()
	}
	_ = nc.Close()
}

// read decodes frames until the connection ends. It is the only reader of the connection.
func (c *conn) read() {
	defer c.srv.gone(c)
	defer c.kill()
	_ = c.nc.SetReadDeadline(time.Now().Add(c.srv.cfg.HandshakeTimeout))
	if !c.handshakeTLS() {
		return
	}
	r := bufio.NewReaderSize(c.nc, readBuffer)
	if word, ok := c.peekWord(r); ok {
		c.srv.answerWord(c, r, word)
		return
	}
	if !c.readConnect(r) {
		return
	}
	_ = c.nc.SetReadDeadline(time.Time{})
	items := make([]item, 0, readBatch)
	for {
		it, ok := c.readRequest(r)
		if !ok {
			return
		}
		items = append(items, it)
		if len(items) < readBatch && nextIsBuffered(r) {
			continue
		}
		if !c.give(items) {
			return
		}
		clear(items)
		items = items[:0]
	}
}

// give has requests served, now or when it is their turn. It reports false when the connection or the server has ended.
func (c *conn) give(items []item) bool {
	if !c.admit(items) {
		return false
	}
	c.coming.Store(0)
	select {
	case <-c.taken:
	case <-c.done:
		return false
	}
	if c.srv.owner.lone(items) {
		token(c.taken)
		return true
	}
	items[len(items)-1].tail = true
	return c.srv.queue.push(items...)
}

// readFrame reads a frame. A large one counts while it comes: nobody fills the memory with frames that never end.
func (c *conn) readFrame(r *bufio.Reader) ([]byte, error) {
	head, err := r.Peek(4)
	if err == nil && binary.BigEndian.Uint32(head) > readBuffer {
		return wire.ReadFrame(&arrival{c: c, r: r}, c.srv.cfg.MaxFrame, nil)
	}
	return wire.ReadFrame(r, c.srv.cfg.MaxFrame, nil)
}

// arrival counts a frame as it comes, each part from when there is memory for it. Its length alone counts nothing: it
// costs a client four bytes, and others would be disconnected for it.
type arrival struct {
	c            *conn
	r            *bufio.Reader
	got, counted int
}

func (a *arrival) Read(p []byte) (int, error) {
	if more := a.got + len(p) - a.counted; more > 0 {
		a.counted += more
		a.c.coming.Add(int64(more))
		a.c.srv.took(more)
	}
	n, err := a.r.Read(p)
	a.got += n
	return n, err
}

// readConnect reads the handshake's request. A frame that is none closes the connection.
func (c *conn) readConnect(r *bufio.Reader) bool {
	body, err := c.readFrame(r)
	if err != nil {
		return false
	}
	req := new(wire.ConnectRequest)
	d := jute.NewDecoder(body)
	if req.Decode(d); d.Err() != nil {
		return false
	}
	c.received(wire.OpCreateSession, 0)
	it := item{kind: itemConnect, conn: c, req: connectRecord{req}, size: len(body), at: c.srv.clock.now()}
	if !c.admit([]item{it}) {
		return false
	}
	c.coming.Store(0)
	return c.srv.queue.push(it)
}

// connectRecord makes the handshake's request fit into an item.
type connectRecord struct{ *wire.ConnectRequest }

// readRequest reads one request and touches the session, so that a slow disk expires nobody who is alive.
func (c *conn) readRequest(r *bufio.Reader) (item, bool) {
	body, err := c.readFrame(r)
	if err != nil {
		return item{}, false
	}
	now := c.srv.clock.now()
	if s := c.sess.Load(); s != nil {
		s.touch(now)
	}
	var h wire.RequestHeader
	var d jute.Decoder
	d.Reset(body)
	if h.Decode(&d); d.Err() != nil {
		return item{}, false
	}
	c.received(h.Op, h.Xid)
	it := item{kind: itemRequest, conn: c, op: h.Op, xid: h.Xid, size: len(body), at: now, req: wire.NewRequest(h.Op)}
	if it.req != nil {
		if it.req.Decode(&d); d.Err() != nil {
			it.code = wire.MarshallingError
			if h.Op == wire.OpAuth {
				return item{}, false // ZooKeeper answers no auth packet that it cannot read
			}
		}
	}
	return it, true
}

// nextIsBuffered reports whether a whole frame can be read without waiting.
func nextIsBuffered(r *bufio.Reader) bool {
	if r.Buffered() < 4 {
		return false
	}
	head, err := r.Peek(4)
	return err == nil && int64(r.Buffered()-4) >= int64(binary.BigEndian.Uint32(head))
}

// remoteName returns the peer's address for people.
func remoteName(nc net.Conn) string {
	a := nc.RemoteAddr()
	if a == nil || a.String() == "" || a.String() == "@" {
		return "unix"
	}
	return a.String()
}

// remoteIP returns the peer's address as an identity. Whoever comes by a unix socket or from this process comes from this machine.
func remoteIP(nc net.Conn) string {
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap().WithZone("").String()
	}
	return "127.0.0.1"
}
