package zktest

import (
	"context"
	"net"
	"sync"
	"syscall"
	"time"
)

// faults is what is wrong with the way to an address.
type faults struct {
	cut   bool
	dark  bool // half-open
	delay time.Duration
}

// road is the way to one address of a Net: who listens there, the connections over it, and its faults.
type road struct {
	mu       sync.Mutex // guards the fields below; taken inside a half's, never the other way round
	faults   faults
	listener *listener
	conns    map[*conn]*conn // client's end to server's end, while one of the two is open
	changed  chan struct{}   // closed at the next change of the faults; nil while nobody waits for one
}

func (r *road) isDark() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.faults.dark
}

func (r *road) latency() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.faults.delay
}

func (r *road) inUse() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.listener != nil
}

func (r *road) announce(l *listener) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listener != nil {
		return false
	}
	r.listener = l
	return true
}

func (r *road) withdraw(l *listener) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listener == l {
		r.listener = nil
	}
}

func (r *road) dial(ctx context.Context, from net.Addr) (*conn, error) {
	if d := r.latency(); d > 0 {
		opened := time.NewTimer(2 * d)
		defer opened.Stop()
		select {
		case <-opened.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		c, changed, err := r.connect(from)
		if changed == nil {
			return c, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// connect makes a connection, or returns the channel that tells when to try again.
func (r *road) connect(from net.Addr) (*conn, <-chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.faults.cut:
		return nil, nil, syscall.ECONNREFUSED
	case r.faults.dark:
		if r.changed == nil {
			r.changed = make(chan struct{})
		}
		return nil, r.changed, nil
	case r.listener == nil:
		return nil, nil, syscall.ECONNREFUSED
	}
	clientEnd, serverEnd := newConns(r, from, r.listener.address)
	open := 2
	gone := func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if open--; open == 0 {
			delete(r.conns, clientEnd)
		}
	}
	clientEnd.gone, serverEnd.gone = gone, gone
	if !r.listener.offer(serverEnd) {
		return nil, nil, syscall.ECONNREFUSED
	}
	r.conns[clientEnd] = serverEnd
	return clientEnd, nil, nil
}

// change changes the faults, and does to the connections what follows from it.
func (r *road) change(change func(*faults)) {
	r.mu.Lock()
	before := r.faults
	change(&r.faults)
	now := r.faults
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
	var ends []*conn
	for clientEnd := range r.conns {
		ends = append(ends, clientEnd)
	}
	r.mu.Unlock()

	for _, c := range ends {
		switch {
		case now.cut:
			c.reset()
		case now.dark && !before.dark:
			c.in.darken()
			c.out.darken()
		case before.dark && !now.dark && (c.in.hasLost() || c.out.hasLost()):
			c.reset()
		}
	}
}

// listener is the listening end of a road.
type listener struct {
	address net.Addr
	road    *road

	mu      sync.Mutex // guards the fields below
	waiting []*conn
	closed  bool
	changed chan struct{} // closed at the next change; nil while nobody waits for one
}

// offer queues c to be accepted, false if the listener has closed.
func (l *listener) offer(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.waiting = append(l.waiting, c)
	l.signalLocked()
	return true
}

func (l *listener) signalLocked() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		c, changed, err := l.next()
		if changed == nil {
			if err != nil {
				return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.address, Err: err}
			}
			return c, nil
		}
		<-changed
	}
}

func (l *listener) next() (*conn, <-chan struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, nil, net.ErrClosed
	case len(l.waiting) > 0:
		c := l.waiting[0]
		l.waiting = l.waiting[1:]
		return c, nil, nil
	}
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return nil, l.changed, nil
}

func (l *listener) Close() error {
	l.road.withdraw(l)
	l.mu.Lock()
	closed, waiting := l.closed, l.waiting
	l.closed, l.waiting = true, nil
	l.signalLocked()
	l.mu.Unlock()
	if closed {
		return &net.OpError{Op: "close", Net: "tcp", Addr: l.address, Err: net.ErrClosed}
	}
	for _, c := range waiting { // without the lock: a road takes it while connections wait for the road
		c.reset()
	}
	return nil
}

func (l *listener) Addr() net.Addr { return l.address }
