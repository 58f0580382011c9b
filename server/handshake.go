package server

// Serving the handshake: new and resumed sessions.

import (
	"strconv"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// connect serves the handshake: it creates a session, resumes one, or answers that the session has expired.
func (o *owner) connect(it *item) {
	c, req := it.conn, it.req.(connectRecord).ConnectRequest
	if c.state != connNew {
		c.drop(it)
		return
	}
	s := o.sessions[req.SessionID]
	known := s != nil && o.rightPassword(s.id, req.Password)
	if req.LastZxidSeen > o.zxid && (known || req.SessionID == 0) {
		// The client has seen a later state than this server has. It must not see older state now. The client of a
		// session that is not this server's has seen another state, perhaps one before a restore. That session has
		// expired: its client begins a new one, and would otherwise try for ever.
		o.warn(&o.stats.ahead, "server: closed a client that has seen a later zxid than this server has",
			"client", c.remote, "zxid", req.LastZxidSeen, "last", o.zxid)
		c.drop(it)
		c.kill()
		return
	}
	timeout := o.negotiate(req.Timeout)
	if req.SessionID == 0 {
		o.newSession(it, req, timeout)
		return
	}
	if !known {
		c.state = connClosing
		gone := &wire.ConnectResponse{Password: make([]byte, wire.PasswordLen), HasReadOnly: req.HasReadOnly}
		o.replyConnect(it, gone, o.pending(), true)
		return
	}
	o.resumeSession(it, req, s, timeout)
}

func (o *owner) newSession(it *item, req *wire.ConnectRequest, timeout time.Duration) {
	c := it.conn
	if o.cfg.RequireSASL {
		o.makeSessionRoom()
	}
	tooMany, met := full(len(o.sessions), o.cfg.Limits.Sessions), limitSessions
	if !tooMany {
		tooMany, met = full(o.openedBy[c.from], half(o.cfg.Limits.Sessions)), limitSessionsPerAddress
	}
	if tooMany { // close, as ZooKeeper does with too many connections: a handshake's reply has no error code
		o.hit(met, c.remote)
		c.drop(it)
		c.kill()
		return
	}
	id := o.nextSession()
	r := o.tree.CreateSession(o.nextZxid(), id, int32(timeout.Milliseconds()))
	o.record(&r)
	if o.store != nil {
		o.tx(o.current()).SetSeed(o.seed)
	}
	s := o.addSession(id, timeout, o.clock.now())
	s.opener = c.from
	o.openedBy[c.from]++
	if o.cfg.RequireSASL {
		o.meet(s)
	}
	o.attach(c, s)
	o.replyConnect(it, o.connectResponse(s, req), o.store != nil, false)
}

// resumeSession attaches a session to a new connection that has given the right password, and closes the old
// connection, if any.
//
// A client counts with the timeout of the last handshake whose reply it has. So a longer timeout counts, and is made
// durable, before the reply. A shorter one counts after the client has sent something that shows that it has the reply:
// see settle. Otherwise, if the reply was lost, or the handshake was held up and arrived late, the session would expire
// here while its client still held a lock.
//
// Nothing else in the reply can be lost: a client knows the password only if the session was durable when it was told.
// So a client whose replies wait for the disk, those to pings too, can go on with its session on a new connection,
// however long the disk takes. If that connection or the server ends, the client asks again, and the session still
// exists.
func (o *owner) resumeSession(it *item, req *wire.ConnectRequest, s *session, timeout time.Duration) {
	o.stats.resumed.Add(1)
	if s.conn != nil {
		o.detach(s.conn)
	}
	now := o.clock.now()
	s.granted = timeout
	s.touch(now)
	if timeout > time.Duration(s.timeout.Load()) {
		o.setTimeout(s, timeout)
		if o.store != nil {
			s.timeoutBatch = o.seq
		}
	} else {
		o.expiry.move(s, now)
	}
	o.attach(it.conn, s)
	o.replyConnect(it, o.connectResponse(s, req), s.timeoutBatch > o.durable.seq.Load(), false)
}

// settle makes the timeout of the last handshake count, if it is shorter, at a request of the connection. Its client
// has the reply, because clients wait for that before they send anything else.
func (o *owner) settle(s *session) {
	if s.granted < time.Duration(s.timeout.Load()) {
		o.setTimeout(s, s.granted)
	}
}

func (o *owner) setTimeout(s *session, timeout time.Duration) {
	r := o.tree.CreateSession(o.zxid, s.id, int32(timeout.Milliseconds()))
	o.record(&r)
	s.timeout.Store(int64(timeout))
	o.expiry.move(s, o.clock.now())
}

func (o *owner) connectResponse(s *session, req *wire.ConnectRequest) *wire.ConnectResponse {
	return &wire.ConnectResponse{
		Timeout: int32(s.granted.Milliseconds()), SessionID: s.id,
		Password: password(o.secret, s.id), HasReadOnly: req.HasReadOnly,
	}
}

// replyConnect replies to a handshake. The reply has no header.
func (o *owner) replyConnect(it *item, resp *wire.ConnectResponse, hold, last bool) {
	o.replyBare(it, wire.OpCreateSession, resp, hold, last)
}

// replyBare sends a reply without the usual header.
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

// putFrame encodes a frame without a header directly into the outbox.
func (o *outbox) putFrame(f *frame, body wire.Record, now time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	end := o.end()
	before := len(*end)
	*end = appendFrame(*end, body)
	o.backlog.Add(int64(len(*end) - before))
	o.finish(f, len(*end)-before, now)
}

// attach gives a session a connection.
func (o *owner) attach(c *conn, s *session) {
	s.conn = c
	c.state = connOpen
	c.caller.Session = s.id
	c.sess.Store(s)
	o.watchers[c.id] = c
}

// detach separates a connection from its session and closes it.
func (o *owner) detach(c *conn) {
	if s := c.sess.Load(); s != nil && s.conn == c {
		s.conn = nil
	}
	if c.state == connOpen {
		o.end(c)
	}
	c.kill()
}

// connGone cleans up after a connection that has ended. Its session continues.
func (o *owner) connGone(c *conn) {
	c.parked = nil
	o.backupGone(c)
	o.detach(c)
	c.state = connClosing
}

// addSession adds a session that exists in the tree.
func (o *owner) addSession(id int64, timeout, now time.Duration) *session {
	s := &session{id: id, granted: timeout}
	s.timeout.Store(int64(timeout))
	s.touch(now)
	o.sessions[id] = s
	o.expiry.add(s, now)
	o.idle.active()
	return s
}

// removeSession removes a session whose end has been recorded. The caller takes care of its connection, if any.
func (o *owner) removeSession(s *session) {
	o.expiry.remove(s)
	delete(o.sessions, s.id)
	o.forget(s)
	if s.opener == "" {
		return
	}
	if o.openedBy[s.opener]--; o.openedBy[s.opener] == 0 {
		delete(o.openedBy, s.opener)
	}
}

// sessionName formats a session's id as ZooKeeper does.
func sessionName(id int64) string { return "0x" + strconv.FormatUint(uint64(id), 16) }
