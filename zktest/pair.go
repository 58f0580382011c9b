package zktest

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// pair is one connection through a link: the client's and the one to the server that stands for it.
type pair struct {
	link           *Link
	number         int
	client, server net.Conn
	up, down       *lane
	clientEOF      chan struct{} // closed when nothing more comes from the client
	done           chan struct{} // closed when the pair has ended
	once           sync.Once     // for closing

	// Guarded by link.mu.
	session  int64
	zxid     int64         // the last one that a reply told
	pending  []exchange    // requests whose reply has not come, in order
	held     []parcel      // watch events held back, in order
	waits    string        // the node whose next event waits for another; empty if none does
	waiting  []byte        // that event; nil if none waits
	thaw     chan struct{} // closed when what is frozen may go on; nil if nothing is
	greeted  bool          // the handshake's reply has come
	draining bool          // what the client sends is thrown away
	muted    bool          // the client hears nothing more
	lost     bool          // something vanished
}

func newPair(l *Link, client, server net.Conn) *pair {
	return &pair{
		link: l, client: client, server: server, up: newLane(), down: newLane(),
		clientEOF: make(chan struct{}), done: make(chan struct{}),
	}
}

// run carries both directions until both have ended.
func (p *pair) run() {
	var wg sync.WaitGroup
	wg.Go(p.readClient)
	wg.Go(p.readServer)
	wg.Go(p.writeServer)
	wg.Go(p.writeClient)
	wg.Wait()
}

// close ends the pair at once, for both sides.
func (p *pair) close() {
	p.once.Do(func() {
		p.link.leave(p)
		close(p.done)
		_ = p.client.Close() // there is nobody left to tell
		_ = p.server.Close()
	})
}

func (p *pair) readClient() {
	defer close(p.clientEOF)
	f := newFrames(p.client)
	handshake := true
	for {
		data, framed, err := f.next()
		if framed {
			p.request(data, handshake)
			handshake = false
		} else {
			p.pass(p.up, parcel{data: data, end: endingOf(err)})
		}
		if err != nil {
			return
		}
	}
}

func (p *pair) readServer() {
	f := newFrames(p.server)
	for {
		data, framed, err := f.next()
		if framed {
			p.reply(data)
		} else {
			p.pass(p.down, parcel{data: data, end: endingOf(err)})
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

func (p *pair) writeServer() {
	switch p.up.carry(p.server, p.done, p.reachesServer) {
	case ended:
		closeWrite(p.server)
	case broken:
		p.close()
	case goesOn:
	}
}

func (p *pair) writeClient() {
	defer p.close()
	if p.down.carry(p.client, p.done, p.reachesClient) != ended {
		return
	}
	// The client's end is closed by halves and read on, because a close with unread bytes would take from the client the
	// replies that it has not read yet.
	p.drain()
	_ = p.server.Close() // whatever it says, nobody hears it
	closeWrite(p.client)
	select {
	case <-p.clientEOF:
	case <-p.done:
	}
}

func closeWrite(c net.Conn) {
	if h, ok := c.(interface{ CloseWrite() error }); ok {
		_ = h.CloseWrite() // it fails if the other side was faster
		return
	}
	_ = c.Close()
}

func (p *pair) drain() {
	p.link.mu.Lock()
	defer p.link.mu.Unlock()
	p.draining = true
}

// reachesServer says whether what is about to be written to the server may arrive there.
func (p *pair) reachesServer() bool {
	p.link.mu.Lock()
	defer p.link.mu.Unlock()
	if p.link.ruleLocked(p).dark {
		p.lost = true
		return false
	}
	return true
}

// reachesClient says whether what is about to be written to the client may arrive there.
func (p *pair) reachesClient() bool {
	p.link.mu.Lock()
	defer p.link.mu.Unlock()
	if r := p.link.ruleLocked(p); r.dark || r.mute {
		p.lost = true
		return false
	}
	return true
}

// thawLocked lets go on what is frozen, unless it is still to be.
func (p *pair) thawLocked() {
	if p.thaw != nil && !p.link.ruleLocked(p).frozen {
		close(p.thaw)
		p.thaw = nil
	}
}

// pass puts x on a lane as it is.
func (p *pair) pass(l *lane, x parcel) {
	p.link.mu.Lock()
	defer p.link.mu.Unlock()
	if l == p.up && p.draining {
		x.data = nil
	}
	p.addLocked(l, x, 0)
}

func (p *pair) addLocked(l *lane, x parcel, delay time.Duration) {
	r := p.link.ruleLocked(p)
	if r.dark || r.mute && l == p.down {
		p.lost = true
		return
	}
	if r.frozen {
		if p.thaw == nil {
			p.thaw = make(chan struct{})
		}
		x.thaw = p.thaw
	}
	if d := r.delay + delay; d > 0 {
		x.at = time.Now().Add(d)
	}
	l.add(x)
}

func (p *pair) isDraining() bool {
	p.link.mu.Lock()
	defer p.link.mu.Unlock()
	return p.draining
}
