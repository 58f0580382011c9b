package zktest

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/seed-a3166700/turnstile/internal/jute"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// exchange is a request without a reply yet, and the fault that applies to it.
type exchange struct {
	xid   int32
	fault Fault
	read  readKey // under which to remember the server's reply; zero if not at all
	reply []byte  // the remembered reply, for kindStale
}

// readKey identifies a read: two reads with the same key ask for the same.
type readKey struct {
	code int32
	path string
}

// maxLastReplies bounds how many replies a Link remembers.
const maxLastReplies = 1 << 12

// local reports whether the server never sees the request: the link replies when all earlier requests have their
// replies.
func (e *exchange) local() bool {
	switch e.fault.kind {
	case kindRefuse, kindCutBefore, kindAnswer, kindStale:
		return true
	default:
		return false
	}
}

// request handles a frame of the client.
func (p *proxied) request(data []byte, handshake bool) {
	r, ok := p.decode(data[4:], handshake)
	switch {
	case !ok:
		p.pass(p.up, packet{data: data})
		return
	case p.isDraining():
		return
	}
	fault := p.link.decide(&r)
	if handshake && fault.kind == kindAnswer {
		fault = Refuse // the protocol has no error reply to a handshake
	}
	p.forward(data, &r, fault)
	if fault.kind == kindCutBefore {
		p.close()
	}
}

func (p *proxied) forward(data []byte, r *Request, fault Fault) {
	p.link.mu.Lock()
	defer p.link.mu.Unlock()
	if p.draining {
		return
	}
	p.link.traffic.Requests[r.Op]++
	e := exchange{xid: r.Xid, fault: fault}
	switch r.Op {
	case OpExists, OpGetData, OpGetChildren, OpGetACL:
		e.read = readKey{r.Code, r.Path}
	default:
	}
	if fault.kind == kindStale {
		if e.reply = p.link.lastReplies[e.read]; e.reply == nil || r.Watch {
			fault = Pass
			e.fault = fault
		}
	}
	p.pending = append(p.pending, e)
	x := packet{data: data}
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
	case kindForget:
		if r.Op == OpConnect {
			x.data = withoutSession(data)
		}
		p.addLocked(p.up, x, 0)
	case kindPass, kindMute, kindHoldReply:
		p.addLocked(p.up, x, 0)
	}
	p.replyLocallyLocked()
}

// withoutSession returns a handshake's frame that asks for a new session, made of one that decode has understood.
func withoutSession(frame []byte) []byte {
	var c wire.ConnectRequest
	c.Decode(jute.NewDecoder(frame[4:]))
	c.SessionID, c.Password = 0, make([]byte, wire.PasswordLen)
	return wire.EndFrame(c.Append(wire.BeginFrame(nil)), 0)
}

// decode returns the Request that a control function sees. It returns false if the frame has no valid header.
func (p *proxied) decode(body []byte, handshake bool) (Request, bool) {
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

// reply handles a frame of the server.
func (p *proxied) reply(data []byte) {
	p.link.mu.Lock()
	defer p.link.mu.Unlock()
	body := data[4:]
	if !p.handshakeDone {
		p.handshakeDone = true
		p.finishHandshakeLocked(body)
		p.answerLocked(data, 0)
		return
	}
	d := jute.NewDecoder(body)
	var h wire.ReplyHeader
	if h.Decode(d); d.Err() != nil {
		p.addLocked(p.down, packet{data: data}, 0)
		return
	}
	if h.Xid == wire.XidNotification {
		p.link.traffic.Events++
		if p.overtakePath != "" && eventPath(d) == p.overtakePath {
			p.overtakePath, p.overtaken = "", data
			return
		}
		p.eventLocked(packet{data: data})
		p.sendOvertakenLocked()
		return
	}
	p.sendOvertakenLocked() // an event comes before every reply that shows its change
	p.zxid = max(p.zxid, h.Zxid)
	p.answerLocked(data, h.Xid)
}

// eventPath returns the node of a notification.
func eventPath(d *jute.Decoder) string {
	var e wire.Event
	e.Decode(d)
	return e.Path
}

// sendOvertakenLocked sends the event that Overtake has kept back, if any.
func (p *proxied) sendOvertakenLocked() {
	if p.overtaken != nil {
		p.eventLocked(packet{data: p.overtaken})
		p.overtaken = nil
	}
}

// finishHandshakeLocked takes the session from the handshake's reply.
func (p *proxied) finishHandshakeLocked(body []byte) {
	d := jute.NewDecoder(body)
	var c wire.ConnectResponse
	if c.Decode(d); d.Err() != nil {
		return
	}
	if c.Timeout <= 0 {
		p.session = 0 // the session has expired
		return
	}
	p.session = c.SessionID
	p.link.passwords[c.SessionID] = append([]byte(nil), c.Password...)
}

func (p *proxied) eventLocked(x packet) {
	switch {
	case p.muted:
		p.lost = true
	case p.link.ruleLocked(p).hold:
		p.held = append(p.held, x)
	default:
		p.addLocked(p.down, x, 0)
	}
}

// releaseLocked sends the events that were held back, unless a rule still holds them.
func (p *proxied) releaseLocked() {
	if p.link.ruleLocked(p).hold {
		return
	}
	for _, x := range p.held {
		p.eventLocked(x)
	}
	p.held = nil
}

// answerLocked handles the reply to the first pending request with this xid. That is the first pending request of all,
// unless it is a ping or an auth, which servers answer out of order.
func (p *proxied) answerLocked(data []byte, xid int32) {
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
	x, delay := packet{data: data}, time.Duration(0)
	switch fault.kind {
	case kindMute:
		p.muted = true
	case kindDropReply:
		x = packet{end: ended}
	case kindCutAfter:
		x.end = ended
	case kindHoldReply:
		x.until, delay = fault.until, fault.delay
	case kindPass, kindRefuse, kindCutBefore, kindAnswer, kindStale, kindHoldRequest, kindForget:
	}
	if p.muted {
		p.lost = true
		return
	}
	p.addLocked(p.down, x, delay)
	p.replyLocallyLocked()
}

// rememberLocked keeps the reply to a read for Stale.
func (l *Link) rememberLocked(key readKey, reply []byte) {
	if key == (readKey{}) {
		return
	}
	if len(l.lastReplies) == maxLastReplies {
		clear(l.lastReplies)
	}
	l.lastReplies[key] = bytes.Clone(reply)
}

// replyLocallyLocked replies in the server's place to the local requests at the head of the pending ones.
func (p *proxied) replyLocallyLocked() {
	for len(p.pending) > 0 && p.pending[0].local() {
		e := p.pending[0]
		p.pending = p.pending[1:]
		switch e.fault.kind {
		case kindStale:
			reply := bytes.Clone(e.reply)
			binary.BigEndian.PutUint32(reply[4:], uint32(e.xid)) // after the length
			p.addLocked(p.down, packet{data: reply}, 0)
			continue
		case kindAnswer:
		default:
			p.addLocked(p.down, packet{end: ended}, 0)
			return
		}
		h := wire.ReplyHeader{Xid: e.xid, Zxid: p.zxid, Err: wire.Code(e.fault.code)}
		p.addLocked(p.down, packet{data: wire.AppendReply(nil, h, nil)}, 0)
	}
}
