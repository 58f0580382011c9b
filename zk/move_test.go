package zk_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	zookeeper "github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/server"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// awaitServer waits until the session is connected to one of the servers.
func awaitServer(t *testing.T, s *zk.Session, want ...string) {
	t.Helper()
	for {
		_, changed := s.State()
		addr, connected := s.Server()
		if connected && slices.Contains(want, addr) {
			return
		}
		select {
		case <-changed:
		case <-s.Context().Done():
			t.Fatalf("the session has ended: %v", s.Err())
		case <-t.Context().Done():
			t.Fatalf("connected to %s, want one of %v", addr, want)
		}
	}
}

// Promise: 18
func TestSetServersMovesTheSessionAndLosesNoRequest(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	srv := zktest.Run(t)
	here, there := zktest.Proxy(t, srv.Addr()), zktest.Proxy(t, srv.Addr())
	c := openClient(t, here)
	s, err := c.Session(ctx)
	must(t, err)
	_, _, w, err := s.ExistsW(ctx, "/watched")
	must(t, err)
	work, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := 0; work.Err() == nil; j++ {
				if _, err := s.Create(ctx, fmt.Sprintf("/n%d-%d", i, j), nil, zk.Ephemeral); err != nil {
					t.Errorf("a request during a move: %v", err)
				}
			}
		})
	}
	for range 5 {
		must(t, c.SetServers(there.Addr()))
		awaitServer(t, s, there.Addr())
		must(t, c.SetServers(here.Addr()))
		awaitServer(t, s, here.Addr())
	}
	stop()
	wg.Wait()
	if live, err := c.Session(ctx); live != s || err != nil {
		t.Errorf("got %v, %v; want the same session", live, err)
	}
	_, err = s.Create(ctx, "/watched", nil, zk.Persistent)
	must(t, err)
	wantEvent(t, w, zk.EventCreated, "/watched")
	if got := c.Servers(); !slices.Equal(got, []string{here.Addr()}) {
		t.Errorf("servers: %v", got)
	}
}

// Promise: 18
func TestSetServersMovesASessionWhoseServerDoesNotAnswer(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	srv := zktest.Run(t)
	here, there := zktest.Proxy(t, srv.Addr()), zktest.Proxy(t, srv.Addr())
	c := openClient(t, here)
	s, err := c.Session(ctx)
	must(t, err)
	sent := make(chan struct{})
	here.Control(func(r zktest.Request) zktest.Fault {
		if r.Op == zktest.OpSync && r.Nth == 1 {
			close(sent)
			return zktest.Mute
		}
		return zktest.Pass
	})
	done := make(chan error)
	go func() { done <- s.Sync(ctx, "/") }()
	<-sent
	must(t, c.SetServers(there.Addr()))
	wantFailure(t, <-done, zk.ErrConnectionLost, zk.Unknown)
	awaitServer(t, s, there.Addr())
}

// The list changes while connections break and are made again: the session ends up with a server of the last list.
//
// Promise: 18
func TestSetServersMovesASessionThatConnectsAtThatTime(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	links := []*zktest.Link{zktest.Proxy(t, srv.Addr()), zktest.Proxy(t, srv.Addr())}
	c := openClient(t, links[0])
	s, err := c.Session(t.Context())
	must(t, err)
	for i := range 6 {
		to := links[i%2]
		links[1-i%2].Drop()
		must(t, c.SetServers(to.Addr()))
		awaitServer(t, s, to.Addr())
	}
}

// The session connects to a server that is taken out of the list before it has.
//
// Promise: 18
func TestSetServersMovesASessionThatHasJustConnected(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	here, there := zktest.Proxy(t, srv.Addr()), zktest.Proxy(t, srv.Addr())
	dials, goOn := make(chan struct{}), make(chan struct{})
	var first sync.Once
	c, err := zk.Open(t.Context(), zk.Config{
		Servers: here.Addr(),
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			first.Do(func() {
				close(dials)
				<-goOn
			})
			return new(net.Dialer).DialContext(ctx, network, address)
		},
	})
	must(t, err)
	defer c.Close()
	<-dials
	must(t, c.SetServers(there.Addr()))
	close(goOn)
	s, err := c.Session(t.Context())
	must(t, err)
	awaitServer(t, s, there.Addr())
}

// A new name for the address that the session is connected to is no reason to move.
//
// Promise: 18
func TestSetServersKnowsTheServerUnderAnotherName(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	_, port, err := net.SplitHostPort(srv.Addr())
	must(t, err)
	var left atomic.Bool
	c, err := zk.Open(t.Context(), zk.Config{
		Servers: "localhost:" + port,
		Hooks:   zk.Hooks{Disconnected: func(string, error) { left.Store(true) }},
	})
	must(t, err)
	defer c.Close()
	s, err := c.Session(t.Context())
	must(t, err)
	must(t, c.SetServers(srv.Addr()))
	for range 100 { // it would leave when no request is under way
		must(t, s.Sync(t.Context(), "/"))
	}
	if addr, _ := s.Server(); left.Load() || addr != "localhost:"+port {
		t.Errorf("the session has left its server, and is connected to %s", addr)
	}
}

// askingHandler is the log handler of a program that asks the client something for each line.
type askingHandler struct {
	slog.Handler
	ask func(slog.Record)
}

func (h askingHandler) Handle(_ context.Context, r slog.Record) error {
	h.ask(r)
	return nil
}

func (h askingHandler) Enabled(context.Context, slog.Level) bool { return true }

// Promise: 18
func TestLoggerMayAskTheClient(t *testing.T) {
	t.Parallel()
	var c atomic.Pointer[zk.Client]
	var changes atomic.Int32
	handler := askingHandler{slog.DiscardHandler, func(r slog.Record) {
		if strings.HasPrefix(r.Message, "the list of servers has changed") {
			changes.Add(1)
		}
		if c := c.Load(); c != nil {
			_, _ = c.Servers(), c.LastError()
		}
	}}
	srv := zktest.Run(t)
	cfg := srv.Config(10 * time.Second)
	cfg.Logger = slog.New(handler)
	opened, err := zk.Open(t.Context(), cfg)
	must(t, err)
	defer opened.Close()
	c.Store(opened)
	done := make(chan error)
	go func() { done <- opened.SetServers(srv.Addr() + ",127.0.0.1:1") }()
	select {
	case err := <-done:
		must(t, err)
	case <-time.After(time.Minute):
		t.Fatal("SetServers does not return")
	}
	must(t, opened.SetServers("127.0.0.1:1,"+srv.Addr())) // the same ones
	if n := changes.Load(); n != 1 {
		t.Errorf("the logger is told of %d changes, want 1", n)
	}
}

// Promise: 18
func TestSetServersWithoutAConnection(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	c, err := zk.Open(t.Context(), zk.Config{Servers: "127.0.0.1:1/app"})
	must(t, err)
	defer c.Close()
	for _, bad := range []string{"", "a b", "host:2181/other"} {
		if err := c.SetServers(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	must(t, c.SetServers(srv.Addr()))
	s, err := c.Session(t.Context())
	must(t, err)
	awaitServer(t, s, srv.Addr())
	must(t, c.Close())
	must(t, c.SetServers("127.0.0.1:1"))
}

// Promise: 18
func TestFollowConfigEndsWithItsContextOrClient(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	asked := make(chan struct{}, 100)
	srv.Control(func(r zktest.Request) zktest.Fault {
		if r.Op == zktest.OpGetData {
			asked <- struct{}{}
		}
		return zktest.Pass
	})
	c := openClient(t, srv)
	follow := func(ctx context.Context) (s *zk.Session, done chan error) { // returns when it waits for a change
		t.Helper()
		done = make(chan error, 1)
		go func() { done <- c.FollowConfig(ctx) }()
		<-asked
		s, err := c.Session(t.Context())
		must(t, err)
		must(t, s.Sync(t.Context(), "/")) // behind its request
		return s, done
	}
	ctx, cancel := context.WithCancel(t.Context())
	s, done := follow(ctx)
	srv.ExpireSession(s.ID()) // it goes on with the next
	<-s.Context().Done()
	select {
	case <-asked:
	case err := <-done:
		t.Fatalf("it has ended with the session: %v", err)
	}
	must(t, c.Sync(t.Context(), "/")) // behind its request
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	srv.NoWatches(t)
	if got := c.Servers(); !slices.Equal(got, []string{srv.Addr()}) {
		t.Errorf("a server without members to tell: %v", got)
	}
	_, done = follow(t.Context())
	must(t, c.Close())
	if err := <-done; !errors.Is(err, zk.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}

// Promise: 18
func TestFollowConfigContinuesAfterRefusalsAndInAnEnsembleThatWasRebuilt(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t, zktest.With(func(c *server.Config) { c.SuperDigest = zk.DigestID("super", "secret").ID }))
	c := openClient(t, srv)
	configure := func(version int, port string) {
		t.Helper()
		cfg := srv.Config(10 * time.Second)
		cfg.Auth = []zk.Auth{zk.Digest("super", "secret")}
		admin, err := zk.Open(t.Context(), cfg)
		must(t, err)
		defer admin.Close()
		_, own, _ := strings.Cut(srv.Addr(), ":")
		const text = "server.1=127.0.0.1:1:2;%s\nserver.2=127.0.0.1:1:2;%s\nversion=%d"
		_, err = admin.Set(t.Context(), "/zookeeper/config", fmt.Appendf(nil, text, own, port, version), -1)
		must(t, err)
	}
	await := func(port string) {
		t.Helper()
		for !slices.Contains(c.Servers(), "127.0.0.1:"+port) {
			must(t, c.Sync(t.Context(), "/"))
		}
	}
	configure(9, "9")
	srv.Control(func(r zktest.Request) zktest.Fault {
		switch {
		case r.Op == zktest.OpSync && r.Nth == 1:
			return zktest.Answer(zk.ThrottledOp)
		case r.Op == zktest.OpGetData && r.Nth <= 2:
			return zktest.Answer(zk.NoAuth)
		}
		return zktest.Pass
	})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- c.FollowConfig(ctx) }()
	for !slices.Contains(c.Servers(), "127.0.0.1:9") {
		select {
		case err := <-done:
			t.Fatalf("it has ended: %v", err)
		default:
			_, _, err := c.Exists(t.Context(), "/")
			must(t, err)
		}
	}
	srv.Wipe()
	configure(3, "3")
	await("3")
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
}

// An ensemble of three loses a member, which the session is connected to, and gets it back.
//
// Promise: 18
func TestFollowConfigFollowsALiveReconfiguration(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	apache := zookeeper.Ensemble(t, 3, zookeeper.Options{Dynamic: true})
	leader := apache.AwaitLeader(-1)
	member := (leader + 1) % 3
	all := []string{apache.Addr(0), apache.Addr(1), apache.Addr(2)}
	c, err := zk.Open(ctx, zk.Config{Servers: apache.Addr(member), Timeout: 20 * time.Second})
	must(t, err)
	defer c.Close()
	s, err := c.Session(ctx)
	must(t, err)
	for addr, _ := s.Server(); addr != all[member] || len(c.Servers()) < 3; addr, _ = s.Server() {
		must(t, c.SetServers(all[member]))
		awaitServer(t, s, all[member])
		must(t, c.SetServers(strings.Join(all, ","))) // may move it
		must(t, s.Sync(ctx, "/"))
	}
	follow, stop := context.WithCancel(ctx)
	done := make(chan error)
	go func() { done <- c.FollowConfig(follow) }()
	await := func(want ...string) {
		t.Helper()
		slices.Sort(want)
		for !slices.Equal(c.Servers(), want) {
			if err := s.Sync(ctx, "/"); err != nil && !errors.Is(err, zk.ErrConnectionLost) {
				t.Fatalf("got %v, want %v: %v", c.Servers(), want, err)
			}
		}
	}
	others := slices.DeleteFunc(slices.Clone(all), func(a string) bool { return a == apache.Addr(member) })

	await(slices.Clone(all)...)
	text, _, err := s.Config(ctx)
	must(t, err)
	var line string
	for l := range strings.Lines(string(text)) {
		if strings.HasPrefix(l, fmt.Sprintf("server.%d=", member+1)) {
			line = strings.TrimSpace(l)
		}
	}
	admin, err := zk.Open(ctx, zk.Config{Servers: apache.Addr(leader), Timeout: 20 * time.Second})
	must(t, err)
	defer admin.Close()
	as, err := admin.Session(ctx)
	must(t, err)
	_, _, err = as.Reconfig(ctx, zk.Reconfig{Leaving: strconv.Itoa(member + 1), From: -1})
	must(t, err)
	await(slices.Clone(others)...)
	awaitServer(t, s, others...)
	_, _, err = as.Reconfig(ctx, zk.Reconfig{Joining: line, From: -1})
	must(t, err)
	await(slices.Clone(all)...)
	_, err = c.Create(ctx, "/still", nil, zk.Ephemeral)
	must(t, err)
	if live, err := c.Session(ctx); live != s || err != nil {
		t.Errorf("got %v, %v; want the same session", live, err)
	}
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("FollowConfig: %v", err)
	}
}
