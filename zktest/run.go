package zktest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/server"
)

// Server is Turnstile's embedded ZooKeeper server behind a Link. Most methods are the Link's, which "go doc
// zktest.Link" lists: Client, Session and Addr give access to the server; Control, Cut, HalfOpen and Delay inject
// faults.
type Server struct {
	*Link

	inside  Net           // between the link and the server
	config  server.Config // without the listener
	scratch string        // the directory that Close removes, if any

	// running has one slot. The goroutine that takes the server out of it owns the server until it puts it back. The
	// slot holds nil while the server is stopped.
	running chan *server.Server
}

// Bubble runs test in a testing/synctest bubble, with a server on a network of its own. No real time passes there: when
// all goroutines of the bubble wait, the clock goes on at once. Clients of Server.Client and Server.Session are closed
// at the end; test must close others, and end all its goroutines.
func Bubble(t *testing.T, test func(t *testing.T, srv *Server), opts ...Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var network Net
		test(t, Run(t, append([]Option{On(&network)}, opts...)...))
	})
}

// Run starts a server with an empty tree, in memory, on a free port of the loopback interface. It closes the server
// when the test ends, and fails the test if the server does not start.
func Run(tb testing.TB, opts ...Option) *Server {
	tb.Helper()
	s, err := start(opts, tb.TempDir, tb.Errorf)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("zktest: close the server: %v", err)
		}
	})
	return s
}

// Start is Run for programs that are not tests. The caller closes the server. A method panics where it would fail a
// test.
func Start(opts ...Option) (*Server, error) {
	dir := ""
	s, err := start(opts, func() string {
		var err error
		if dir, err = os.MkdirTemp("", "zktest"); err != nil {
			return "" // server.Start reports that it needs a directory
		}
		return dir
	}, func(format string, args ...any) { panic(fmt.Sprintf(format, args...)) })
	if err != nil {
		return nil, err
	}
	s.scratch = dir
	return s, nil
}

func start(opts []Option, tempDir func() string, fail func(format string, args ...any)) (*Server, error) {
	o, err := newOptions(opts)
	if err != nil {
		return nil, err
	}
	s := &Server{
		Link:    &Link{tls: o.serverTLS, clientTLS: o.clientTLS, dial: o.dial(), fail: fail},
		running: make(chan *server.Server, 1),
		config: server.Config{
			TickTime:          50 * time.Millisecond,
			MinSessionTimeout: 100 * time.Millisecond,
			MaxSessionTimeout: 10 * time.Minute,
			ExtendedTypes:     true,
			FourLetterWords:   []string{"*"},
		},
	}
	s.config.InMemory = !o.durable
	s.configure(o)
	if o.durable {
		s.config.Data = tempDir()
	}
	listener, err := o.listen()
	if err != nil {
		return nil, err
	}
	s.upstreams = []upstream{{listener, func(ctx context.Context, client net.Addr) (net.Conn, error) {
		return s.inside.dial(ctx, client, insideAddr)
	}}}
	srv, err := s.launch()
	if err != nil {
		_ = listener.Close() // err says more
		return nil, err
	}
	s.running <- srv
	s.Link.start()
	return s, nil
}

const insideAddr = "zktest:2181"

func (s *Server) launch() (*server.Server, error) {
	listener, err := s.inside.Listen(insideAddr)
	if err != nil {
		return nil, err
	}
	cfg := s.config
	cfg.Listeners = append(slices.Clone(cfg.Listeners), listener)
	return server.Start(context.Background(), cfg)
}

// Close ends all connections and the server, and waits for its goroutines. A server from Run closes by itself.
func (s *Server) Close() error {
	s.Link.stop()
	err := s.shutdown()
	if s.scratch != "" {
		err = errors.Join(err, os.RemoveAll(s.scratch))
	}
	return err
}

func (s *Server) shutdown() error {
	srv := <-s.running
	s.running <- nil
	if srv == nil {
		return nil
	}
	return srv.Close()
}

// Stop stops the server. It refuses clients until Start, and no session expires meanwhile.
func (s *Server) Stop() {
	if err := s.shutdown(); err != nil {
		s.fail("zktest: stop the server: %v", err)
	}
}

// Start starts the server again after Stop, with its data and sessions. It needs the option Durable.
func (s *Server) Start() {
	if s.durable() {
		s.relaunch()
	}
}

func (s *Server) relaunch() {
	srv := <-s.running
	if srv == nil {
		var err error
		if srv, err = s.launch(); err != nil {
			s.fail("zktest: start the server again: %v", err)
		}
	}
	s.running <- srv
}

// Restart calls Stop and Start. The options SessionTimeouts, Tick and With change the server's configuration in
// between; others are refused.
func (s *Server) Restart(opts ...Option) {
	o, err := newOptions(opts)
	if err == nil && (o.net != nil || o.address != "" || o.durable || o.serverTLS != nil) {
		err = errors.New("the options On, At, Durable and TLS are for Run and Start")
	}
	if err != nil {
		s.fail("zktest: restart the server: %v", err)
		return
	}
	if s.durable() {
		s.Stop()
		s.configure(o)
		s.Start()
	}
}

// configure changes the configuration of a server that is not running.
func (s *Server) configure(o *options) {
	memory, data := s.config.InMemory, s.config.Data
	for _, change := range o.config {
		change(&s.config)
	}
	s.config.InMemory, s.config.Data, s.config.Listen, s.config.TLSListen = memory, data, nil, nil
}

// Wipe stops the server and starts it empty, as after the loss of its disk. It refuses all earlier sessions.
func (s *Server) Wipe() {
	s.Stop()
	if dir := s.config.Data; dir != "" {
		if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
			s.fail("zktest: wipe the server: %v", err)
		}
	}
	s.relaunch()
}

func (s *Server) durable() bool {
	if s.config.InMemory {
		s.fail("zktest: an in-memory server cannot start again with its data; use the option zktest.Durable()")
	}
	return !s.config.InMemory
}

// with calls f with the server. It returns false if the server is stopped.
func (s *Server) with(f func(*server.Server)) bool {
	srv := <-s.running
	s.running <- srv
	if srv == nil {
		return false
	}
	f(srv)
	return true
}

// ExpireSession makes the server expire a session now, as if its client had been silent for too long. It returns false
// if the server has no such session.
func (s *Server) ExpireSession(id int64) bool {
	known := false
	s.with(func(srv *server.Server) { known = srv.ExpireSession(id) })
	return known
}

// Sessions returns the ids of the server's sessions, connected or not, sorted.
func (s *Server) Sessions() []int64 {
	var ids []int64
	s.with(func(srv *server.Server) {
		for _, info := range srv.Sessions() {
			ids = append(ids, info.ID)
		}
	})
	slices.Sort(ids)
	return ids
}

// PresetSequence makes n the number of the next sequential child of path, for example math.MaxInt32. The node must
// exist.
func (s *Server) PresetSequence(path string, n int32) {
	var err error
	if !s.with(func(srv *server.Server) { err = srv.PresetSequence(path, n) }) {
		err = errors.New("the server is stopped")
	}
	if err != nil {
		s.fail("zktest: preset the sequence of %s: %v", path, err)
	}
}

// StopClock stops the server's session clock: no session expires until StartClock, however long its client is silent.
func (s *Server) StopClock() { s.with((*server.Server).StopClock) }

// StartClock continues the session clock from where StopClock stopped it.
func (s *Server) StartClock() { s.with((*server.Server).StartClock) }
