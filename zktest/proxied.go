package zktest

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// proxied is one connection through a link: the client's, and the one that the link opened to the server for it.
type proxied struct {
	link           *Link
	number         int
	client, server net.Conn
	up, down       *direction
	clientEOF      chan struct{} // closed when nothing more comes from the client
	done           chan struct{} // closed when the connection has ended
	once           sync.Once     // for close

	// Guarded by link.mu.
	session       int64
	zxid          int64         // of the last reply
	pending       []exchange    // requests without a reply, in order
	held          []packet      // watch events held back, in order
	overtakePath  string        // the node whose next event the event behind it is to overtake; empty if none
	overtaken     []byte        // that event; nil if none waits
	thaw          chan struct{} // closed when frozen packets may go on; nil if none is frozen
	handshakeDone bool          // the handshake's reply has come
	draining      bool          // what the client sends is dropped
	muted         bool          // what the server sends is dropped
	lost          bool          // something was dropped that a connection in order would have delivered
}

func newProxied(l *Link, client, server net.Conn) *proxied {
	return &proxied{
		link: l, client: client, server: server, up: newDirection(), down: newDirection(),
		clientEOF: make(chan struct{}), done: make(chan struct{}),
	}
}

// run carries both directions until both have ended.
func (p *proxied) run() {
	var wg sync.WaitGroup
	wg.Go(p.readClient)
	wg.Go(p.readServer)
	wg.Go(p.writeServer)
	wg.Go(p.writeClient)
	wg.Wait()
}

// close ends the connection at once, for both sides.
func (p *proxied) close() {
	p.once.Do(func() {
		p.link.remove(p)
		close(p.done)
		_ = p.client.Close() // no caller could act on the error
		_ = p.server.Close()
	})
}

func (p *proxied) readClient() {
	defer close(p.clientEOF)
	f := newFrames(p.client)
	handshake := true
	for {
		data, framed, err := f.next()
		if framed {
			p.request(data, handshake)
			handshake = false
		} else {
			p.pass(p.up, packet{data: data, end: endingOf(err)})
		}
		if err != nil {
			return
		}
	}
}

func (p *proxied) readServer() {
	f := newFrames(p.server)
	for {
		data, framed, err := f.next()
		if framed {
			p.reply(data)
		} else {
			p.pass(p.down, packet{data: data, end: endingOf(err)})
		}
		if err != nil {
			return
		}
	}
}

func endingOf(err error) ending {
	switch {
	case err == nil:
		return goesOn
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return ended
	default:
		return broken
	}
}

func (p *proxied) writeServer() {
	switch p.up.deliver(p.server, p.done, p.reachesServer) {
	case ended:
		closeWrite(p.server)
	case broken:
		p.close()
	case goesOn:
	}
}

func (p *proxied) writeClient() {
	defer p.close()
	if p.down.deliver(p.client, p.done, p.reachesClient) != ended {
		return
	}
	// Only the writing side of the client's connection is closed, and the link reads on: closing a socket with unread
	// bytes resets it, and the client would lose the replies that it has not read yet.
	p.drain()
	_ = p.server.Close() // no caller could act on the error
	closeWrite(p.client)
	select {
	case <-p.clientEOF:
	case <-p.done:
	}
}

func closeWrite(c net.Conn) {
	if h, ok := c.(interface{ CloseWrite() error }); ok {
		_ = h.CloseWrite() // it fails if the other side has closed first
		return
	}
	_ = c.Close()
}

func (p *proxied) drain() {
	p.link.mu.Lock()
	defer p.link.mu.Unlock()
	p.draining = true
}

// reachesServer reports whether what is about to be written to the server arrives there.
func (p *proxied) reachesServer() bool {
	p.link.mu.Lock()
	defer p.link.mu.Unlock()
	if p.link.ruleLocked(p).halfOpen {
		p.lost = true
		return false
	}
	return true
}

// reachesClient reports whether what is about to be written to the client arrives there.
func (p *proxied) reachesClient() bool {
	p.link.mu.Lock()
	defer p.link.mu.Unlock()
	if r := p.link.ruleLocked(p); r.halfOpen || r.mute {
		p.lost = true
		return false
	}
	return true
}

// thawLocked lets frozen packets go on, unless a rule still freezes them.
func (p *proxied) thawLocked() {
	if p.thaw != nil && !p.link.ruleLocked(p).frozen {
		close(p.thaw)
		p.thaw = nil
	}
}

// pass adds x to a direction as it is.
func (p *proxied) pass(d *direction, x packet) {
	p.link.mu.Lock()
	defer p.link.mu.Unlock()
	if d == p.up && p.draining {
		x.data = nil
	}
	p.addLocked(d, x, 0)
}

func (p *proxied) addLocked(d *direction, x packet, delay time.Duration) {
	r := p.link.ruleLocked(p)
	if r.halfOpen || r.mute && d == p.down {
		p.lost = true
		return
	}
	if r.frozen {
		if p.thaw == nil {
			p.thaw = make(chan struct{})
		}
		x.thaw = p.thaw
	}
	if total := r.delay + delay; total > 0 {
		x.at = time.Now().Add(total)
	}
	d.add(x)
}

func (p *proxied) isDraining() bool {
	p.link.mu.Lock()
	defer p.link.mu.Unlock()
	return p.draining
}
