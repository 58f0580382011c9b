package server

import (
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// memListener accepts pipes, so that a server can run in a synctest bubble.
type memListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   atomic.Bool
}

func newMemListener() *memListener {
	return &memListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *memListener) Accept() (net.Conn, error) {
	select {
	case nc := <-l.conns:
		return nc, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memListener) Close() error {
	if l.once.CompareAndSwap(false, true) {
		close(l.closed)
	}
	return nil
}

func (l *memListener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

// dial opens a connection to the listener's server.
func (l *memListener) dial(t *testing.T) *rawClient {
	t.Helper()
	ours, theirs := net.Pipe()
	l.conns <- theirs
	t.Cleanup(func() { _ = ours.Close() })
	return &rawClient{nc: ours}
}

// bubble runs f with a server on an in-memory network, under fake time.
func bubble(t *testing.T, cfg Config, f func(t *testing.T, s *Server, l *memListener)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := newMemListener()
		cfg.Listeners = []net.Listener{l}
		s := serve(t, cfg, disk{})
		f(t, s, l)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func (l *memListener) connect(t *testing.T, timeout int32) *rawClient {
	t.Helper()
	c := l.dial(t)
	if _, err := c.handshake(&wire.ConnectRequest{Timeout: timeout}); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *rawClient) ping(t *testing.T) {
	t.Helper()
	if err := c.send(-2, wire.OpPing, &wire.Empty{}); err != nil {
		t.Fatal(err)
	}
	if h, err := c.reply(nil); err != nil || h.Xid != wire.XidPing {
		t.Fatalf("ping: got %+v %v", h, err)
	}
}

func TestSilentSessionExpiresWithinOneTickAfterItsTimeout(t *testing.T) {
	t.Parallel()
	cfg := Config{TickTime: 2 * time.Second}
	bubble(t, cfg, func(t *testing.T, s *Server, l *memListener) {
		t.Helper()
		observer, silent := l.connect(t, 40_000), l.connect(t, 10_000)
		if _, err := silent.create("/e", nil, wire.FlagEphemeral); err != nil {
			t.Fatal(err)
		}
		if err := observer.call(wire.OpGetData, &wire.PathWatchRequest{Path: "/e", Watch: true}, nil); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		h, _, err := observer.next()
		if err != nil || h.Xid != wire.XidNotification || observer.events[0].Type != wire.EventDeleted {
			t.Fatalf("got %+v %v %v, want the event of the node's deletion", h, observer.events, err)
		}
		if d := time.Since(start); d < 10*time.Second || d > 12*time.Second+time.Millisecond {
			t.Errorf("got expiry after %v, want 10s to 12s", d)
		}
		if _, _, err := silent.next(); err == nil {
			t.Error("expired client: got a frame, want the end of the connection")
		}
		back := l.dial(t)
		resp, err := back.handshake(&wire.ConnectRequest{
			Timeout: 10_000, SessionID: silent.session,
			Password: silent.password,
		})
		if err != nil || resp.Timeout != 0 {
			t.Errorf("reconnect: got %+v %v, want session expired", resp, err)
		}
	})
}

func TestFramesAndReconnectsKeepASessionAlive(t *testing.T) {
	t.Parallel()
	bubble(t, Config{TickTime: time.Second}, func(t *testing.T, s *Server, l *memListener) {
		t.Helper()
		c := l.connect(t, 4000)
		for range 20 {
			time.Sleep(3 * time.Second)
			c.ping(t)
		}
		for range 20 { // disconnected in between
			_ = c.nc.Close()
			time.Sleep(3 * time.Second)
			next := l.dial(t)
			resp, err := next.handshake(&wire.ConnectRequest{Timeout: 4000, SessionID: c.session, Password: c.password})
			if err != nil || resp.SessionID != c.session {
				t.Fatalf("reconnect: got %+v %v", resp, err)
			}
			c = next
		}
		time.Sleep(6 * time.Second)
		if sessions := s.Sessions(); len(sessions) != 0 {
			t.Errorf("got %+v after the timeout, want no session", sessions)
		}
	})
}

func TestStoppedClockExpiresNoSession(t *testing.T) {
	t.Parallel()
	bubble(t, Config{TickTime: time.Second}, func(t *testing.T, s *Server, l *memListener) {
		t.Helper()
		c := l.connect(t, 4000)
		time.Sleep(2 * time.Second)
		s.StopClock()
		time.Sleep(time.Hour)
		c.ping(t)
		time.Sleep(time.Hour)
		s.StartClock()
		time.Sleep(3 * time.Second)
		if len(s.Sessions()) != 1 {
			t.Error("the session expired before its timeout had passed on the clock")
		}
		time.Sleep(3 * time.Second)
		if len(s.Sessions()) != 0 {
			t.Error("the session is alive after its timeout has passed on the clock")
		}
	})
}

func TestStallGivesEverySessionAnotherTick(t *testing.T) {
	t.Parallel()
	var e expiry
	e.init(time.Second)
	s := &session{id: 1}
	s.timeout.Store(int64(4 * time.Second))
	e.add(s, 0)
	if gone := e.expired(3 * time.Second); len(gone) != 0 {
		t.Fatal("got expiry before the timeout")
	}
	// The process was not running from 3s to 60s. There may be a ping that the server has not read yet.
	if gone := e.expired(60 * time.Second); len(gone) != 0 {
		t.Fatal("got expiry directly after a stall")
	}
	s.touch(60*time.Second + 1)
	for now := 61 * time.Second; now < 64*time.Second; now += time.Second {
		if gone := e.expired(now); len(gone) != 0 {
			t.Fatalf("got expiry at %v though a frame came after the stall", now)
		}
	}
	var gone []*session
	for now := 64 * time.Second; now <= 66*time.Second; now += time.Second {
		gone = append(gone, e.expired(now)...)
	}
	if len(gone) != 1 || len(e.buckets) != 0 {
		t.Errorf("got %d sessions expired and %d buckets left, want 1 and 0", len(gone), len(e.buckets))
	}
}

func TestExpireSessionEndsItAtOnce(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{"in memory": {}, "on disk": {Data: t.TempDir()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, cfg, disk{})
			c, other := mustConnect(t, s, wire.ConnectRequest{}), mustConnect(t, s, wire.ConnectRequest{})
			if _, err := c.create("/e", nil, wire.FlagEphemeral); err != nil {
				t.Fatal(err)
			}
			if !s.ExpireSession(c.session) || s.ExpireSession(c.session) {
				t.Error("got another result, want true for the live session, then false")
			}
			if _, _, err := other.get("/e"); !errors.Is(err, codeError(wire.NoNode)) {
				t.Errorf("ephemeral node: got %v, want none", err)
			}
			if !c.ended() {
				t.Error("the connection is still open")
			}
		})
	}
}

func TestConnectionWithoutHandshakeIsClosedInTime(t *testing.T) {
	t.Parallel()
	bubble(t, Config{}, func(t *testing.T, s *Server, l *memListener) {
		t.Helper()
		c := l.dial(t)
		start := time.Now()
		if _, _, err := c.next(); err == nil {
			t.Error("got a frame, want the end of the connection")
		}
		if d := time.Since(start); d != 10*time.Second {
			t.Errorf("got the end after %v, want 10s", d)
		}
	})
}

func TestIdleServerStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newMemListener()
		s := serve(t, Config{Listeners: []net.Listener{l}, IdleExit: 10 * time.Minute}, disk{})
		c := l.connect(t, 40_000)
		for range 60 {
			time.Sleep(30 * time.Second)
			c.ping(t)
		}
		start := time.Now()
		if err := c.call(wire.OpCloseSession, &wire.Empty{}, nil); err != nil {
			t.Fatal(err)
		}
		<-s.Done()
		if d := time.Since(start); d != 10*time.Minute || !errors.Is(s.Err(), ErrIdle) || s.Close() != nil {
			t.Errorf("got a stop after %v with %v, want 10m with %v", d, s.Err(), ErrIdle)
		}
	})
}

func TestCollectorDeletesEmptyContainersAndExpiredTTLNodes(t *testing.T) {
	t.Parallel()
	bubble(t, Config{ExtendedTypes: true, TickTime: time.Minute}, func(t *testing.T, s *Server, l *memListener) {
		t.Helper()
		c := l.connect(t, 20*60_000)
		for path, child := range map[string]string{"/used": "/used/a", "/full": "/full/a", "/fresh": ""} {
			if err := c.call(wire.OpCreateContainer,
				&wire.CreateRequest{Path: path, ACL: openACL, Flags: wire.FlagContainer}, nil); err != nil {
				t.Fatal(err)
			}
			if child != "" {
				if _, err := c.create(child, nil, 0); err != nil {
					t.Fatal(err)
				}
			}
		}
		ttl := &wire.CreateTTLRequest{CreateRequest: wire.CreateRequest{
			Path: "/ttl", ACL: openACL,
			Flags: wire.FlagTTL,
		}, TTL: 5 * 60_000}
		if err := c.call(wire.OpCreateTTL, ttl, nil); err != nil {
			t.Fatal(err)
		}
		if err := c.delete("/used/a"); err != nil {
			t.Fatal(err)
		}
		exists := func(path string) bool {
			_, _, err := c.get(path)
			return err == nil
		}
		time.Sleep(61 * time.Second)
		if exists("/used") || !exists("/full") || !exists("/fresh") || !exists("/ttl") {
			t.Error("after a minute: got other nodes, want only the emptied container deleted")
		}
		time.Sleep(5 * time.Minute)
		if exists("/ttl") || !exists("/full") || !exists("/fresh") {
			t.Error("after the TTL: got other nodes, want only the TTL node deleted")
		}
	})
}
