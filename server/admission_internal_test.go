package server

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

func TestAddressesOfOneNetworkCountTogether(t *testing.T) {
	t.Parallel()
	for ip, want := range map[string]string{
		"10.1.2.3": "10.1.2.3", "2001:db8:1:2:3::4": "2001:db8:1:2::/64", "2001:db8:1:2::": "2001:db8:1:2::/64",
		"fe80::1": "fe80::/64", "::1": "::/64", "::ffff:10.1.2.3": "::ffff:10.1.2.3", "": "", "unix": "unix",
	} {
		if got := addressKey(ip); got != want {
			t.Errorf("%s: got %q, want %q", ip, got, want)
		}
	}
}

// openNow returns how many connections are not closed.
func (s *Server) openNow() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened
}

// lost asks for a session that does not exist, reads the reply and keeps the connection open.
func lost(t *testing.T, c *rawClient) {
	t.Helper()
	resp, err := c.handshake(&wire.ConnectRequest{SessionID: 99, Timeout: 10_000, Password: make([]byte, 16)})
	if err != nil || resp.SessionID != 0 {
		t.Fatalf("got %+v %v, want the answer that the session is gone", resp, err)
	}
}

func TestConnectionsThatLingerAreBounded(t *testing.T) {
	t.Parallel()
	const conns = 4
	s := serve(t, Config{Limits: Limits{Conns: conns}, MaxClientConns: Unlimited}, disk{})
	good := mustConnect(t, s, wire.ConnectRequest{})
	for range 100 {
		lost(t, dial(t, s))
		if got := s.openNow(); got > conns+16 {
			t.Fatalf("got %d open connections, want at most %d", got, conns+16)
		}
	}
	mustConnect(t, s, wire.ConnectRequest{}).ping(t) // new ones are admitted in place of them
	good.ping(t)
}

func TestClosedConnectionsDoNotCount(t *testing.T) {
	t.Parallel()
	bubble(t, Config{}, func(t *testing.T, s *Server, l *memListener) {
		t.Helper()
		for range 10 {
			c := l.connect(t, 10_000)
			c.ping(t)
			_ = c.nc.Close()
			lost(t, l.dial(t))
		}
		time.Sleep(maxLinger)
		synctest.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.opened != 0 || s.counted != 0 || len(s.perIP) != 0 || s.lingering.Len() != 0 || len(s.lingering.of) != 0 {
			t.Errorf("got %d open, %d counted, %v by address, %d lingering, want none", s.opened, s.counted, s.perIP,
				s.lingering.Len())
		}
	})
}

var requireLogin = Config{RequireSASL: true, SASLUsers: map[string]string{"bob": "geheim"}}

func TestPeerThatDoesNotLogInIsDisconnectedThoughItPings(t *testing.T) {
	t.Parallel()
	bubble(t, requireLogin, func(t *testing.T, s *Server, l *memListener) {
		t.Helper()
		bob, stranger := l.connect(t, 40_000), l.connect(t, 40_000)
		if err := bob.login("bob", "geheim"); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		for stranger.send(-2, wire.OpPing, &wire.Empty{}) == nil {
			if _, err := stranger.reply(nil); err != nil {
				break
			}
			bob.ping(t)
			time.Sleep(time.Second)
		}
		limit := s.cfg.HandshakeTimeout
		if took := time.Since(begin); took < limit-time.Second || took > limit+time.Second {
			t.Errorf("got the end after %v, want %v", took, limit)
		}
		bob.ping(t)
		back := l.dial(t) // a session in which somebody has logged in needs a login on each connection
		if _, err := back.handshake(&wire.ConnectRequest{
			SessionID: bob.session, Password: bob.password, Timeout: 40_000,
		}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(s.cfg.HandshakeTimeout + time.Second)
		if !back.ended() {
			t.Error("resumed without a login: got an open connection, want it closed")
		}
	})
}

func TestConnectionsWithoutLoginLeaveRoomForThoseWith(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]func(cfg *Config){
		"of all addresses": func(cfg *Config) { cfg.Limits.Conns, cfg.MaxClientConns = 8, Unlimited },
		"of one address":   func(cfg *Config) { cfg.MaxClientConns = 8 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := requireLogin
			limit(&cfg)
			bubble(t, cfg, func(t *testing.T, s *Server, l *memListener) {
				t.Helper()
				var users, strangers []*rawClient
				for range 4 {
					for range 8 {
						strangers = append(strangers, l.connect(t, 40_000))
					}
					c := l.connect(t, 40_000)
					if err := c.login("bob", "geheim"); err != nil {
						t.Fatal(err)
					}
					users = append(users, c)
				}
				synctest.Wait()
				s.mu.Lock()
				got, listed := s.counted, s.strangers.Len()
				s.mu.Unlock()
				if got > 8 || listed > 4 {
					t.Errorf("got %d connections, %d without a login, want at most 8 and 4", got, listed)
				}
				for _, c := range users {
					c.ping(t)
				}
				if !strangers[0].ended() {
					t.Error("the oldest connection without a login is still open")
				}
			})
		})
	}
}

func TestSessionsWithoutLoginLeaveRoomForThoseWith(t *testing.T) {
	t.Parallel()
	cfg := requireLogin
	cfg.Limits.Sessions = 8
	bubble(t, cfg, func(t *testing.T, s *Server, l *memListener) {
		t.Helper()
		for range 3 { // one address may have half of all sessions
			for range 20 {
				_ = l.connect(t, 40_000).nc.Close()
			}
			c := l.connect(t, 40_000)
			if err := c.login("bob", "geheim"); err != nil {
				t.Fatal(err)
			}
			_ = s.do(func(o *owner) {
				if all, unknown := len(o.sessions), o.unknown.Len(); all > 8 || unknown > 4 {
					t.Errorf("got %d sessions, %d without a login, want at most 8 and 4", all, unknown)
				}
			})
			c.ping(t)
			c.mustCall(t, wire.OpCloseSession, &wire.Empty{})
		}
	})
}
