package peer

// One proxied address.

import (
	"context"
	"net"
	"time"
)

// redial is the pause between two attempts to reach a server that is not listening yet.
const redial = 10 * time.Millisecond

// A link is an address at which one end reaches a port of a server.
type link struct {
	way      direction
	addr     string
	target   string // the server's port
	election bool   // whether connections begin with the election address of the server that dials
	client   bool   // whether a dial fails at once if the target does not listen; servers wait for each other
	dialler  func(net.Conn) (int, bool)

	// Guarded by Links.mu.
	listener net.Listener // nil while dials of way.from are refused
	conns    map[*connection]bool
}

// openLocked listens, always at the same address.
func (k *link) openLocked(l *Links) error {
	if k.listener != nil {
		return nil
	}
	listener, err := new(net.ListenConfig).Listen(l.ctx, "tcp", k.addr)
	if err != nil {
		return err
	}
	k.listener = listener
	l.wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed
			}
			l.wg.Go(func() { l.serve(k, conn) })
		}
	})
	return nil
}

// closeLocked refuses new connections.
func (k *link) closeLocked() {
	if k.listener != nil {
		_ = k.listener.Close()
		k.listener = nil
	}
}

// serve forwards one connection until both sides have ended.
func (l *Links) serve(k *link, near net.Conn) {
	c := &connection{links: l, way: k.way, near: near}
	if k.dialler != nil {
		from, known := k.dialler(near)
		if !known {
			reset(near)
			return
		}
		c.way.from = from
	}
	if !l.register(k, c) {
		reset(near)
		return
	}
	defer l.unregister(k, c)
	out := newPump(l, c.way, near)
	if k.election {
		out.first = l.rewriteElection
	}
	l.wg.Go(out.read)
	far := l.dial(k, c, out.ended)
	if far == nil {
		reset(near)
		out.stop()
		return
	}
	back := newPump(l, c.way.reverse(), far)
	done := make(chan struct{})
	l.wg.Go(back.read)
	l.wg.Go(func() {
		defer close(done)
		back.write(near)
	})
	out.write(far)
	<-done
	_, _ = near.Close(), far.Close()
}

// register adds the connection to the link, so that Hangup finds it. It returns false if its dial is refused or the
// links are closed.
func (l *Links) register(k *link, c *connection) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused[c.way] || l.ctx.Err() != nil {
		return false
	}
	c.release = context.AfterFunc(l.ctx, c.closeBoth)
	k.conns[c] = true
	return true
}

func (l *Links) unregister(k *link, c *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.release()
	delete(k.conns, c)
}

// dial connects to the link's target when both directions are open. For a server it waits until the target listens,
// because a connection that is closed at once stalls an election. It returns nil if the near end closes first.
func (l *Links) dial(k *link, c *connection, ended <-chan struct{}) net.Conn {
	for l.await(ended, c.way, c.way.reverse()) {
		far, err := new(net.Dialer).DialContext(l.ctx, "tcp", k.target)
		switch {
		case err == nil && l.connected(c, far):
			return far
		case err == nil: // frozen meanwhile: forget this connection and dial again later
			reset(far)
		case k.client:
			return nil
		}
		select {
		case <-time.After(redial):
		case <-ended:
			return nil
		case <-l.ctx.Done():
			return nil
		}
	}
	return nil
}

func (l *Links) connected(c *connection, far net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.frozenLocked(c.way, c.way.reverse()) || l.ctx.Err() != nil {
		return false
	}
	c.far = far
	return true
}

// A connection is one proxied connection.
type connection struct {
	links   *Links
	way     direction // from the near end, which dialled, to the far end
	near    net.Conn
	release func() bool

	far net.Conn // nil until the target is reached; guarded by Links.mu
}

// hangupLocked ends the connection on the side of end at, if it connects the two ends.
func (c *connection) hangupLocked(at, other int) {
	switch {
	case c.way == direction{at, other}:
		reset(c.near)
	case c.way == direction{other, at} && c.far != nil:
		reset(c.far)
	}
}

func (c *connection) closeBoth() {
	c.links.mu.Lock()
	defer c.links.mu.Unlock()
	reset(c.near)
	if c.far != nil {
		reset(c.far)
	}
}
