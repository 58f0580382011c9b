package zktest

import (
	"context"
	"net"
	"sync"
	"syscall"
	"time"
)

// faults are the faults of an address.
type faults struct {
	cut      bool
	halfOpen bool
	delay    time.Duration
}

// endpoint is one address of a Net: its listener, the connections to it, and its faults.
type endpoint struct {
	mu       sync.Mutex // guards the fields below; may be taken while a pipe's is held, never the other way round
	faults   faults
	listener *listener
	conns    map[*conn]*conn // client's end to server's end, while one of the two is open
	changed  broadcast       // of the faults
}

// now returns the current faults.
func (e *endpoint) now() faults {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.faults
}

func (e *endpoint) inUse() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.listener != nil
}

func (e *endpoint) setListener(l *listener) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.listener != nil {
		return false
	}
	e.listener = l
	return true
}

func (e *endpoint) removeListener(l *listener) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.listener == l {
		e.listener = nil
	}
}

func (e *endpoint) dial(ctx context.Context, from net.Addr) (*conn, error) {
	if d := e.now().delay; d > 0 {
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
		c, retry, err := e.connect(from)
		if retry == nil {
			return c, err
		}
		select {
		case <-retry:
		case <-ctx.Done():
		}
	}
}

// connect makes a connection. While the endpoint is half-open it returns a channel that says when to retry.
func (e *endpoint) connect(from net.Addr) (c *conn, retry <-chan struct{}, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.faults.cut:
		return nil, nil, syscall.ECONNREFUSED
	case e.faults.halfOpen:
		return nil, e.changed.wait(), nil
	case e.listener == nil:
		return nil, nil, syscall.ECONNREFUSED
	}
	clientEnd, serverEnd := newConns(e, from, e.listener.address)
	open := 2
	onClose := func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if open--; open == 0 {
			delete(e.conns, clientEnd)
		}
	}
	clientEnd.onClose, serverEnd.onClose = onClose, onClose
	if !e.listener.offer(serverEnd) {
		return nil, nil, syscall.ECONNREFUSED
	}
	e.conns[clientEnd] = serverEnd
	return clientEnd, nil, nil
}

// change changes the faults and applies them to the open connections.
func (e *endpoint) change(change func(*faults)) {
	e.mu.Lock()
	before := e.faults
	change(&e.faults)
	now := e.faults
	e.changed.signal()
	var ends []*conn
	for clientEnd := range e.conns {
		ends = append(ends, clientEnd)
	}
	e.mu.Unlock()

	for _, c := range ends {
		switch {
		case now.cut:
			c.reset()
		case now.halfOpen && !before.halfOpen:
			c.in.loseInFlight()
			c.out.loseInFlight()
		case before.halfOpen && !now.halfOpen && (c.in.hasLost() || c.out.hasLost()):
			c.reset()
		}
	}
}

// listener listens at an endpoint.
type listener struct {
	address  net.Addr
	endpoint *endpoint

	mu      sync.Mutex // guards the fields below
	waiting []*conn    // to be accepted
	closed  bool
	changed broadcast
}

// offer queues c to be accepted. It returns false if the listener has closed.
func (l *listener) offer(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.waiting = append(l.waiting, c)
	l.changed.signal()
	return true
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
	return nil, l.changed.wait(), nil
}

func (l *listener) Close() error {
	l.endpoint.removeListener(l)
	l.mu.Lock()
	closed, waiting := l.closed, l.waiting
	l.closed, l.waiting = true, nil
	l.changed.signal()
	l.mu.Unlock()
	if closed {
		return &net.OpError{Op: "close", Net: "tcp", Addr: l.address, Err: net.ErrClosed}
	}
	// Unlocked: the endpoint takes l.mu while pipes wait for the endpoint's lock, and reset takes the pipes' locks.
	for _, c := range waiting {
		c.reset()
	}
	return nil
}

func (l *listener) Addr() net.Addr { return l.address }
