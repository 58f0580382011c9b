package conformance_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/seed-a3166700/turnstile/internal/jute"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// patience is how long a script waits for one message before it fails.
const patience = 20 * time.Second

// errClosed means that the server has closed the connection.
var errClosed = errors.New("closed by the server")

// A conn is a raw connection to a server: it sends any bytes and returns every frame.
type conn struct {
	name     string
	net      net.Conn
	in       *bufio.Reader
	xid      int32
	pending  []wire.RequestHeader // requests without an answer, in order
	session  int64
	password []byte
	closed   bool
	company  int // pings to send before each request
	unheard  int // answers to these pings that have not come yet
}

// A message is one frame of the server: an event, or the answer to a request of kind op.
type message struct {
	wire.ReplyHeader
	op    wire.Op
	event *wire.Event
	body  wire.Record // nil if the header has an error
	rest  []byte      // bytes after the end of the body
	exact bool        // whether encoding the body gives the frame's bytes
}

func dial(ctx context.Context, name, addr string) (*conn, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &conn{name: name, net: nc, in: bufio.NewReader(nc)}, nil
}

// write sends bytes. It ignores the error: if the server has closed, the next read reports it.
func (c *conn) write(b []byte) {
	_ = c.net.SetWriteDeadline(time.Now().Add(patience))
	_, _ = c.net.Write(b)
}

func (c *conn) readFrame() ([]byte, error) {
	if c.closed {
		return nil, errClosed
	}
	if err := c.net.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	frame, err := wire.ReadFrame(c.in, 16<<20, nil)
	var timeout net.Error
	switch {
	case err == nil:
		return frame, nil
	case errors.As(err, &timeout) && timeout.Timeout():
		return nil, fmt.Errorf("%s: no frame within %v", c.name, patience)
	default: // end of file or reset
		c.cut()
		return nil, errClosed
	}
}

// cut closes the connection as the death of a client does.
func (c *conn) cut() {
	c.closed = true
	_ = c.net.Close()
}

// readAll returns what the server sends until it closes the connection.
func (c *conn) readAll() (string, error) {
	if err := c.net.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	b, err := io.ReadAll(c.in)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return string(b), fmt.Errorf("%s: still open after %v", c.name, patience)
	}
	c.cut()
	return string(b), nil
}

// nextXid returns the xid for a request of kind op, which is special for some.
func (c *conn) nextXid(op wire.Op) int32 {
	switch op {
	case wire.OpPing:
		return wire.XidPing
	case wire.OpAuth:
		return wire.XidAuth
	case wire.OpSetWatches, wire.OpSetWatches2:
		return wire.XidSetWatches
	default:
		c.xid++
		return c.xid
	}
}

// request returns the frame of a request and records that an answer must come.
func (c *conn) request(op wire.Op, body wire.Record) []byte {
	xid := c.nextXid(op)
	c.pending = append(c.pending, wire.RequestHeader{Xid: xid, Op: op})
	return wire.AppendRequest(nil, xid, op, body)
}

// accompany returns the frames of pings that the transcript leaves out.
func (c *conn) accompany() []byte {
	if c.session == 0 {
		return nil
	}
	var b []byte
	for range c.company {
		b = wire.AppendRequest(b, wire.XidPing, wire.OpPing, &wire.Empty{})
	}
	c.unheard += c.company
	return b
}

// receive reads one message.
func (c *conn) receive() (*message, error) {
	frame, err := c.readFrame()
	if err != nil {
		return nil, err
	}
	d := jute.NewDecoder(frame)
	m := &message{}
	m.Decode(d)
	if d.Err() != nil {
		return nil, fmt.Errorf("%s: got a frame of %d bytes without a header", c.name, len(frame))
	}
	if m.Xid == wire.XidPing && c.unheard > 0 {
		c.unheard--
		return c.receive()
	}
	if m.Xid == wire.XidNotification {
		m.event = &wire.Event{}
		m.op, m.body = wire.OpNotification, m.event
	} else {
		for i, p := range c.pending {
			if p.Xid == m.Xid {
				m.op = p.Op
				c.pending = append(c.pending[:i:i], c.pending[i+1:]...)
				break
			}
		}
		if m.Err == wire.OK {
			m.body = response(m.op)
		}
	}
	raw := d.Rest()
	if m.body != nil {
		m.body.Decode(d)
		if d.Err() != nil {
			return nil, fmt.Errorf("%s: answer to %v: %w: % x", c.name, m.op, d.Err(), raw)
		}
		m.exact = string(m.body.Append(nil)) == string(raw[:len(raw)-d.Len()])
	}
	m.rest = d.Rest()
	return m, nil
}

// response returns an empty record for the body of an answer.
func response(op wire.Op) wire.Record {
	switch op {
	case wire.OpCreate, wire.OpSync:
		return new(wire.PathResponse)
	case wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
		return new(wire.Create2Response)
	case wire.OpExists, wire.OpSetData, wire.OpSetACL:
		return new(wire.StatResponse)
	case wire.OpGetData, wire.OpReconfig:
		return new(wire.DataResponse)
	case wire.OpGetACL:
		return new(wire.ACLResponse)
	case wire.OpGetChildren, wire.OpGetEphemerals:
		return new(wire.ChildrenResponse)
	case wire.OpGetChildren2:
		return new(wire.Children2Response)
	case wire.OpMulti, wire.OpMultiRead:
		return new(wire.MultiResponse)
	case wire.OpSASL:
		return new(wire.SASLToken)
	case wire.OpGetAllChildren:
		return new(wire.CountResponse)
	case wire.OpAddWatch:
		return new(wire.ErrorResponse)
	case wire.OpWhoAmI:
		return new(wire.WhoAmIResponse)
	default:
		return new(wire.Empty)
	}
}
