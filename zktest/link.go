package zktest

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"sync"
	"time"
)

// Link is a proxy between clients and servers that injects faults. It decodes ZooKeeper's protocol, so that a fault can
// apply to a request, to its reply, to watch events or to a session. Server has a Link, and Proxy puts one in front of
// any server.
//
// Methods that take sessions apply to the connections of these sessions, now and after they reconnect; without a
// session they apply to every connection. All methods may be called at any time from any goroutine.
type Link struct {
	upstreams []upstream
	clientTLS *tls.Config
	tls       *tls.Config // nil: clients connect without TLS
	dial      func(ctx context.Context, network, address string) (net.Conn, error)
	fail      func(format string, args ...any) // reports misuse

	closing context.Context //nolint:containedctx // ends when stop begins
	close   context.CancelFunc
	wg      sync.WaitGroup

	controlSlot chan struct{} // guards the three fields below: the goroutine that has filled its one slot may use them
	control     func(Request) Fault
	nth         map[Op]int
	seq         int

	mu          sync.Mutex // guards the fields below; no goroutine waits while it holds mu
	conns       map[*proxied]struct{}
	all         rule             // for every connection
	bySession   map[int64]rule   // for the connections of a session
	passwords   map[int64][]byte // of the sessions that the link has seen
	traffic     Traffic
	lastReplies map[readKey][]byte // for Stale
}

// upstream is one server behind a link: where clients connect, and how to reach the server.
type upstream struct {
	listener net.Listener
	dial     func(ctx context.Context, client net.Addr) (net.Conn, error)
}

// rule is a set of faults that stay until Heal.
type rule struct {
	cut      bool
	halfOpen bool // drops everything
	mute     bool // drops what goes to the client
	frozen   bool // delays everything until it thaws
	hold     bool // holds back watch events
	delay    time.Duration
}

func (r rule) and(s rule) rule {
	return rule{
		cut: r.cut || s.cut, halfOpen: r.halfOpen || s.halfOpen, mute: r.mute || s.mute, frozen: r.frozen || s.frozen,
		hold: r.hold || s.hold, delay: max(r.delay, s.delay),
	}
}

// start accepts connections on all listeners.
func (l *Link) start() {
	l.closing, l.close = context.WithCancel(context.Background())
	l.controlSlot = make(chan struct{}, 1)
	l.nth = make(map[Op]int)
	l.conns = make(map[*proxied]struct{})
	l.bySession = make(map[int64]rule)
	l.passwords = make(map[int64][]byte)
	l.lastReplies = make(map[readKey][]byte)
	l.traffic.Requests = make(map[Op]int)
	for _, u := range l.upstreams {
		l.wg.Go(func() { l.accept(u) })
	}
}

// stop closes every listener and connection and waits for all goroutines.
func (l *Link) stop() {
	l.close()
	for _, u := range l.upstreams {
		_ = u.listener.Close() // it may be closed already
	}
	for _, p := range l.matching(nil) {
		p.close()
	}
	l.wg.Wait()
}

func (l *Link) accept(u upstream) {
	for {
		c, err := u.listener.Accept()
		switch {
		case err == nil:
			l.wg.Go(func() { l.serve(u, c) })
		case errors.Is(err, net.ErrClosed) || l.closing.Err() != nil:
			return
		default: // the process has run out of file descriptors; try again later
			select {
			case <-time.After(10 * time.Millisecond):
			case <-l.closing.Done():
			}
		}
	}
}

func (l *Link) serve(u upstream, client net.Conn) {
	server, err := u.dial(l.closing, client.RemoteAddr())
	if err != nil {
		_ = client.Close() // all that a client learns of a server that is down
		return
	}
	if l.tls != nil {
		client = tls.Server(client, l.tls)
	}
	p := newProxied(l, client, server)
	if !l.add(p) {
		p.close()
		return
	}
	p.run()
}

func (l *Link) add(p *proxied) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all.cut || l.closing.Err() != nil {
		return false
	}
	l.traffic.Connections++
	p.number = l.traffic.Connections
	l.conns[p] = struct{}{}
	return true
}

func (l *Link) remove(p *proxied) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, p)
}

func (l *Link) ruleLocked(p *proxied) rule { return l.all.and(l.bySession[p.session]) }

// matching returns the connections of the sessions, or every connection if sessions is empty.
func (l *Link) matching(sessions []int64) []*proxied {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.matchingLocked(sessions)
}

func (l *Link) matchingLocked(sessions []int64) []*proxied {
	var found []*proxied
	for p := range l.conns {
		if len(sessions) == 0 || slices.Contains(sessions, p.session) {
			found = append(found, p)
		}
	}
	return found
}

// change changes the rules and returns the connections to which they apply.
func (l *Link) change(sessions []int64, change func(*rule)) []*proxied {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(sessions) == 0 {
		change(&l.all)
		for id, r := range l.bySession {
			change(&r)
			l.bySession[id] = r
		}
	}
	for _, id := range sessions {
		r := l.bySession[id]
		change(&r)
		l.bySession[id] = r
	}
	return l.matchingLocked(sessions)
}

// decide counts a request and calls the control function with it.
func (l *Link) decide(r *Request) Fault {
	l.controlSlot <- struct{}{}
	defer func() { <-l.controlSlot }()
	l.nth[r.Op]++
	r.Nth = l.nth[r.Op]
	if r.Op != OpPing && r.Op != OpConnect {
		l.seq++
		r.Seq = l.seq
	}
	if l.control == nil {
		return Pass
	}
	return l.control(*r)
}
