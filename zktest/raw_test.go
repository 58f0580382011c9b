package zktest_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/jute"
	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/zktest"
)

// raw is a client without a goroutine of its own: the test decides what it sends and reads.
type raw struct {
	t    *testing.T
	conn net.Conn
	xid  int32
	wire.ConnectResponse
}

// dialRaw opens a connection without a session.
func dialRaw(t *testing.T, l *zktest.Link) *raw {
	t.Helper()
	c, err := l.Dial(t.Context(), "tcp", l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	if cfg := l.ClientTLS(); cfg != nil {
		host, _, err := net.SplitHostPort(l.Addr())
		if err != nil {
			t.Fatal(err)
		}
		cfg.ServerName = host
		c = tls.Client(c, cfg)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &raw{t: t, conn: c}
}

// newRaw opens a connection with a new session of 30 seconds.
func newRaw(t *testing.T, l *zktest.Link) *raw {
	t.Helper()
	r := dialRaw(t, l)
	if err := r.connect(0, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.conn.Write(wire.AppendRequest(nil, 0, wire.OpCloseSession, nil)) })
	return r
}

// resume opens a new connection with r's session.
func (r *raw) resume(l *zktest.Link) (*raw, error) {
	r.t.Helper()
	again := dialRaw(r.t, l)
	return again, again.connect(r.SessionID, r.Password)
}

var errExpired = errors.New("expired")

func (r *raw) connect(id int64, password []byte) error {
	req := wire.ConnectRequest{Timeout: 30_000, SessionID: id, Password: password, HasReadOnly: true}
	if _, err := r.conn.Write(wire.EndFrame(req.Append(wire.BeginFrame(nil)), 0)); err != nil {
		return err
	}
	body, err := wire.ReadFrame(r.conn, 1<<20, nil)
	if err != nil {
		return err
	}
	d := jute.NewDecoder(body)
	if r.Decode(d); d.Err() != nil {
		return d.Err()
	}
	if r.Timeout <= 0 {
		return errExpired
	}
	return nil
}

// message is one message of a server: an event if Xid is -1, otherwise a reply.
type message struct {
	wire.ReplyHeader
	body []byte
}

func (m message) event() wire.Event {
	var e wire.Event
	e.Decode(jute.NewDecoder(m.body))
	return e
}

// request is one request for send.
type request struct {
	op   wire.Op
	body wire.Record
}

// send sends requests in one write.
func (r *raw) send(requests ...request) {
	r.t.Helper()
	var b []byte
	for _, q := range requests {
		r.xid++
		xid := r.xid
		if q.op == wire.OpPing {
			xid = wire.XidPing
		}
		b = wire.AppendRequest(b, xid, q.op, q.body)
	}
	if _, err := r.conn.Write(b); err != nil {
		r.t.Fatal(err)
	}
}

func (r *raw) receive() (message, error) {
	body, err := wire.ReadFrame(r.conn, 1<<20, nil)
	if err != nil {
		return message{}, err
	}
	d := jute.NewDecoder(body)
	var m message
	m.Decode(d)
	m.body = d.Rest()
	return m, d.Err()
}

// want reads the reply to the request with this xid.
func (r *raw) want(xid int32, code wire.Code) message {
	r.t.Helper()
	m, err := r.receive()
	if err != nil {
		r.t.Fatalf("read reply %d: %v", xid, err)
	}
	if m.Xid != xid || m.Err != code {
		r.t.Fatalf("got reply %d, %v, want reply %d, %v", m.Xid, m.Err, xid, code)
	}
	return m
}

// wantEvent reads a watch event.
func (r *raw) wantEvent(typ wire.EventType, path string) {
	r.t.Helper()
	m := r.want(wire.XidNotification, wire.OK)
	if e := m.event(); e.Type != typ || e.Path != path {
		r.t.Fatalf("got event %d of %s, want %d of %s", e.Type, e.Path, typ, path)
	}
}

// wantEnd fails the test unless the connection ends before another message.
func (r *raw) wantEnd() {
	r.t.Helper()
	if m, err := r.receive(); err == nil {
		r.t.Fatalf("got message %+v, want the end of the connection", m.ReplyHeader)
	} else if errors.Is(err, io.ErrUnexpectedEOF) {
		r.t.Fatalf("read the end of the connection: %v", err)
	}
}

// call sends one request and reads its reply.
func (r *raw) call(op wire.Op, body wire.Record) wire.Code {
	r.t.Helper()
	r.send(request{op, body})
	m, err := r.receive()
	if err != nil {
		r.t.Fatalf("%v: %v", op, err)
	}
	if m.Xid != r.xid {
		r.t.Fatalf("%v: got reply %d, want %d", op, m.Xid, r.xid)
	}
	return m.Err
}

func (r *raw) wantCall(want wire.Code, op wire.Op, body wire.Record) {
	r.t.Helper()
	if got := r.call(op, body); got != want {
		r.t.Fatalf("%v: got %v, want %v", op, got, want)
	}
}

func create(path string) request { return createNode(path, wire.FlagPersistent) }

func createNode(path string, flags int32) request {
	return request{wire.OpCreate, &wire.CreateRequest{
		Path: path, Flags: flags, ACL: []wire.ACL{{Perms: wire.PermAll, ID: wire.ID{Scheme: "world", ID: "anyone"}}},
	}}
}

func remove(path string) request {
	return request{wire.OpDelete, &wire.DeleteRequest{Path: path, Version: -1}}
}

func set(path, data string) request {
	return request{wire.OpSetData, &wire.SetDataRequest{Path: path, Data: []byte(data), Version: -1}}
}

func exists(path string) request { return request{wire.OpExists, &wire.PathWatchRequest{Path: path}} }

func watch(path string) request {
	return request{wire.OpGetData, &wire.PathWatchRequest{Path: path, Watch: true}}
}

// watchFor sets a watch on a node that does not exist yet.
func watchFor(path string) request {
	return request{wire.OpExists, &wire.PathWatchRequest{Path: path, Watch: true}}
}

// wantDo sends a request and reads its reply.
func (r *raw) wantDo(want wire.Code, q request) {
	r.t.Helper()
	r.wantCall(want, q.op, q.body)
}
