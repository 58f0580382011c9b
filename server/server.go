// Package server provides a standalone ZooKeeper server. It speaks the client protocol of ZooKeeper 3.9 and keeps its
// state in a directory or in memory.
//
//	srv, err := server.Start(ctx, server.Config{Data: "/var/lib/turnstile"})
//	if err != nil {
//		return err
//	}
//	defer srv.Close()
//
// Acknowledged writes survive kill -9 and power loss, and no client ever sees a write that could still be lost: replies
// and events wait for the commit, and so does a read whose answer depends on a write that is not durable yet. Writes of
// many clients share a commit.
package server

// Starting and stopping a server.

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/seed-a3166700/turnstile/server/internal/store"
	"github.com/seed-a3166700/turnstile/server/internal/tree"
)

// Server is a running server. Its methods are safe for concurrent use.
type Server struct {
	cfg         Config
	disk        disk
	store       *store.Store
	clock       *clock
	queue       *queue
	owner       *owner
	sealed      chan *batch   // from the owner, which closes it, to apply
	commits     chan *batch   // from apply, which closes it, to commit
	inFlight    inFlight      // back to the owner
	applying    chan struct{} // semaphore: applying a batch
	releasing   chan struct{} // semaphore: releasing a batch
	lost        bool          // a batch failed, so no later one may be released; guarded by releasing
	durable     durability
	stats       stats
	firstZxid   int64 // the last one before this start
	monitored   monitoring
	traceMask   atomic.Int64
	taken       atomic.Int64 // bytes of memory taken for clients since the last enforceMemory
	enforcing   sync.Mutex   // held during enforceMemory; only tried, never waited for
	web         []*web       // the HTTP servers: that of the commands, that of the metrics
	adminAddr   net.Addr
	metrAddr    net.Addr
	metrTLSAddr net.Addr
	listeners   []listener
	surveying   chan struct{} // semaphore: looking at all connections for monitoring

	wg        sync.WaitGroup
	stopping  chan struct{} // closed by stop
	ownerDone chan struct{} // closed when the owner has ended
	done      chan struct{} // closed when everything has ended
	stopOnce  sync.Once
	endCtx    func() bool

	tls atomic.Pointer[tls.Config] // of new connections; nil without TLS

	mu       sync.Mutex // guards the fields below; nothing blocks under it
	err      error      // why the server stopped on its own
	closeErr error
	closed   bool
	lastConn uint64
	conns    map[tree.WatcherID]*conn // all open ones
	admission
	surveys   int            // lists that are being written
	surveysOf map[string]int // by address
}

// DiskError says that the server cannot read or write its data directory: the disk is full or broken, for example.
// Start returns it, and Err of a server that it has stopped. What was acknowledged is not lost.
type DiskError struct{ Err error }

func (e *DiskError) Error() string { return e.Err.Error() }

// Unwrap returns what happened.
func (e *DiskError) Unwrap() error { return e.Err }

// Start starts a server, which accepts connections when Start returns. It runs until Close, the end of ctx or a
// failure, which Done and Err report. If another server uses the data directory, the error names its process id.
//
// If ctx ends first, Start returns its cause at once, even if the disk does not answer. What it has begun then ends as
// soon as it can, and gives up the data directory.
func Start(ctx context.Context, cfg Config) (*Server, error) { return startUntil(ctx, cfg, disk{}) }

// startUntil is start, until ctx ends: a disk may keep start waiting for as long as it likes.
func startUntil(ctx context.Context, cfg Config, d disk) (*Server, error) {
	type result struct {
		s   *Server
		err error
	}
	started := make(chan result, 1)
	go func() {
		s, err := start(ctx, cfg, d)
		started <- result{s, err}
	}()
	select {
	case r := <-started:
		return r.s, r.err
	case <-ctx.Done():
		go func() {
			if r := <-started; r.s != nil {
				_ = r.s.Close() // nobody has used it
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// disk configures the store for tests.
type disk struct {
	fs     vfs.FS
	memory int
}

func start(ctx context.Context, cfg Config, d disk) (*Server, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		closeAll(slices.Concat(cfg.Listeners, cfg.TLSListeners))
		return nil, err
	}
	s := &Server{
		cfg: cfg, disk: d, clock: newClock(), queue: newQueue(),
		sealed:  make(chan *batch, maxInFlight+1), // at the end the owner seals one without checking for room
		commits: make(chan *batch, maxInFlight), inFlight: inFlight{hasRoom: make(chan struct{}, 1)},
		applying: make(chan struct{}, 1), releasing: make(chan struct{}, 1),
		stopping: make(chan struct{}), ownerDone: make(chan struct{}), done: make(chan struct{}),
		conns: make(map[tree.WatcherID]*conn), admission: newAdmission(&cfg),
		surveysOf: make(map[string]int), surveying: make(chan struct{}, 1),
	}
	s.traceMask.Store(defaultTraceMask)
	s.stats.reset()
	if err := s.load(); err != nil {
		closeAll(slices.Concat(cfg.Listeners, cfg.TLSListeners))
		return nil, err
	}
	if cfg.TLS != nil {
		s.tls.Store(cfg.TLS.Clone())
	}
	if err := errors.Join(s.listen(ctx), s.startWeb(ctx)); err != nil {
		s.stopWeb()
		s.closeListeners()
		return nil, errors.Join(err, s.closeStore())
	}
	s.warnOpen()
	s.run(ctx)
	return s, nil
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		_ = l.Close()
	}
}

// load creates the owner from the state in the data directory, or from empty state.
func (s *Server) load() error {
	cfg := tree.Config{
		ExtendedTypes: s.cfg.ExtendedTypes, EnforceQuota: s.cfg.EnforceQuota, SkipACL: s.cfg.SkipACL,
		Schemes: s.cfg.schemes(), NeverUsedAfter: s.cfg.ContainerUnused.Milliseconds(),
		MaxWatches: s.cfg.Limits.Watches, WatchPath: watchPath,
		MaxReply: s.cfg.Limits.Reply - replyHeader - frameHeader,
		MaxLists: s.cfg.maxLists(), MaxEvents: maxEvents,
	}
	if s.cfg.InMemory {
		s.owner = newOwner(s, tree.New(cfg))
		s.owner.secret = make([]byte, 32)
		rand.Read(s.owner.secret)
		return nil
	}
	s.warnForeign()
	st, err := store.Open(store.Config{Dir: s.cfg.Data, FS: s.disk.fs, Memory: s.disk.memory, Logger: s.cfg.Logger})
	if _, inUse := errors.AsType[*store.InUseError](err); inUse {
		return fmt.Errorf("server: %w", err)
	}
	if err != nil {
		return &DiskError{err}
	}
	began := time.Now()
	t, err := st.Load(cfg)
	s.stats.loads.add(time.Since(began).Microseconds())
	if err != nil {
		return &DiskError{errors.Join(err, st.Close(st.Zxid()))}
	}
	s.store = st
	s.firstZxid = st.Zxid()
	s.durable.zxid.Store(st.Zxid())
	s.durable.limit.Store(st.Reserved())
	s.owner = newOwner(s, t)
	s.owner.secret, s.owner.seed = st.Secret(), st.Seed()
	return nil
}

// warnForeign warns if the directory has data of Apache ZooKeeper, which this server does not read.
func (s *Server) warnForeign() {
	dir := filepath.Join(s.cfg.Data, "version-2")
	if _, err := os.Stat(dir); err == nil {
		s.cfg.Logger.Warn("server: ignoring data of Apache ZooKeeper in the data directory: "+
			"this server uses its own format", "dir", dir)
	}
}

// run starts the goroutines.
func (s *Server) run(ctx context.Context) {
	s.owner.reaper.init(s.cfg.ContainerInterval)
	var core sync.WaitGroup
	core.Go(func() { defer close(s.ownerDone); s.owner.run() })
	core.Go(s.apply)
	core.Go(s.commit)
	for _, l := range s.listeners {
		s.wg.Go(func() { s.accept(l) })
	}
	if s.store != nil {
		s.wg.Go(s.watchStore)
	}
	s.endCtx = context.AfterFunc(ctx, func() { s.stop(nil) })
	go s.shutdown(&core)
}

// watchStore stops the server if the store fails in the background.
func (s *Server) watchStore() {
	select {
	case <-s.store.Failed():
		s.stop(&DiskError{s.store.Err()})
	case <-s.stopping:
	}
}

// stop starts the shutdown. err is the reason, nil for Close and the end of the context.
func (s *Server) stop(err error) {
	s.stopOnce.Do(func() {
		if err != nil && !errors.Is(err, ErrIdle) {
			s.cfg.Logger.Error("server: stopped", "err", err)
		}
		s.mu.Lock()
		s.err = err
		s.closed = true
		s.mu.Unlock()
		close(s.stopping)
	})
}

// failed reports whether the server is stopping because of a failure.
func (s *Server) failed() bool {
	select {
	case <-s.stopping:
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.err != nil && !errors.Is(s.err, ErrIdle)
	default:
		return false
	}
}

// shutdown closes everything in order: the listeners, the owner after its last batch is durable and answered, the
// connections, the store.
func (s *Server) shutdown(core *sync.WaitGroup) {
	<-s.stopping
	s.endCtx()
	s.closeListeners()
	core.Wait()
	s.stopWeb()
	s.killAll()
	s.wg.Wait()
	s.owner.closeBackup()
	err := s.closeStore()
	s.mu.Lock()
	s.closeErr = err
	s.mu.Unlock()
	close(s.done)
}

func (s *Server) closeStore() error {
	if s.store == nil {
		return nil
	}
	if err := s.store.Close(s.owner.zxid); err != nil {
		return &DiskError{err}
	}
	return nil
}

// Addrs returns the addresses that the server listens on: those of Config.Listeners, TLSListeners, Listen
// and TLSListen, in this order.
func (s *Server) Addrs() []net.Addr {
	addrs := make([]net.Addr, len(s.listeners))
	for i, l := range s.listeners {
		addrs[i] = l.Addr()
	}
	return addrs
}

// Done returns a channel that is closed when the server has stopped and unlocked its directory.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err returns why the server stopped on its own: ErrIdle or a failure. It returns nil while the server runs and after
// Close has stopped it.
func (s *Server) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Close stops the server and waits until it has stopped. Sessions survive in the data directory. It returns the error
// of the shutdown, or the failure that stopped the server before. Every call returns the same.
func (s *Server) Close() error {
	s.stop(nil)
	<-s.done
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil && !errors.Is(s.err, ErrIdle) {
		return s.err
	}
	return s.closeErr
}
