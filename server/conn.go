package server

// A connection and its reader.

import (
	"bufio"
	"container/list"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-a3166700/turnstile/internal/jute"
	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/server/internal/tree"
)

const (
	readBuffer = 8 << 10 // of every connection
	readBatch  = 64      // the most requests that a reader gives to the owner at a time
)

// conn is a client's connection. Its reader goroutine decodes frames and gives them to the owner. Its writer goroutine
// writes what the outbox has collected.
type conn struct {
	srv    *Server
	id     tree.WatcherID
	nc     net.Conn
	remote string // the peer's address, for logs and monitoring
	ip     string // the peer's address, as an identity
	secure bool
	since  time.Time

	from string // the peer's address, for limits

	counted bool          // counts towards the limits and is listed; guarded by the server's mutex, as what follows
	open    bool          // the descriptor counts
	listed  *connList     // nil if it is in none
	place   *list.Element // in it

	sess atomic.Pointer[session] // set by the owner once the handshake is done
	done chan struct{}           // closed by kill

	incoming atomic.Int64  // bytes of large requests that are being read or wait for room
	taken    chan struct{} // a token for each batch that the reader may give to the owner
	killOnce sync.Once

	// Only the owner touches these.
	state      connState
	caller     tree.Caller
	held       uint64 // the last batch with a reply of this connection
	parked     []item // requests that wait for the client to read its replies, or for their turn
	late       bool   // a request is answered later: those behind it wait
	sasl       *saslServer
	needsFlush bool // is in the owner's list toFlush

	outbox
	counters
}

// connState is the state of a connection, as the owner sees it.
type connState uint8

const (
	connNew     connState = iota // before the handshake
	connOpen                     // has a session
	connClosing                  // its last reply is made; further requests are dropped
)

func newConn(s *Server, nc net.Conn, id uint64, secure bool) *conn {
	c := &conn{
		srv: s, nc: nc, id: tree.WatcherID(id), secure: secure, since: time.Now(),
		remote: remoteName(nc), ip: remoteIP(nc), done: make(chan struct{}),
		taken: make(chan struct{}, maxGiven),
	}
	for range maxGiven {
		signal(c.taken)
	}
	c.from = addressKey(c.ip)
	c.caller = tree.Caller{Watcher: c.id, IDs: []wire.ID{{Scheme: "ip", ID: c.ip}}}
	c.outbox.init(c)
	return c
}

// kill closes the connection at once and drops what is not written yet.
func (c *conn) kill() {
	c.killOnce.Do(func() {
		c.srv.remove(c)
		close(c.done)
		if c.backlog.Load() < bulkSize {
			c.closeNow()
		} else {
			// closing a full socket takes a millisecond, and the owner may kill many
			c.srv.wg.Go(c.closeNow)
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

// closeNow closes a connection without waiting for the client. Closing TLS would first send an alert, which takes
// seconds if the client does not read.
func (c *conn) closeNow() {
	nc := c.nc
	if secure, ok := nc.(*tls.Conn); ok {
		nc = secure.NetConn()
	}
	_ = nc.Close()
	c.srv.closedConn(c)
}

// read is the reader goroutine: it reads requests until the connection ends.
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
	if !c.srv.cfg.RequireSASL { // then the time ends with the login, see saslStep
		_ = c.nc.SetReadDeadline(time.Time{})
	}
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

// give serves requests inline if possible, and else queues them for the owner. It reports false if the connection or
// the server has ended.
func (c *conn) give(items []item) bool {
	if !c.admit(items) {
		return false
	}
	c.incoming.Store(0)
	select {
	case <-c.taken:
	case <-c.done:
		return false
	}
	if c.srv.owner.serveInline(items) {
		signal(c.taken)
		return true
	}
	items[len(items)-1].tail = true
	return c.srv.queue.push(items...)
}

// readFrame reads a frame. A large frame counts as memory while it arrives, so that frames that never end cannot fill
// the memory.
func (c *conn) readFrame(r *bufio.Reader) ([]byte, error) {
	head, err := r.Peek(4)
	if err == nil && binary.BigEndian.Uint32(head) > readBuffer {
		return wire.ReadFrame(&countingReader{c: c, r: r}, c.srv.cfg.MaxFrame, nil)
	}
	return wire.ReadFrame(r, c.srv.cfg.MaxFrame, nil)
}

// countingReader counts the memory of a frame as it arrives. It counts each part when memory for it is allocated. The
// announced length counts nothing: sending it costs a client four bytes, and other clients would be disconnected for
// it.
type countingReader struct {
	c            *conn
	r            *bufio.Reader
	got, counted int
}

func (a *countingReader) Read(p []byte) (int, error) {
	if more := a.got + len(p) - a.counted; more > 0 {
		a.counted += more
		a.c.incoming.Add(int64(more))
		a.c.srv.countMemory(more)
	}
	n, err := a.r.Read(p)
	a.got += n
	return n, err
}

// readConnect reads the handshake's request. It reports false, which closes the connection, if the frame is not one.
func (c *conn) readConnect(r *bufio.Reader) bool {
	body, err := c.readFrame(r)
	if err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.srv.stats.sessionless.Add(1)
		}
		c.broken(err)
		return false
	}
	req := new(wire.ConnectRequest)
	d := jute.NewDecoder(body)
	if req.Decode(d); d.Err() != nil {
		return false
	}
	c.srv.stats.connects.Add(1)
	c.received(wire.OpCreateSession, 0)
	it := item{kind: itemConnect, conn: c, req: connectRecord{req}, size: len(body), at: c.srv.clock.now()}
	if !c.admit([]item{it}) {
		return false
	}
	c.incoming.Store(0)
	return c.srv.queue.push(it)
}

// broken counts a connection that its client has ended, or that has sent a frame that is too large.
func (c *conn) broken(err error) {
	switch {
	case c.ended(): // by the server
	case errors.Is(err, wire.ErrFrame):
		c.srv.stats.tooLarge.Add(1)
	case !errors.Is(err, os.ErrDeadlineExceeded):
		c.srv.stats.dropped.Add(1)
	}
}

// connectRecord makes the handshake's request a wire.Record, as an item needs.
type connectRecord struct{ *wire.ConnectRequest }

// readRequest reads one request. It touches the session here, not when the request is served, so that a slow disk does
// not expire the sessions of live clients.
func (c *conn) readRequest(r *bufio.Reader) (item, bool) {
	body, err := c.readFrame(r)
	if err != nil {
		c.broken(err)
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
				return item{}, false // ZooKeeper closes the connection without an answer
			}
		}
	}
	return it, true
}

// nextIsBuffered reports whether a complete frame can be read without waiting.
func nextIsBuffered(r *bufio.Reader) bool {
	if r.Buffered() < 4 {
		return false
	}
	head, err := r.Peek(4)
	return err == nil && int64(r.Buffered()-4) >= int64(binary.BigEndian.Uint32(head))
}

// remoteName returns the peer's address for logs and monitoring.
func remoteName(nc net.Conn) string {
	a := nc.RemoteAddr()
	if a == nil || a.String() == "" || a.String() == "@" {
		return "unix"
	}
	return a.String()
}

// remoteIP returns the peer's address as an identity. Clients on unix sockets or in this process have the local one.
func remoteIP(nc net.Conn) string {
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap().WithZone("").String()
	}
	return "127.0.0.1"
}
