package zktest

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/jute"
	"github.com/seed-a3166700/turnstile/internal/wire"
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
	zxid     int64      // the last one that a reply told
	pending  []exchange // requests whose reply has not come, in order
	held     []parcel   // watch events held back, in order
	greeted  bool       // the handshake's reply has come
	draining bool       // what the client sends is thrown away
	muted    bool       // the client hears nothing more
	lost     bool       // something vanished
}

// exchange is a request under way and what is to happen with its reply.
type exchange struct {
	xid   int32
	fault Fault
}

// local says that the server does not know of the request: its reply is made here when it is its turn.
func (e *exchange) local() bool {
	return e.fault.kind == kindRefuse || e.fault.kind == kindCutBefore || e.fault.kind == kindAnswer
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
	if d := r.delay + delay; d > 0 {
		x.at = time.Now().Add(d)
	}
	l.add(x)
}

// request takes a frame of the client.
func (p *pair) request(data []byte, handshake bool) {
	r, ok := p.decode(data[4:], handshake)
	switch {
	case !ok:
		p.pass(p.up, parcel{data: data})
		return
	case p.isDraining():
		return
	}
	fault := p.link.decide(&r)
	if handshake && fault.kind == kindAnswer {
		fault = Refuse // there is no such thing as a handshake answered with an error
	}
	p.forward(data, &r, fault)
	if fault.kind == kindCutBefore {
		p.close()
	}
}

func (p *pair) forward(data []byte, r *Request, fault Fault) {
	p.link.mu.Lock()
	defer p.link.mu.Unlock()
	if p.draining {
		return
	}
	p.link.traffic.Requests[r.Op]++
	p.pending = append(p.pending, exchange{xid: r.Xid, fault: fault})
	x := parcel{data: data}
	switch fault.kind {
	case kindRefuse, kindCutBefore:
		p.draining = true
	case kindDropReply, kindCutAfter:
		p.draining = true
		p.addLocked(p.up, x, 0)
	case kindHoldRequest:
		x.until = fault.until
		p.addLocked(p.up, x, fault.delay)
	case kindAnswer:
	case kindPass, kindMute, kindHoldReply:
		p.addLocked(p.up, x, 0)
	}
	p.settleLocked()
}

func (p *pair) isDraining() bool {
	p.link.mu.Lock()
	defer p.link.mu.Unlock()
	return p.draining
}

// decode reads what a control function wants to know. False if there is no telling what the frame is.
func (p *pair) decode(body []byte, handshake bool) (Request, bool) {
	if !handshake {
		r, ok := decodeRequest(body)
		p.link.mu.Lock()
		defer p.link.mu.Unlock()
		r.Session, r.Conn = p.session, p.number
		return r, ok
	}
	d := jute.NewDecoder(body)
	var c wire.ConnectRequest
	if c.Decode(d); d.Err() != nil {
		return Request{}, false
	}
	p.link.mu.Lock()
	p.session = c.SessionID
	cut := p.link.ruleLocked(p).cut
	p.link.mu.Unlock()
	if cut {
		p.drain()
		p.close()
	}
	return Request{Op: OpConnect, Session: c.SessionID, Conn: p.number}, true
}

// reply takes a frame of the server.
func (p *pair) reply(data []byte) {
	p.link.mu.Lock()
	defer p.link.mu.Unlock()
	body := data[4:]
	if !p.greeted {
		p.greeted = true
		p.greetLocked(body)
		p.answerLocked(data, 0)
		return
	}
	d := jute.NewDecoder(body)
	var h wire.ReplyHeader
	if h.Decode(d); d.Err() != nil {
		p.addLocked(p.down, parcel{data: data}, 0)
		return
	}
	if h.Xid == wire.XidNotification {
		p.link.traffic.Events++
		p.eventLocked(parcel{data: data})
		return
	}
	p.zxid = max(p.zxid, h.Zxid)
	p.answerLocked(data, h.Xid)
}

// greetLocked learns from the handshake's reply whose connection this is.
func (p *pair) greetLocked(body []byte) {
	d := jute.NewDecoder(body)
	var c wire.ConnectResponse
	if c.Decode(d); d.Err() != nil {
		return
	}
	if c.Timeout <= 0 {
		p.session = 0 // it has expired
		return
	}
	p.session = c.SessionID
	p.link.sessions[c.SessionID] = append([]byte(nil), c.Password...)
}

func (p *pair) eventLocked(x parcel) {
	switch {
	case p.muted:
		p.lost = true
	case p.link.ruleLocked(p).hold:
		p.held = append(p.held, x)
	default:
		p.addLocked(p.down, x, 0)
	}
}

// releaseLocked sends the events that were held back, unless they are still to be.
func (p *pair) releaseLocked() {
	if p.link.ruleLocked(p).hold {
		return
	}
	for _, x := range p.held {
		p.eventLocked(x)
	}
	p.held = nil
}

// answerLocked takes the reply to the first request under way that has this xid, which is the first of all but for those that servers
// answer out of turn: pings and auth.
func (p *pair) answerLocked(data []byte, xid int32) {
	p.link.traffic.Replies++
	var fault Fault
	for i, e := range p.pending {
		if e.xid == xid && !e.local() {
			fault = e.fault
			p.pending = append(p.pending[:i], p.pending[i+1:]...)
			break
		}
	}
	x, delay := parcel{data: data}, time.Duration(0)
	switch fault.kind {
	case kindMute:
		p.muted = true
	case kindDropReply:
		x = parcel{end: ended}
	case kindCutAfter:
		x.end = ended
	case kindHoldReply:
		x.until, delay = fault.until, fault.delay
	case kindPass, kindRefuse, kindCutBefore, kindAnswer, kindHoldRequest:
	}
	if p.muted {
		p.lost = true
		return
	}
	p.addLocked(p.down, x, delay)
	p.settleLocked()
}

// settleLocked does what is to be done in the server's place for the requests whose turn it is.
func (p *pair) settleLocked() {
	for len(p.pending) > 0 && p.pending[0].local() {
		e := p.pending[0]
		p.pending = p.pending[1:]
		if e.fault.kind != kindAnswer {
			p.addLocked(p.down, parcel{end: ended}, 0)
			return
		}
		h := wire.ReplyHeader{Xid: e.xid, Zxid: p.zxid, Err: wire.Code(e.fault.code)}
		p.addLocked(p.down, parcel{data: wire.AppendReply(nil, h, nil)}, 0)
	}
}
