package server

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// resumeWith opens a new connection for c's session and asks for another timeout, in milliseconds.
func (l *memListener) resumeWith(t *testing.T, c *rawClient, timeout int32) *rawClient {
	t.Helper()
	next := l.dial(t)
	resp, err := next.handshake(&wire.ConnectRequest{Timeout: timeout, SessionID: c.session, Password: c.password})
	if err != nil || resp.Timeout != timeout {
		t.Fatalf("resumed with %d ms: got %+v %v", timeout, resp, err)
	}
	return next
}

// wantEnd checks that a session ends so long after now, or up to a tick later.
func wantEnd(t *testing.T, s *Server, want time.Duration) {
	t.Helper()
	time.Sleep(want - time.Millisecond) // in a bubble
	if len(s.Sessions()) == 0 {
		t.Errorf("got no session %v after its client was heard, want one", want-time.Millisecond)
	}
	time.Sleep(s.cfg.TickTime + 2*time.Millisecond) // in a bubble
	if sessions := s.Sessions(); len(sessions) != 0 {
		t.Errorf("got %+v %v after its client was heard, want no session", sessions, want+s.cfg.TickTime)
	}
}

var thirtySeconds = Config{TickTime: time.Second, MinSessionTimeout: time.Second, MaxSessionTimeout: 30 * time.Second}

// The client may not have got the reply with the shorter timeout, and may count on the longer one.
//
// Promise: 2
func TestShorterTimeoutCountsOnlyWhenTheClientHasSentSomething(t *testing.T) {
	t.Parallel()
	bubble(t, thirtySeconds, func(t *testing.T, s *Server, l *memListener) {
		t.Helper()
		c := l.connect(t, 30_000)
		time.Sleep(10 * time.Second) // in a bubble
		l.resumeWith(t, c, 4000)
		wantEnd(t, s, 30*time.Second)
	})
	bubble(t, thirtySeconds, func(t *testing.T, s *Server, l *memListener) {
		t.Helper()
		c := l.resumeWith(t, l.connect(t, 30_000), 4000)
		time.Sleep(10 * time.Second) // in a bubble
		c.ping(t)
		wantEnd(t, s, 4*time.Second)
	})
}

// A handshake that was held up arrives after a later one that was answered, and its client has long gone.
//
// Promise: 2
func TestLateHandshakeDoesNotShortenATimeout(t *testing.T) {
	t.Parallel()
	bubble(t, thirtySeconds, func(t *testing.T, s *Server, l *memListener) {
		t.Helper()
		c := l.resumeWith(t, l.connect(t, 20_000), 30_000)
		c.ping(t)
		for range 3 {
			_ = l.resumeWith(t, c, 4000).nc.Close()
		}
		wantEnd(t, s, 30*time.Second)
	})
}

// A client that asks for a longer timeout again has had the last word.
func TestTimeoutIsThatOfTheLastHandshakeOfAClientThatIsHeard(t *testing.T) {
	t.Parallel()
	bubble(t, thirtySeconds, func(t *testing.T, s *Server, l *memListener) {
		t.Helper()
		c := l.connect(t, 30_000)
		for _, timeout := range []int32{4000, 20_000, 2000, 6000} {
			c = l.resumeWith(t, c, timeout)
		}
		c.ping(t)
		if got := s.Sessions()[0].Timeout; got != 6*time.Second {
			t.Errorf("got a timeout of %v, want that of the last handshake", got)
		}
		wantEnd(t, s, 6*time.Second)
	})
}

// What a server counts with after a crash is at least what its client counts with.
//
// Promise: 2
func TestShorterTimeoutIsStoredOnlyWhenTheClientHasSentSomething(t *testing.T) {
	t.Parallel()
	mem := vfs.NewCrashableMem()
	s := serve(t, Config{Data: "data"}, disk{fs: mem})
	restart := func(limit time.Duration) {
		mem = mem.CrashClone(vfs.CrashCloneCfg{})
		s = serve(t, Config{Data: "data", MinSessionTimeout: time.Second, MaxSessionTimeout: limit}, disk{fs: mem})
	}
	want := func(what string, timeout time.Duration) {
		t.Helper()
		if sessions := s.Sessions(); len(sessions) != 1 || sessions[0].Timeout != timeout {
			t.Errorf("%s: got %+v, want a timeout of %v", what, sessions, timeout)
		}
	}
	c := mustConnect(t, s, wire.ConnectRequest{Timeout: 30_000})
	restart(4 * time.Second)
	want("server with a lower limit", 30*time.Second)
	again := dial(t, s)
	resp, err := again.handshake(&wire.ConnectRequest{Timeout: 30_000, SessionID: c.session, Password: c.password})
	if err != nil || resp.Timeout != 4000 {
		t.Fatalf("got %+v %v, want 4000 ms", resp, err)
	}
	want("after the handshake", 30*time.Second)
	again.ping(t)
	want("after a ping", 4*time.Second)
	if _, err := again.create("/a", nil, 0); err != nil { // what was done before is durable with it
		t.Fatal(err)
	}
	restart(time.Minute)
	want("after a crash", 4*time.Second)
}
