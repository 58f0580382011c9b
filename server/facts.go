package server

// What the four-letter words and the HTTP commands report.

import (
	"cmp"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

const (
	// versionText names the version of ZooKeeper whose behaviour the server follows, in the form that monitoring
	// systems parse.
	versionText = "3.9.5-turnstile, built on 2026-11-21 00:00 UTC"
	notServing  = "This ZooKeeper instance is not currently serving requests"
	mode        = "standalone"
	serverID    = 0
)

// facts is a snapshot of what the four-letter words and the HTTP commands report.
type facts struct {
	zxid        int64
	nodes       int // as ZooKeeper counts them, with the root twice
	dataSize    int64
	sessions    int
	ephemerals  int
	watches     int
	watchConns  int // connections with watches on data
	watchPaths  int
	watchTotal  int
	latency     latency
	size        struct{ last, min, max int }
	received    int64
	sent        int64
	authFailed  int64
	refusals    map[string]int64 // by quotas, for each child of the root
	outstanding int
	plain       int // connections without TLS
	secure      int // and with it
	uptime      time.Duration
}

// connFacts are the facts of one connection.
type connFacts struct {
	remote  string
	secure  bool
	session int64
	timeout time.Duration
	since   time.Time
	queued  int
	recved  int64
	sent    int64
	lop     wire.Op
	lcxid   int32
	lzxid   int64
	lresp   time.Time
	llat    time.Duration
	latency latency
}

// connected returns the number of connections.
func (f *facts) connected() int { return f.plain + f.secure }

// facts collects the facts. It returns false if the server has stopped.
func (s *Server) facts() (*facts, bool) {
	f := &facts{received: s.stats.received.Load(), sent: s.stats.sent.Load(), authFailed: s.stats.authFailed.Load()}
	f.uptime = time.Since(s.clock.base)
	s.stats.mu.Lock()
	f.latency, f.size = s.stats.latency, s.stats.size
	s.stats.mu.Unlock()
	f.countConns(s)
	err := s.do(func(o *owner) {
		f.zxid = o.shown(false)
		f.nodes, f.dataSize = o.tree.NodeCount()+1, o.tree.DataSize()
		f.sessions, f.ephemerals, f.watches = o.tree.SessionCount(), o.tree.EphemeralCount(), o.tree.WatchCount()
		f.refusals = o.tree.QuotaRefusals()
		f.watchConns, f.watchPaths, f.watchTotal = o.tree.WatchSummary()
	})
	return f, err == nil
}

func (f *facts) countConns(s *Server) {
	defer s.takeTurn()()
	for _, c := range s.allConns() {
		if c.secure {
			f.secure++
		} else {
			f.plain++
		}
		f.outstanding += c.queued()
	}
}

// allConns returns the connections that count, oldest first: all but those that are about to close.
func (s *Server) allConns() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	conns := slices.SortedFunc(maps.Values(s.conns), func(a, b *conn) int { return cmp.Compare(a.id, b.id) })
	return slices.DeleteFunc(conns, func(c *conn) bool { return !c.counted })
}

// killAll closes all connections.
func (s *Server) killAll() {
	s.mu.Lock()
	conns := slices.Collect(maps.Values(s.conns))
	s.mu.Unlock()
	for _, c := range conns {
		c.kill()
	}
}

// queued returns the number of requests without an answer.
func (c *conn) queued() int {
	c.outbox.mu.Lock()
	defer c.outbox.mu.Unlock()
	return max(c.outbox.pending, 0)
}

func (c *conn) facts() connFacts {
	cf := connFacts{remote: c.remote, secure: c.secure, since: c.since, recved: c.recved.Load(), lcxid: c.lcxid.Load()}
	if sess := c.sess.Load(); sess != nil {
		cf.session, cf.timeout = sess.id, time.Duration(sess.timeout.Load())
	}
	c.outbox.mu.Lock()
	defer c.outbox.mu.Unlock()
	cf.queued, cf.sent = max(c.outbox.pending, 0), c.sentN
	cf.lop, cf.lzxid, cf.lresp, cf.llat, cf.latency = c.lop, c.lzxid, c.lresp, c.llat, c.latency
	return cf
}

// clientPort returns the port of the first TCP listener, plain or with TLS, -1 if there is none.
func (s *Server) clientPort(secure bool) int {
	for _, l := range s.listeners {
		if a, ok := l.Addr().(*net.TCPAddr); ok && l.secure == secure {
			return a.Port
		}
	}
	return -1
}

// setting is one line of the four-letter word conf.
type setting struct {
	key   string // of conf
	json  string // of the HTTP command; "" if it has no such key
	value any
}

// settings returns the configuration as ZooKeeper shows it.
func (s *Server) settings() []setting {
	size := s.diskSize()
	return []setting{
		{"clientPort", "client_port", s.clientPort(false)},
		{"secureClientPort", "", s.clientPort(true)},
		{"dataDir", "data_dir", s.cfg.Data},
		{"dataDirSize", "", size},
		{"dataLogDir", "data_log_dir", s.cfg.Data},
		{"dataLogSize", "", size},
		{"tickTime", "tick_time", s.cfg.TickTime.Milliseconds()},
		{"maxClientCnxns", "max_client_cnxns", max(s.cfg.MaxClientConns, 0)},
		{"minSessionTimeout", "min_session_timeout", s.cfg.MinSessionTimeout.Milliseconds()},
		{"maxSessionTimeout", "max_session_timeout", s.cfg.MaxSessionTimeout.Milliseconds()},
		{"clientPortListenBacklog", "client_port_listen_backlog", -1},
		{"serverId", "server_id", serverID},
	}
}

// diskSize returns how many bytes the state takes on disk.
func (s *Server) diskSize() int64 {
	if s.store == nil {
		return 0
	}
	return s.store.Size()
}

// openFiles returns how many file descriptors the process has, -1 if unknown.
func openFiles() int {
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(names)
}

// decimal formats a mean as ZooKeeper does: with one to four digits after the point.
func decimal(v float64) string {
	s := strconv.FormatFloat(v, 'f', 4, 64)
	for len(s) > 1 && s[len(s)-1] == '0' && s[len(s)-2] != '.' {
		s = s[:len(s)-1]
	}
	return s
}
