package zk_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/jute"
	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/zk"
)

// fake is a server that runs a test's script for each connection. It uses pipes, so that it works in a synctest bubble.
type fake struct {
	tb    testing.TB
	serve func(p *peer)
	wg    sync.WaitGroup

	mu    sync.Mutex // guards what follows
	dials int
	down  error // what dialling returns, if set
	ends  []net.Conn
}

// newFake returns a server that runs serve for every connection, which ends when serve returns.
func newFake(tb testing.TB, serve func(p *peer)) *fake {
	tb.Helper()
	f := &fake{tb: tb, serve: serve}
	tb.Cleanup(func() {
		f.refuse(errors.New("fake: closed"))
		f.cut()
		f.wg.Wait()
	})
	return f
}

// refuse makes dialing fail with err, or succeed again if err is nil.
func (f *fake) refuse(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = err
}

// cut closes all connections.
func (f *fake) cut() {
	f.mu.Lock()
	ends := f.ends
	f.ends = nil
	f.mu.Unlock()
	for _, c := range ends {
		_ = c.Close()
	}
}

// Dial implements Config.Dial.
func (f *fake) Dial(context.Context, string, string) (net.Conn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down != nil {
		return nil, f.down
	}
	client, server := net.Pipe()
	p := &peer{nth: f.dials, conn: server, in: make(chan []byte, 1<<14)}
	f.dials++
	f.ends = append(f.ends, server)
	f.wg.Go(p.pump)
	f.wg.Go(func() {
		defer server.Close()
		f.serve(p)
	})
	return client, nil
}

func (f *fake) config() zk.Config {
	return zk.Config{Servers: "fake", Timeout: 10 * time.Second, Dial: f.Dial}
}

// peer is the server's end of a connection.
type peer struct {
	nth  int // 0 for the first connection
	conn net.Conn
	in   chan []byte // frames; closed with the connection
}

// pump keeps reading, because a pipe has no buffer.
func (p *peer) pump() {
	defer close(p.in)
	for {
		frame, err := wire.ReadFrame(p.conn, 1<<24, nil)
		if err != nil {
			return
		}
		p.in <- frame
	}
}

// request is a request of a client.
type request struct {
	wire.RequestHeader
	body *jute.Decoder
}

// next returns the next request, or false if the connection has ended.
func (p *peer) next() (request, bool) {
	frame, ok := <-p.in
	if !ok {
		return request{}, false
	}
	r := request{body: jute.NewDecoder(frame)}
	r.Decode(r.body)
	return r, true
}

// record decodes the body of a request.
func (r request) record() wire.Record {
	rec := wire.NewRequest(r.Op)
	rec.Decode(r.body)
	return rec
}

// path returns the path of a request, or "" if it has none.
func (r request) path() string {
	switch rec := r.record().(type) {
	case *wire.CreateRequest:
		return rec.Path
	case *wire.CreateTTLRequest:
		return rec.Path
	case *wire.PathWatchRequest:
		return rec.Path
	case *wire.PathRequest:
		return rec.Path
	case *wire.DeleteRequest:
		return rec.Path
	case *wire.SetDataRequest:
		return rec.Path
	default:
		return ""
	}
}

// connect reads the connect request.
func (p *peer) connect() (wire.ConnectRequest, bool) {
	var req wire.ConnectRequest
	frame, ok := <-p.in
	if ok {
		req.Decode(jute.NewDecoder(frame))
	}
	return req, ok
}

// grant answers the connect request with session 7, or with the session to resume.
func (p *peer) grant(req wire.ConnectRequest) {
	id := req.SessionID
	if id == 0 {
		id = 7
	}
	p.grantAs(id, req.Timeout)
}

func (p *peer) grantAs(id int64, timeout int32) {
	resp := wire.ConnectResponse{
		Timeout: timeout, SessionID: id, Password: make([]byte, wire.PasswordLen), HasReadOnly: true,
	}
	p.raw(wire.EndFrame(resp.Append(wire.BeginFrame(nil)), 0))
}

// grantReadOnly answers the connect request like grant, optionally as a read-only server.
func (p *peer) grantReadOnly(req wire.ConnectRequest, readOnly bool) {
	resp := wire.ConnectResponse{
		Timeout: req.Timeout, SessionID: 7, Password: make([]byte, wire.PasswordLen),
		HasReadOnly: true, ReadOnly: readOnly,
	}
	p.raw(wire.EndFrame(resp.Append(wire.BeginFrame(nil)), 0))
}

// expire answers the connect request with the reply for an expired session.
func (p *peer) expire() { p.grantAs(0, 0) }

// open does the handshake.
func (p *peer) open() bool {
	req, ok := p.connect()
	if ok {
		p.grant(req)
	}
	return ok
}

func (p *peer) raw(b []byte) { _, _ = p.conn.Write(b) }

// answer replies to r.
func (p *peer) answer(r request, zxid int64, code wire.Code, body wire.Record) {
	p.raw(wire.AppendReply(nil, wire.ReplyHeader{Xid: r.Xid, Zxid: zxid, Err: code}, body))
}

func (p *peer) notify(kind wire.EventType, path string) {
	e := &wire.Event{Type: kind, State: wire.StateSyncConnected, Path: path}
	p.raw(wire.AppendReply(nil, wire.ReplyHeader{Xid: wire.XidNotification, Zxid: -1}, e))
}

// loop answers all requests until the connection ends: with each if that returns true, and otherwise with plain.
func (p *peer) loop(each func(r request) (answered bool)) {
	for {
		r, ok := p.next()
		if !ok {
			return
		}
		if each == nil || !each(r) {
			p.plain(r)
		}
		if r.Op == wire.OpCloseSession {
			return
		}
	}
}

// plain answers r with success.
func (p *peer) plain(r request) {
	var body wire.Record
	switch r.Op {
	case wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
		body = &wire.Create2Response{Path: r.path()}
	case wire.OpGetData:
		body = &wire.DataResponse{Data: []byte("data")}
	case wire.OpGetChildren2:
		body = &wire.Children2Response{Children: []string{"a"}}
	case wire.OpExists, wire.OpSetData, wire.OpSetACL:
		body = &wire.StatResponse{}
	case wire.OpSync:
		body = &wire.PathResponse{Path: r.path()}
	case wire.OpAddWatch:
		body = &wire.ErrorResponse{}
	}
	p.answer(r, 1, wire.OK, body)
}

// open opens a client on the fake and waits for its session.
func (f *fake) open(cfg zk.Config) (*zk.Client, *zk.Session) {
	f.tb.Helper()
	c := f.client(cfg)
	s, err := c.Session(f.tb.Context())
	if err != nil {
		f.tb.Fatalf("Session: %v", err)
	}
	return c, s
}

func (f *fake) client(cfg zk.Config) *zk.Client {
	f.tb.Helper()
	c, err := zk.Open(f.tb.Context(), cfg)
	if err != nil {
		f.tb.Fatalf("Open: %v", err)
	}
	f.tb.Cleanup(func() { _ = c.Close() })
	return c
}

func wantCause(t *testing.T, s *zk.Session, want error) {
	t.Helper()
	<-s.Context().Done()
	if got := context.Cause(s.Context()); !errors.Is(got, want) {
		t.Errorf("cause of the session's end: got %v, want %v", got, want)
	}
}

func wantFailure(t *testing.T, err, want error, outcome zk.Outcome) {
	t.Helper()
	if !errors.Is(err, want) || zk.OutcomeOf(err) != outcome {
		t.Errorf("got %v (%v), want %v (%v)", err, zk.OutcomeOf(err), want, outcome)
	}
}

// after runs f and waits until it has changed the session's state. A session that reconnects at once may already be
// connected again.
func after(s *zk.Session, f func()) {
	_, changed := s.State()
	f()
	<-changed
}

// waitState waits until the session is in a state. It may miss a state that does not last.
func waitState(s *zk.Session, want zk.State) {
	for state := range s.States(context.Background()) {
		if state == want {
			return
		}
	}
}
