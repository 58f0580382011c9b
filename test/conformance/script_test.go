package conformance_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/jute"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// sessionTimeout is the timeout of sessions in cases that are not about timeouts. It is so long that no session
// expires.
const sessionTimeout = 30000

// A target is a server on which the script runs.
type target struct {
	name    string
	apache  bool   // Apache ZooKeeper; otherwise ours
	version string // of Apache ZooKeeper: 3.8.0
	addr    string
	restart func(t *testing.T) // nil if its data does not survive a restart
	// Pings before the requests of each write: our server handles and commits several requests in another way than one.
	company int
}

// A script runs one case on one target and writes its transcript.
type script struct {
	testing.TB
	target  *target
	root    string // the node of this case
	lines   []string
	silent  bool
	conns   []*conn
	norm    *normal
	maxZxid int64
	events  []*message // the zxid in their headers is checked at the end
}

// newScript creates root and determines the zxid from which the transcript counts.
func newScript(tb testing.TB, tg *target, root string) *script {
	tb.Helper()
	s := &script{TB: tb, target: tg, root: root, norm: newNormal()}
	s.quietly(func() {
		c := s.open("setup")
		if root != "" {
			c.do(wire.OpCreate, &wire.CreateRequest{Path: root, ACL: open})
		}
		m := c.do(wire.OpCloseSession, &wire.Empty{})
		c.next()
		s.norm.base = m.Zxid
		s.norm.sessions = map[int64]string{}
		s.events = nil
	})
	return s
}

// finish ends all sessions of the case, whatever happened to their connections, so that none expires during a later
// case.
func (s *script) finish() {
	s.Helper()
	s.quietly(func() {
		ended := map[int64]bool{}
		for _, c := range slices.Backward(slices.Clone(s.conns)) {
			l := &link{conn: c, s: s}
			if c.session != 0 && !ended[c.session] {
				ended[c.session] = true
				if c.closed || len(c.pending) > 0 {
					c.cut()
					l = s.dial("end of " + c.name)
					l.hello(wire.ConnectRequest{Timeout: sessionTimeout, SessionID: c.session, Password: c.password})
				}
				if !l.closed && l.session != 0 {
					l.do(wire.OpCloseSession, &wire.Empty{})
					l.next() // the end: from here on the server no longer counts the connection
				}
			}
			_ = l.net.Close()
			_ = c.net.Close()
		}
	})
	s.checkEventZxids()
}

// checkEventZxids checks the zxid in the headers of events, which the transcript leaves out because 3.8 and 3.9
// differ in every event.
func (s *script) checkEventZxids() {
	s.Helper()
	for _, m := range s.events {
		switch {
		case m.Zxid == -1: // setWatches has made the event
		case !s.target.has("3.9.0"):
			s.Errorf("got zxid %[2]d in event %[1]v of %[3]s, want -1", m.event, m.Zxid, s.target.version)
		case m.Zxid <= s.norm.base || m.Zxid > s.maxZxid:
			s.Errorf("got zxid %d in event %v, want that of its transaction, between %d and %d",
				m.Zxid, m.event, s.norm.base, s.maxZxid)
		}
	}
}

func (s *script) logf(format string, args ...any) {
	if !s.silent {
		s.lines = append(s.lines, s.short(fmt.Sprintf(format, args...)))
	}
}

// short replaces the case's node by $.
func (s *script) short(line string) string {
	if s.root == "" {
		return line
	}
	return strings.ReplaceAll(line, s.root, "$")
}

// quietly runs f without a transcript.
func (s *script) quietly(f func()) {
	was := s.silent
	s.silent = true
	f()
	s.silent = was
}

// has reports whether the target does what the versions since were the first to do, one for each minor version and the
// newest last. Ours always does.
func (tg *target) has(since ...string) bool {
	if !tg.apache {
		return true
	}
	is := numbers(tg.version)
	for _, v := range since {
		if n := numbers(v); is[0] == n[0] && is[1] == n[1] {
			return is[2] >= n[2]
		}
	}
	last := numbers(since[len(since)-1])
	return slices.Compare(is[:], last[:]) > 0
}

// numbers returns the numbers of a version such as 3.9.0.
func numbers(version string) (n [3]int) {
	for i, text := range strings.SplitN(version, ".", len(n)) {
		n[i], _ = strconv.Atoi(text)
	}
	return n
}

// changed runs f, for which the versions since of ZooKeeper differ from earlier ones: see differs. Ours answers as
// they do.
func (s *script) changed(why string, since, old, recent []string, f func()) {
	s.Helper()
	apache := old
	if s.target.has(since...) {
		apache = recent
	}
	s.differs(why+" since "+strings.Join(since, " and "), apache, recent, f)
}

// differs runs f, for which the servers are known to differ: the answers (lines with "<" and "!") must be the ones
// given for the target.
func (s *script) differs(why string, apache, ours []string, f func()) {
	s.Helper()
	before := len(s.lines)
	f()
	var got []string
	for _, line := range s.lines[before:] {
		if name, _, _ := strings.Cut(line, " "); strings.HasSuffix(name, "<") || strings.HasSuffix(name, "!") {
			got = append(got, line)
		}
	}
	want := ours
	if s.target.apache {
		want = apache
	}
	if !slices.Equal(got, want) {
		s.Errorf("declared difference %q does not hold on %s:\ngot\n\t%s\nwant\n\t%s", why, s.target.name,
			strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
	s.lines = append(s.lines[:before], "~ "+why)
}

// dial opens a connection and sends nothing.
func (s *script) dial(name string) *link {
	s.Helper()
	c, err := dial(s.Context(), name, s.target.addr)
	if err != nil {
		s.Fatal(err)
	}
	c.company = s.target.company
	s.conns = append(s.conns, c)
	return &link{conn: c, s: s}
}

// open opens a connection with a new session.
func (s *script) open(name string) *link {
	s.Helper()
	l := s.dial(name)
	s.quietly(func() {
		l.hello(wire.ConnectRequest{
			Timeout: sessionTimeout, Password: make([]byte, wire.PasswordLen),
			HasReadOnly: true,
		})
	})
	if l.session == 0 {
		s.Fatalf("%s: got a refusal of a new session by %s", name, s.target.name)
	}
	return l
}

// admitted is open for a server that limits connections, where a connection that was just closed may still count.
func (s *script) admitted(name string) *link {
	s.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		c, err := dial(s.Context(), name, s.target.addr)
		if err != nil {
			continue
		}
		l := &link{conn: c, s: s}
		s.quietly(func() { l.hello(wire.ConnectRequest{Timeout: sessionTimeout, HasReadOnly: true}) })
		if l.session != 0 {
			s.conns = append(s.conns, c)
			return l
		}
	}
	s.Fatalf("%s: %s admits no connection within %v", name, s.target.name, patience)
	return nil
}

// resume opens a connection with the session of old.
func (s *script) resume(name string, old *link) *link {
	s.Helper()
	l := s.dial(name)
	l.hello(wire.ConnectRequest{
		Timeout: sessionTimeout, SessionID: old.session, Password: old.password,
		HasReadOnly: true,
	})
	return l
}

// A link is a connection whose messages go into the transcript.
type link struct {
	*conn
	s *script
}

// hello sends a ConnectRequest and reads the answer.
func (l *link) hello(r wire.ConnectRequest) {
	l.s.Helper()
	l.s.logf("%s> connect %s timeout=%d lastZxid=%s readOnly=%t,%t", l.name, l.s.norm.identity(r.SessionID, r.Password),
		r.Timeout, l.s.norm.zxid(r.LastZxidSeen), r.HasReadOnly, r.ReadOnly)
	l.write(wire.EndFrame(r.Append(wire.BeginFrame(nil)), 0))
	l.welcome()
}

// welcome reads a ConnectResponse.
func (l *link) welcome() {
	l.s.Helper()
	frame, err := l.readFrame()
	if err != nil {
		l.gone(err)
		return
	}
	var r wire.ConnectResponse
	d := jute.NewDecoder(frame)
	r.Decode(d)
	if d.Err() != nil {
		l.s.Fatalf("%s: invalid ConnectResponse: %v: % x", l.name, d.Err(), frame)
	}
	l.session, l.password = r.SessionID, slices.Clone(r.Password)
	l.s.logf("%s< connected %s bytes=%d version=%d timeout=%d readOnly=%t,%t", l.name,
		l.s.norm.identity(r.SessionID, r.Password), len(frame), r.ProtocolVersion, r.Timeout, r.HasReadOnly, r.ReadOnly)
}

func (l *link) gone(err error) {
	l.s.Helper()
	if !errors.Is(err, errClosed) {
		l.s.Fatalf("%v\n\t%s", err, strings.Join(l.s.lines, "\n\t"))
	}
	l.s.logf("%s< closed", l.name)
}

// send sends requests in one write and does not wait for the answers.
func (l *link) send(requests ...wire.SubRequest) {
	b := l.accompany()
	for _, r := range requests {
		l.s.logf("%s> %v%s", l.name, r.Op, l.s.norm.show(r.Request))
		b = append(b, l.request(r.Op, r.Request)...)
	}
	l.write(b)
}

// raw sends a request whose body is any bytes.
func (l *link) raw(what string, op wire.Op, body []byte) *message {
	l.s.Helper()
	l.s.logf("%s> %s", l.name, what)
	l.write(append(l.accompany(), l.request(op, rawBody(body))...))
	return l.answer()
}

type rawBody []byte

func (r rawBody) Append(b []byte) []byte { return append(b, r...) }
func (r rawBody) Decode(*jute.Decoder)   {}

// bytes sends any bytes without a frame.
func (l *link) bytes(what string, b []byte) {
	l.s.logf("%s> %s", l.name, what)
	l.write(b)
}

// do sends one request and reads up to its answer. It returns an empty message if the server closes the connection
// instead.
func (l *link) do(op wire.Op, body wire.Record) *message {
	l.s.Helper()
	l.send(wire.SubRequest{Op: op, Request: body})
	return l.answer()
}

// answer reads up to the next message that is not an event.
func (l *link) answer() *message {
	l.s.Helper()
	for {
		if m := l.next(); m.event == nil {
			return m
		}
	}
}

// answers reads n messages that are not events.
func (l *link) answers(n int) {
	l.s.Helper()
	for range n {
		l.answer()
	}
}

// next reads one message. It returns an empty one if the server has closed the connection.
func (l *link) next() *message {
	l.s.Helper()
	m, err := l.receive()
	if err != nil {
		l.gone(err)
		return &message{}
	}
	l.s.record(l, m)
	return m
}

func (s *script) record(l *link, m *message) {
	if m.event != nil {
		s.events = append(s.events, m)
		s.logf("%s! %s state=%d err=%d%s", l.name, eventName(m.event), m.event.State, m.Err, m.oddities())
		return
	}
	s.maxZxid = max(s.maxZxid, m.Zxid)
	what := m.op.String()
	if m.Xid < 0 {
		what = fmt.Sprintf("%s xid=%d", what, m.Xid)
	}
	if m.Err != wire.OK {
		s.logf("%s< %s zxid=%s ERROR %d %v%s", l.name, what, s.norm.zxid(m.Zxid), int32(m.Err), m.Err, m.oddities())
		return
	}
	s.logf("%s< %s zxid=%s ok%s%s", l.name, what, s.norm.zxid(m.Zxid), s.norm.show(m.body), m.oddities())
}

// oddities returns what no answer should contain.
func (m *message) oddities() string {
	var s string
	if len(m.rest) > 0 {
		s += fmt.Sprintf(" and %d more bytes % x", len(m.rest), m.rest)
	}
	if m.body != nil && !m.exact {
		s += " in an unusual encoding"
	}
	return s
}

func eventName(e *wire.Event) string {
	switch e.Type {
	case wire.EventCreated:
		return "created " + e.Path
	case wire.EventDeleted:
		return "deleted " + e.Path
	case wire.EventDataChanged:
		return "dataChanged " + e.Path
	case wire.EventChildrenChanged:
		return "childrenChanged " + e.Path
	default:
		return fmt.Sprintf("event %d %s", e.Type, e.Path)
	}
}

// wait waits for d. It is for cases about time, where no frame tells when to go on.
func (s *script) wait(d time.Duration) { time.Sleep(d) } // time itself is compared
