package zktest

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/seed-a3166700/turnstile/internal/jute"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// exchange is a request under way and what is to happen with its reply.
type exchange struct {
	xid   int32
	fault Fault
	read  read   // what the server's reply is remembered as; zero if it is not
	reply []byte // that is remembered, for kindStale
}

// read is what makes two reads the same.
type read struct {
	code int32
	path string
}

// remembered bounds how many replies a Link remembers.
const remembered = 1 << 12

// local says that the server does not know of the request: its reply is made here when it is its turn.
func (e *exchange) local() bool {
	switch e.fault.kind {
	case kindRefuse, kindCutBefore, kindAnswer, kindStale:
		return true
	default:
		return false
	}
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
	e := exchange{xid: r.Xid, fault: fault}
	switch r.Op {
	case OpExists, OpGetData, OpGetChildren, OpGetACL:
		e.read = read{r.Code, r.Path}
	default:
	}
	if fault.kind == kindStale {
		if e.reply = p.link.seen[e.read]; e.reply == nil || r.Watch {
			fault = Pass
			e.fault = fault
		}
	}
	p.pending = append(p.pending, e)
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
	case kindAnswer, kindStale:
	case kindPass, kindMute, kindHoldReply:
		p.addLocked(p.up, x, 0)
	}
	p.settleLocked()
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
		if p.waits != "" && eventPath(d) == p.waits {
			p.waits, p.waiting = "", data
			return
		}
		p.eventLocked(parcel{data: data})
		p.overtakenLocked()
		return
	}
	p.overtakenLocked() // what the reply shows was told before
	p.zxid = max(p.zxid, h.Zxid)
	p.answerLocked(data, h.Xid)
}

// eventPath returns the node that a notification is about.
func eventPath(d *jute.Decoder) string {
	var e wire.Event
	e.Decode(d)
	return e.Path
}

// overtakenLocked sends the event that has waited for another.
func (p *pair) overtakenLocked() {
	if p.waiting != nil {
		p.eventLocked(parcel{data: p.waiting})
		p.waiting = nil
	}
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
			p.link.rememberLocked(e.read, data)
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
	case kindPass, kindRefuse, kindCutBefore, kindAnswer, kindStale, kindHoldRequest:
	}
	if p.muted {
		p.lost = true
		return
	}
	p.addLocked(p.down, x, delay)
	p.settleLocked()
}

// rememberLocked keeps the reply to a read for Stale.
func (l *Link) rememberLocked(r read, reply []byte) {
	if r == (read{}) {
		return
	}
	if len(l.seen) == remembered {
		clear(l.seen)
	}
	l.seen[r] = bytes.Clone(reply)
}

// settleLocked does what is to be done in the server's place for the requests whose turn it is.
func (p *pair) settleLocked() {
	for len(p.pending) > 0 && p.pending[0].local() {
		e := p.pending[0]
		p.pending = p.pending[1:]
		switch e.fault.kind {
		case kindStale:
			reply := bytes.Clone(e.reply)
			binary.BigEndian.PutUint32(reply[4:], uint32(e.xid)) // behind the length
			p.addLocked(p.down, parcel{data: reply}, 0)
			continue
		case kindAnswer:
		default:
			p.addLocked(p.down, parcel{end: ended}, 0)
			return
		}
		h := wire.ReplyHeader{Xid: e.xid, Zxid: p.zxid, Err: wire.Code(e.fault.code)}
		p.addLocked(p.down, parcel{data: wire.AppendReply(nil, h, nil)}, 0)
	}
}
