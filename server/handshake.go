package server

import (
	"strconv"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// connect serves the handshake: a new session, an old one, or the word that the old one is gone.
func (o *owner) connect(it *item) {
	c, req := it.conn, it.req.(connectRecord).ConnectRequest
	if c.state != connNew {
		c.drop(it)
		return
	}
	if req.LastZxidSeen > o.zxid {
		// The client has seen a later state than this server has: it must not go back in time.
		o.cfg.Logger.Warn("server: client has seen a later zxid than this server has, closed", "client", c.remote,
			"zxid", req.LastZxidSeen, "last", o.zxid)
		c.drop(it)
		c.kill()
		return
	}
	timeout := o.negotiate(req.Timeout)
	if req.SessionID == 0 {
		o.newSession(it, req, timeout)
		return
	}
	s := o.sessions[req.SessionID]
	if s == nil || !o.rightPassword(s.id, req.Password) {
		c.state = connClosing
		gone := &wire.ConnectResponse{Password: make([]byte, wire.PasswordLen), HasReadOnly: req.HasReadOnly}
		o.welcome(it, gone, o.pending(), true)
		return
	}
	o.resumeSession(it, req, s, timeout)
}

func (o *owner) newSession(it *item, req *wire.ConnectRequest, timeout time.Duration) {
	c := it.conn
	tooMany, met := full(len(o.sessions), o.cfg.Limits.Sessions), limitSessions
	if !tooMany {
		tooMany, met = full(o.openedBy[c.ip], half(o.cfg.Limits.Sessions)), limitSessionsPerAddress
	}
	if tooMany { // a handshake has no way to say so: as ZooKeeper, which closes when there are too many connections
		o.hit(met, c.remote)
		c.drop(it)
		c.kill()
		return
	}
	id := o.nextSession()
	r := o.tree.CreateSession(o.spend(), id, int32(timeout.Milliseconds()))
	o.record(&r)
	if o.store != nil {
		o.tx(o.current()).SetSeed(o.seed)
	}
	s := o.addSession(id, timeout, o.clock.now())
	s.opener = c.ip
	o.openedBy[c.ip]++
	o.attach(c, s)
	o.welcome(it, o.welcomeTo(s, req), o.store != nil, false)
}

// resumeSession gives a session to a new connection, whose password is right. The old connection, if there still is one, is closed.
// A timeout that has changed is made durable before the client may rely on it.
//
// Nothing else of the answer can be lost: who knows the password was told it when the session was durable. So a client
// whose answers wait for the disk, its pings' among them, goes on with its session on a new connection, however long
// the disk takes. If that connection is lost, or the server ends, the client asks again, and the session is there.
func (o *owner) resumeSession(it *item, req *wire.ConnectRequest, s *session, timeout time.Duration) {
	if s.conn != nil {
		o.detach(s.conn)
	}
	if s.timeout.Load() != int64(timeout) {
		r := o.tree.CreateSession(o.zxid, s.id, int32(timeout.Milliseconds()))
		o.record(&r)
		s.timeout.Store(int64(timeout))
		if o.store != nil {
			s.retimed = o.seq
		}
	}
	s.touch(o.clock.now())
	o.expiry.remove(s)
	o.expiry.add(s, o.clock.now())
	o.attach(it.conn, s)
	o.welcome(it, o.welcomeTo(s, req), s.retimed > o.durable.seq.Load(), false)
}

func (o *owner) welcomeTo(s *session, req *wire.ConnectRequest) *wire.ConnectResponse {
	return &wire.ConnectResponse{
		Timeout: int32(time.Duration(s.timeout.Load()).Milliseconds()), SessionID: s.id,
		Password: password(o.secret, s.id), HasReadOnly: req.HasReadOnly,
	}
}

// welcome answers a handshake. The answer has no header, and the byte for read-only exactly if the request had it.
func (o *owner) welcome(it *item, resp *wire.ConnectResponse, hold, last bool) {
	o.replyBare(it, wire.OpCreateSession, resp, hold, last)
}

// replyBare sends a frame with no header but what body begins with.
func (o *owner) replyBare(it *item, op wire.Op, body wire.Record, hold, last bool) {
	f := frame{conn: it.conn, request: true, last: last, op: op, size: it.size, at: it.at}
	if !hold {
		it.conn.putFrame(&f, body, o.clock.now())
		o.direct(it.conn)
		return
	}
	b := o.current()
	f.from = len(b.buf)
	b.buf = appendFrame(b.buf, body)
	f.to = len(b.buf)
	o.holdFrame(b, f)
}

func appendFrame(b []byte, body wire.Record) []byte {
	start := len(b)
	return wire.EndFrame(body.Append(wire.BeginFrame(b)), start)
}

// putFrame encodes a frame without a header right into the outbox.
func (o *outbox) putFrame(f *frame, body wire.Record, now time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	end := o.end()
	before := len(*end)
	*end = appendFrame(*end, body)
	o.backlog.Add(int64(len(*end) - before))
	o.finish(f, len(*end)-before, now)
}

// attach gives a session its connection.
func (o *owner) attach(c *conn, s *session) {
	s.conn = c
	c.state = connOpen
	c.caller.Session = s.id
	c.sess.Store(s)
	o.watchers[c.id] = c
}

// detach takes a connection from its session and closes it.
func (o *owner) detach(c *conn) {
	if s := c.sess.Load(); s != nil && s.conn == c {
		s.conn = nil
	}
	if c.state == connOpen {
		o.end(c)
	}
	c.kill()
}

// connGone cleans up behind a connection that has ended. Its session lives on.
func (o *owner) connGone(c *conn) {
	c.parked = nil
	o.detach(c)
	c.state = connClosing
}

// addSession makes a session that the tree knows known here.
func (o *owner) addSession(id int64, timeout, now time.Duration) *session {
	s := &session{id: id}
	s.timeout.Store(int64(timeout))
	s.touch(now)
	o.sessions[id] = s
	o.expiry.add(s, now)
	o.idle.active()
	return s
}

// forget drops a session whose close has been recorded. Its connection, if any, is the caller's.
func (o *owner) forget(s *session) {
	o.expiry.remove(s)
	delete(o.sessions, s.id)
	if s.opener == "" {
		return
	}
	if o.openedBy[s.opener]--; o.openedBy[s.opener] == 0 {
		delete(o.openedBy, s.opener)
	}
}

// endSession closes a session from this side, as expiry does: its connection ends without a word, and who comes back
// is told that the session is gone.
func (o *owner) endSession(s *session) {
	if s.conn != nil {
		o.detach(s.conn)
	}
	r := o.tree.CloseSession(o.spend(), time.Now().UnixMilli(), s.id)
	o.forget(s)
	o.record(&r)
}

// sessionName writes a session's id as ZooKeeper does.
func sessionName(id int64) string { return "0x" + strconv.FormatUint(uint64(id), 16) }
