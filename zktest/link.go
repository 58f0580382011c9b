package zktest

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"
)

// Link is the way from clients to a server, with faults at call. It knows the frames of ZooKeeper's protocol, so that a fault can be
// aimed at a request, at its reply, at watch events or at a session. Server has one, and Proxy puts one before any other server.
//
// Faults that take sessions mean the connections of these sessions, now and when they reconnect; without a session they mean every
// connection. All methods may be called at any time from any goroutine.
type Link struct {
	fronts    []front
	clientTLS *tls.Config
	tls       *tls.Config                                                          // how clients are served; nil: plain
	dial      func(ctx context.Context, network, address string) (net.Conn, error) // how clients get here
	fail      func(format string, args ...any)                                     // reports misuse

	closing context.Context //nolint:containedctx // ends when Close begins
	close   context.CancelFunc
	wg      sync.WaitGroup

	turn    chan struct{} // one slot: whoever fills it may use the three fields below
	control func(Request) Fault
	nth     map[Op]int
	seq     int

	mu       sync.Mutex // guards the fields below; nobody waits with it held
	pairs    map[*pair]struct{}
	all      rule             // for every connection
	per      map[int64]rule   // for those of a session
	sessions map[int64][]byte // the passwords of sessions that were seen
	traffic  Traffic
	seen     map[read][]byte // the last replies to reads
}

// front is where clients connect to, and the way on from there.
type front struct {
	listener net.Listener
	toServer func(ctx context.Context, client net.Addr) (net.Conn, error)
}

// rule is what is wrong with connections until further notice.
type rule struct {
	cut    bool
	dark   bool // what is on its way vanishes
	mute   bool // what is on its way to the client vanishes
	frozen bool // what is on its way waits
	hold   bool // watch events are held back
	delay  time.Duration
}

func (r rule) and(s rule) rule {
	return rule{
		cut: r.cut || s.cut, dark: r.dark || s.dark, mute: r.mute || s.mute, frozen: r.frozen || s.frozen,
		hold: r.hold || s.hold, delay: max(r.delay, s.delay),
	}
}

// start makes l accept on its listeners.
func (l *Link) start() {
	l.closing, l.close = context.WithCancel(context.Background())
	l.turn = make(chan struct{}, 1)
	l.nth = make(map[Op]int)
	l.pairs = make(map[*pair]struct{})
	l.per = make(map[int64]rule)
	l.sessions = make(map[int64][]byte)
	l.seen = make(map[read][]byte)
	l.traffic.Requests = make(map[Op]int)
	for _, f := range l.fronts {
		l.wg.Go(func() { l.accept(f) })
	}
}

// stop closes everything and waits for it.
func (l *Link) stop() {
	l.close()
	for _, f := range l.fronts {
		_ = f.listener.Close() // it may have been closed before
	}
	for _, p := range l.matching(nil) {
		p.close()
	}
	l.wg.Wait()
}

func (l *Link) accept(f front) {
	for {
		c, err := f.listener.Accept()
		switch {
		case err == nil:
			l.wg.Go(func() { l.serve(f, c) })
		case errors.Is(err, net.ErrClosed) || l.closing.Err() != nil:
			return
		default: // the process is out of file descriptors, which passes
			select {
			case <-time.After(10 * time.Millisecond):
			case <-l.closing.Done():
			}
		}
	}
}

func (l *Link) serve(f front, client net.Conn) {
	server, err := f.toServer(l.closing, client.RemoteAddr())
	if err != nil {
		_ = client.Close() // the client sees that nobody serves
		return
	}
	if l.tls != nil {
		client = tls.Server(client, l.tls)
	}
	p := newPair(l, client, server)
	if !l.join(p) {
		p.close()
		return
	}
	p.run()
}

func (l *Link) join(p *pair) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all.cut || l.closing.Err() != nil {
		return false
	}
	l.traffic.Connections++
	p.number = l.traffic.Connections
	l.pairs[p] = struct{}{}
	return true
}

func (l *Link) leave(p *pair) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pairs, p)
}

func (l *Link) ruleLocked(p *pair) rule { return l.all.and(l.per[p.session]) }

// matching returns the connections of the sessions, all of them if there is none.
func (l *Link) matching(sessions []int64) []*pair {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.matchingLocked(sessions)
}

func (l *Link) matchingLocked(sessions []int64) []*pair {
	var found []*pair
	for p := range l.pairs {
		match := len(sessions) == 0
		for _, id := range sessions {
			match = match || id == p.session
		}
		if match {
			found = append(found, p)
		}
	}
	return found
}

// change changes the rules and returns the connections that they are about.
func (l *Link) change(sessions []int64, change func(*rule)) []*pair {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(sessions) == 0 {
		change(&l.all)
		for id, r := range l.per {
			change(&r)
			l.per[id] = r
		}
	}
	for _, id := range sessions {
		r := l.per[id]
		change(&r)
		l.per[id] = r
	}
	return l.matchingLocked(sessions)
}

// decide counts a request and asks the control function about it.
func (l *Link) decide(r *Request) Fault {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
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
