package zktest_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/jute"
	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/server"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// pass waits for d in a bubble.
func pass(d time.Duration) { <-time.After(d) }

func TestSilentSessionExpiresInNoTime(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		other := newRaw(t, srv.Link)
		r := dialRaw(t, srv.Link)
		start := time.Now()
		if err := r.connect(0, nil); err != nil { // asks for 30 s
			t.Fatal(err)
		}
		r.wantDo(wire.OK, createNode("/mine", wire.FlagEphemeral))
		other.wantDo(wire.OK, watch("/mine"))
		go func() {
			for range 10 { // other lives longer than r
				pass(10 * time.Second)
				other.send(request{wire.OpPing, nil})
			}
		}()
		for {
			m, err := other.receive()
			if err != nil {
				t.Fatal(err)
			}
			if m.Xid == wire.XidNotification {
				break
			}
		}
		if got := time.Since(start); got < 30*time.Second || got > 31*time.Second {
			t.Errorf("got session expired after %v, want at most 30s and a tick", got)
		}
		r.wantEnd()
		pass(100 * time.Second) // until the pings end
	})
}

// Promise: 2
func TestClientLosesItsSessionOnACutLinkBeforeTheServerExpiresIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n zktest.Net
		srv := zktest.Run(t, zktest.On(&n))
		s := srv.Session(t, 30*time.Second)
		n.Cut(srv.Addr())
		start := time.Now()
		<-s.Context().Done()
		if !errors.Is(context.Cause(s.Context()), zk.ErrLost) {
			t.Errorf("got cause %v, want %v", context.Cause(s.Context()), zk.ErrLost)
		}
		if got := time.Since(start); got > 30*time.Second {
			t.Errorf("client noticed after %v, want less than the timeout", got)
		}
		if ids := srv.Sessions(); !slices.Contains(ids, s.ID()) {
			t.Errorf("server expired the session first; it has %x", ids)
		}
		n.Heal()
	})
}

func TestExpireSessionTellsTheClient(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	s := srv.Session(t, 30*time.Second)
	if !srv.ExpireSession(s.ID()) {
		t.Fatal("expire the session: got false, want true")
	}
	<-s.Context().Done()
	if !errors.Is(context.Cause(s.Context()), zk.ErrExpired) {
		t.Errorf("got cause %v, want %v", context.Cause(s.Context()), zk.ErrExpired)
	}
	if srv.ExpireSession(s.ID()) {
		t.Error("expire the session again: got true, want false")
	}
}

func TestSequenceCanBePreset(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	r := newRaw(t, srv.Link)
	r.wantDo(wire.OK, create("/q"))
	srv.PresetSequence("/q", math.MaxInt32-1)
	for _, want := range []string{"/q/n2147483646", "/q/n2147483647", "/q/n-2147483648", "/q/n-2147483647"} {
		r.send(createNode("/q/n", wire.FlagSequential))
		var got wire.PathResponse
		got.Decode(jute.NewDecoder(r.want(r.xid, wire.OK).body))
		if got.Path != want {
			t.Errorf("got %s, want %s", got.Path, want)
		}
	}
}

func TestNothingExpiresWhileTheClockStandsStill(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		r := newRaw(t, srv.Link)
		srv.StopClock()
		pass(time.Hour)
		if got := srv.Sessions(); !slices.Equal(got, []int64{r.SessionID}) {
			t.Errorf("got sessions %x, want %x", got, r.SessionID)
		}
		srv.StartClock()
		pass(29 * time.Second)
		r.wantDo(wire.OK, exists("/"))
		pass(time.Minute)
		if got := srv.Sessions(); len(got) != 0 {
			t.Errorf("got sessions %x, want none", got)
		}
	})
}

// Promise: 10
func TestDurableServerKeepsNodesAndSessionsOverARestart(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t, zktest.Durable())
	address := srv.Addr()
	r := newRaw(t, srv.Link)
	r.wantDo(wire.OK, create("/a"))
	r.wantDo(wire.OK, createNode("/mine", wire.FlagEphemeral))
	srv.Restart()
	r.wantEnd()
	if srv.Addr() != address {
		t.Errorf("got address %s after the restart, want %s", srv.Addr(), address)
	}
	again, err := r.resume(srv.Link)
	if err != nil {
		t.Fatal(err)
	}
	again.wantDo(wire.OK, exists("/a"))
	again.wantDo(wire.OK, exists("/mine"))
}

func TestDurableServerRestartsInABubble(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		s := srv.Session(t, 30*time.Second)
		if _, err := s.Create(t.Context(), "/a", nil, zk.Ephemeral); err != nil {
			t.Fatal(err)
		}
		srv.Restart()
		pass(20 * time.Second)
		if _, found, err := s.Exists(t.Context(), "/a"); !found || err != nil {
			t.Errorf("node exists: got %t, %v, want true", found, err)
		}
		srv.Stop()
		pass(time.Minute) // the client has given up; the server's clock has stood still
		srv.Start()
		if got := srv.Sessions(); !slices.Contains(got, s.ID()) {
			t.Errorf("got sessions %x, want %x among them", got, s.ID())
		}
	}, zktest.Durable())
}

func TestStoppedServerRefusesUntilItIsStartedAgain(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t, zktest.Durable())
	r := newRaw(t, srv.Link)
	srv.Stop()
	srv.Stop()
	r.wantEnd()
	if _, err := r.resume(srv.Link); err == nil {
		t.Error("got an answer of a stopped server")
	}
	if srv.ExpireSession(r.SessionID) || srv.Sessions() != nil {
		t.Error("got sessions of a stopped server")
	}
	srv.Start()
	srv.Start()
	if _, err := r.resume(srv.Link); err != nil {
		t.Errorf("session lost: %v", err)
	}
}

func TestClientOfAServerThatLostItsDataBeginsAnew(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]zktest.Option{"in memory": nil, "durable": {zktest.Durable()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var n zktest.Net
				srv := zktest.Run(t, append(opts, zktest.On(&n))...)
				client := srv.Client(t, 30*time.Second)
				s, err := client.Session(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := s.Create(t.Context(), "/a", nil, zk.Persistent); err != nil {
					t.Fatal(err)
				}
				srv.Wipe()
				<-s.Context().Done()
				if s, err = client.Session(t.Context()); err != nil {
					t.Fatal(err)
				}
				if _, found, err := s.Exists(t.Context(), "/a"); found || err != nil {
					t.Errorf("node exists: got %t, %v", found, err)
				}
			})
		})
	}
}

func TestClientSurvivesARestart(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t, zktest.Durable())
	s := srv.Session(t, 30*time.Second)
	if _, err := s.Create(t.Context(), "/a", nil, zk.Ephemeral); err != nil {
		t.Fatal(err)
	}
	id := s.ID()
	srv.Restart()
	s, err := s.Client().Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.ID() != id {
		t.Errorf("got session %x after the restart, want %x", s.ID(), id)
	}
	for { // a request that was in flight when the server stopped fails; then the client reconnects
		_, _, err := s.Exists(t.Context(), "/a")
		if err == nil {
			break
		}
		if !errors.Is(err, zk.ErrConnectionLost) {
			t.Fatal(err)
		}
	}
}

func TestTLSOnSocketsAndOnANet(t *testing.T) {
	t.Parallel()
	t.Run("sockets", func(t *testing.T) {
		t.Parallel()
		srv := zktest.Run(t, zktest.TLS())
		if _, err := srv.Session(t, 30*time.Second).Create(t.Context(), "/a", nil, zk.Persistent); err != nil {
			t.Error(err)
		}
	})
	t.Run("net", func(t *testing.T) {
		t.Parallel()
		zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
			if _, err := srv.Session(t, 30*time.Second).Create(t.Context(), "/a", nil, zk.Persistent); err != nil {
				t.Error(err)
			}
		}, zktest.TLS())
	})
}

func TestOptionsReachTheServer(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t, zktest.SessionTimeouts(7*time.Second, 8*time.Second), zktest.Tick(time.Second),
		zktest.With(func(c *server.Config) { c.ExtendedTypes = false }))
	r := newRaw(t, srv.Link)
	if got := r.Timeout; got != 8000 {
		t.Errorf("got timeout %d ms, want 8000", got)
	}
	ttl := wire.CreateTTLRequest{TTL: 1000}
	ttl.CreateRequest = *createNode("/ttl", wire.FlagTTL).body.(*wire.CreateRequest)
	r.wantDo(wire.Unimplemented, request{wire.OpCreateTTL, &ttl})
}

func TestServersOnOneNetHaveAddressesOfTheirOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n zktest.Net
		a, b := zktest.Run(t, zktest.On(&n)), zktest.Run(t, zktest.On(&n), zktest.At("zk.example:2181"))
		newRaw(t, a.Link).wantDo(wire.OK, create("/a"))
		newRaw(t, b.Link).wantDo(wire.NoNode, exists("/a"))
		if b.Addr() != "zk.example:2181" || a.Addr() == b.Addr() {
			t.Errorf("got addresses %s and %s", a.Addr(), b.Addr())
		}
	})
}

func TestMisuseIsReported(t *testing.T) {
	t.Parallel()
	rec := &recorder{TB: t}
	srv := zktest.Run(rec)
	srv.Restart()
	srv.PresetSequence("/absent", 1)
	if len(rec.failures) != 2 || !strings.Contains(rec.failures[0], "zktest.Durable()") ||
		!strings.Contains(rec.failures[1], "/absent") {
		t.Errorf("failures: %q", rec.failures)
	}

	srv, err := zktest.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if got := recover(); got == nil {
			t.Error("got no panic on misuse outside of a test")
		}
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	}()
	srv.PresetSequence("/absent", 1)
}
