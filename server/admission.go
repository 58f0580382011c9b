package server

// Which connections may be open. Each counts until its descriptor is closed.

import (
	"container/list"
	"math"
	"net/netip"
	"time"
)

// filesAside is how many files a process with a server has besides connections: the store's tables and logs, listeners,
// certificates that are read, and what the rest of the process needs.
const filesAside = 128

// admission counts connections. The server's mutex guards it.
type admission struct {
	opened  int            // all that are not closed yet
	most    int            // how many of these there may be
	counted int            // those that count towards Limits.Conns: all but those about to close
	admins  int            // those for HTTP commands, which nobody can log in on
	perIP   map[string]int // counted by addressKey

	lingering connList // have sent their last reply, see hangUp
	strangers connList // have not logged in, if Config.RequireSASL
}

func newAdmission(cfg *Config) admission {
	return admission{
		most: cfg.mostOpen(), perIP: make(map[string]int),
		lingering: connList{of: make(map[string]int)}, strangers: connList{of: make(map[string]int)},
	}
}

// connsWithin returns how many connections may count if the process may have that many files: 8 of 9 that are left, so
// that there are some for those about to close.
func connsWithin(files int64) int {
	return int(max(1, (files-min(filesAside, files/2))*8/9))
}

// mostOpen returns how many descriptors connections may have.
func (c *Config) mostOpen() int {
	most := math.MaxInt
	if files := fileLimit(); files > 0 {
		most = int(files - min(filesAside, files/2))
	}
	if n := c.Limits.Conns; n >= 0 {
		most = min(most, n+eighth(n))
	}
	return most
}

// eighth returns the share of a limit of connections for those that serve no client, or none any more.
func eighth(limit int) int { return max(16, limit/8) }

// connList is a list of connections, the oldest first.
type connList struct {
	list.List
	of map[string]int // how many, by addressKey
}

func (l *connList) add(c *conn) {
	c.listed, c.place = l, l.PushBack(c)
	l.of[c.from]++
}

// remove removes c from the list that it is in, if any.
func (c *conn) leaveList() {
	l := c.listed
	if l == nil {
		return
	}
	l.Remove(c.place)
	if l.of[c.from]--; l.of[c.from] == 0 {
		delete(l.of, c.from)
	}
	c.listed, c.place = nil, nil
}

// oldest returns the oldest connection of an address, or of all if from is "". It returns nil if there is none.
func (l *connList) oldest(from string) *conn {
	for e := l.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*conn); from == "" || c.from == from {
			return c
		}
	}
	return nil
}

// makeRoom reports whether another connection of an address may be open, and else which limit it meets. If connections
// are in the way that are about to close, or that have not logged in and have used up the share of such ones, it closes
// the oldest: those that mean well log in at once. The caller holds s.mu, which makeRoom releases meanwhile.
func (s *Server) makeRoom(from string) (met limit, ok bool) {
	for !s.closed {
		var old *conn
		switch {
		case full(s.strangers.of[from], half(s.cfg.MaxClientConns)):
			old = s.strangers.oldest(from)
		case full(s.strangers.Len(), half(s.cfg.Limits.Conns)):
			old = s.strangers.oldest("")
		case full(s.counted, s.cfg.Limits.Conns):
			return limitConns, false
		case full(s.perIP[from], s.cfg.MaxClientConns):
			return limitConnsPerAddress, false
		case s.opened < s.most:
			return 0, true
		default:
			old = s.lingering.oldest("")
		}
		if old == nil {
			return limitConns, false
		}
		s.mu.Unlock()
		old.kill()
		s.mu.Lock()
	}
	return limitConns, false
}

// count counts a connection that was admitted. The caller holds s.mu.
func (s *Server) count(from string) {
	s.opened++
	s.counted++
	s.perIP[from]++
}

// discount undoes count, but for the descriptor. The caller holds s.mu.
func (s *Server) discount(from string) {
	s.counted--
	if s.perIP[from]--; s.perIP[from] == 0 {
		delete(s.perIP, from)
	}
}

// linger stops counting a connection that is about to close towards the limits of all connections. It runs before the
// client can see the connection end: a client that reconnects at once must not be refused because of a connection that
// is over, nor find it in a list. There is a limit of its own for what lingers, see makeRoom.
func (s *Server) linger(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.counted {
		return
	}
	c.counted = false
	s.discount(c.from)
	c.leaveList()
	s.lingering.add(c)
}

// remove removes a connection that is about to be closed.
func (s *Server) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.counted {
		c.counted = false
		s.discount(c.from)
	}
	c.leaveList()
	delete(s.conns, c.id)
}

// closed notes that a connection's descriptor is closed.
func (s *Server) closedConn(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.open {
		c.open = false
		s.opened--
	}
}

// loggedIn notes that a connection has logged in.
func (s *Server) loggedIn(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.listed == &s.strangers {
		c.leaveList()
	}
}

// meet puts a new session into the list of those in which nobody has logged in. They may have half of all sessions: one
// more ends the oldest. Others could otherwise not even log in.
func (o *owner) meet(s *session) { s.stranger = o.unknown.PushBack(s) }

// makeSessionRoom ends sessions in which nobody has logged in until there may be one more.
func (o *owner) makeSessionRoom() {
	for o.unknown.Len() > 0 && full(o.unknown.Len(), half(o.cfg.Limits.Sessions)) {
		o.endSession(o.unknown.Front().Value.(*session), nil)
	}
}

// forget removes a session from that list.
func (o *owner) forget(s *session) {
	if s.stranger != nil {
		o.unknown.Remove(s.stranger)
		s.stranger = nil
	}
}

// known notes that the client of a connection has logged in, as Config.RequireSASL demands. Until then it has only the
// time for a handshake.
func (o *owner) known(c *conn) {
	o.Server.loggedIn(c)
	if s := c.sess.Load(); s != nil {
		o.forget(s)
	}
	_ = c.nc.SetReadDeadline(time.Time{})
}

// admitAdmin reports whether a connection for HTTP commands may be open, and counts it.
func (s *Server) admitAdmin(c *adminConn) bool {
	s.mu.Lock()
	met, ok := limitConns, s.admins < eighth(s.cfg.Limits.Conns)
	if ok {
		met, ok = s.makeRoom(c.from)
	}
	if ok {
		s.admins++
		s.count(c.from)
	}
	s.mu.Unlock()
	if !ok {
		s.hit(met, c.RemoteAddr().String())
	}
	return ok
}

// adminGone notes that a connection for HTTP commands is closed.
func (s *Server) adminGone(c *adminConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.admins--
	s.opened--
	s.discount(c.from)
}

// addressKey returns what limits per address count for an address: of IPv6 the network of 64 bits, because a client has
// all addresses in it.
func addressKey(ip string) string {
	a, err := netip.ParseAddr(ip)
	if err != nil || !a.Unmap().Is6() {
		return ip
	}
	net, err := a.WithZone("").Prefix(64)
	if err != nil {
		return ip
	}
	return net.String()
}
