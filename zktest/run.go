package zktest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/server"
)

// Server is a ZooKeeper server of Turnstile's own in this process, behind a Link whose faults it has. Most methods
// are the Link's, which "go doc zktest.Link" lists: Client, Session and Addr to use it, Control, Cut, HalfOpen, Delay
// and ExpireSession to have it fail.
type Server struct {
	*Link

	inside  Net           // between the link and the server
	config  server.Config // as the server starts with it, but for the listener
	scratch string        // a directory to remove in the end, if any

	running chan *server.Server // one slot: whoever takes the server out of it has it for himself; nil while it is stopped
}

// Run starts a server with an empty tree, in memory, on a free port of the loopback interface, and closes it when the test ends.
// It fails the test if the server does not start.
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

// Start starts a server as Run does, for programs that are not tests. The caller closes it. What fails a test there panics here.
func Start(opts ...Option) (*Server, error) {
	dir := ""
	s, err := start(opts, func() string {
		var err error
		if dir, err = os.MkdirTemp("", "zktest"); err != nil {
			return "" // the server says that it needs a directory
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
			TickTime: 50 * time.Millisecond, MinSessionTimeout: 100 * time.Millisecond, MaxSessionTimeout: 10 * time.Minute,
			ExtendedTypes: true, FourLetterWords: []string{"*"},
		},
	}
	for _, change := range o.config {
		change(&s.config)
	}
	s.config.InMemory, s.config.Data, s.config.Listen, s.config.TLSListen = !o.durable, "", nil, nil
	if o.durable {
		s.config.Data = tempDir()
	}
	listener, err := o.listen()
	if err != nil {
		return nil, err
	}
	s.fronts = []front{{listener, func(ctx context.Context, client net.Addr) (net.Conn, error) {
		return s.inside.dial(ctx, client, insideAddr)
	}}}
	srv, err := s.launch()
	if err != nil {
		_ = listener.Close() // err says more
		return nil, err
	}
	s.running <- srv
	s.start()
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

// Close ends all connections, the server and every goroutine that was started for it. Run's servers are closed when the test ends.
func (s *Server) Close() error {
	s.stop()
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

// Stop stops the server. Clients are refused until Start; sessions do not expire meanwhile.
func (s *Server) Stop() {
	if err := s.shutdown(); err != nil {
		s.fail("zktest: stop the server: %v", err)
	}
}

// Start starts the server again after Stop, with the data and the sessions that it had. That needs the option Durable.
func (s *Server) Start() {
	if s.durable() {
		s.begin()
	}
}

func (s *Server) begin() {
	srv := <-s.running
	if srv == nil {
		var err error
		if srv, err = s.launch(); err != nil {
			s.fail("zktest: start the server again: %v", err)
		}
	}
	s.running <- srv
}

// Restart stops the server and starts it again, as Stop and Start do.
func (s *Server) Restart() {
	if s.durable() {
		s.Stop()
		s.Start()
	}
}

// Wipe stops the server and starts it empty, as after the loss of its disk: what clients know is from another life then, and their
// sessions are refused.
func (s *Server) Wipe() {
	s.Stop()
	if dir := s.config.Data; dir != "" {
		if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
			s.fail("zktest: wipe the server: %v", err)
		}
	}
	s.begin()
}

func (s *Server) durable() bool {
	if s.config.InMemory {
		s.fail("zktest: the server keeps its state in memory and would start empty; give Run the option zktest.Durable()")
	}
	return !s.config.InMemory
}

// with calls f with the server, false if it is stopped.
func (s *Server) with(f func(*server.Server)) bool {
	srv := <-s.running
	s.running <- srv
	if srv == nil {
		return false
	}
	f(srv)
	return true
}

// ExpireSession makes the server expire a session now, as if its client had been silent for too long. False if there is no such session.
func (s *Server) ExpireSession(id int64) bool {
	known := false
	s.with(func(srv *server.Server) { known = srv.ExpireSession(id) })
	return known
}

// Sessions returns the sessions that the server knows, connected or not, in the order of their ids.
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

// PresetSequence makes the next sequential child of path get the number n, for example math.MaxInt32. The node must exist.
func (s *Server) PresetSequence(path string, n int32) {
	var err error
	if !s.with(func(srv *server.Server) { err = srv.PresetSequence(path, n) }) {
		err = errors.New("the server is stopped")
	}
	if err != nil {
		s.fail("zktest: preset the sequence of %s: %v", path, err)
	}
}

// StopClock stops the time by which sessions live: none expires until StartClock, however long its client is silent.
func (s *Server) StopClock() { s.with((*server.Server).StopClock) }

// StartClock lets the time go on from where StopClock stopped it.
func (s *Server) StartClock() { s.with((*server.Server).StartClock) }
