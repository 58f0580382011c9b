package zk

// The connect request, and what follows it before other requests.

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/seed-a3166700/turnstile/internal/jute"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// bareReply is the size of a reply without a body. Every connect response is larger.
const bareReply = 16

func newConn(s *Session, srv server, nc, raw net.Conn) *conn {
	prompt := promptly(nc)
	return &conn{
		sess: s, server: srv,
		nc: nc, prompt: prompt, raw: raw, br: bufio.NewReaderSize(prompt, readBuffer), direct: buffered(raw),
		kicked: make(chan struct{}, 1), dead: make(chan struct{}), slots: make(chan struct{}, maxRestoring),
	}
}

// handshake opens or resumes the session on a new connection, and authenticates. It returns ErrExpired if the server
// has ended the session, and ErrLost if it counts with a shorter timeout than this client or does not resume it.
func (c *Client) handshake(ctx context.Context, s *Session, n *conn) error {
	if err := c.connectSession(s, n); err != nil {
		return err
	}
	if c.cfg.SASL != nil {
		if err := n.authenticateSASL(ctx, c.cfg.SASL); err != nil {
			return err
		}
	}
	return n.authenticate()
}

func (c *Client) connectSession(s *Session, n *conn) error {
	s.mu.Lock()
	req := wire.ConnectRequest{
		LastZxidSeen: s.lastZxid, Timeout: int32(cmp.Or(s.timeout, c.cfg.Timeout).Milliseconds()), SessionID: s.id,
		Password: s.password, HasReadOnly: true, ReadOnly: c.cfg.ReadOnly,
	}
	s.mu.Unlock()
	if req.Password == nil {
		req.Password = make([]byte, wire.PasswordLen)
	}
	n.started = s.now()
	if _, err := n.nc.Write(wire.EndFrame(req.Append(wire.BeginFrame(nil)), 0)); err != nil {
		return err
	}
	frame, err := n.frame()
	if errors.Is(err, io.EOF) {
		seen := ""
		if req.LastZxidSeen != 0 {
			seen = fmt.Sprintf(" (has it seen transaction 0x%x?)", req.LastZxidSeen)
		}
		return fmt.Errorf("server closed the connection on the connect request%s: %w", seen, err)
	}
	if errors.Is(err, errFrame) { // as the beginning of an HTTP or SSH answer, read as a length
		return fmt.Errorf("%w: the answer to the connect request is not a ZooKeeper server's", ErrProtocol)
	}
	if err != nil {
		return err
	}
	n.dec.Reset(frame)
	if len(frame) == bareReply {
		// The read-only server of ZooKeeper 3.8 refuses a new session like this, because it requires a quorum.
		var h wire.ReplyHeader
		if h.Decode(&n.dec); h.Err != wire.OK {
			return fmt.Errorf("server refused the connect request: %w", Code(h.Err))
		}
	}
	var resp wire.ConnectResponse
	n.dec.Reset(frame)
	if resp.Decode(&n.dec); n.dec.Err() != nil {
		return fmt.Errorf("%w: invalid connect response: %w", ErrProtocol, n.dec.Err())
	}
	switch {
	case req.SessionID != 0 && (resp.Timeout <= 0 || resp.SessionID == 0):
		return ErrExpired
	case req.SessionID != 0 && resp.SessionID != req.SessionID:
		return s.notResumed(n)
	case resp.Timeout <= 0 || resp.SessionID == 0:
		return fmt.Errorf("%w: server refused a new session", ErrProtocol)
	}
	n.readOnly = resp.ReadOnly
	return s.granted(n, &resp)
}

// maxClosings is how many connections in a row may be closed at the same operation by servers that resume no session.
const maxClosings = 5

// notResumed returns why the session is lost: the server has given a new one instead. ZooKeeper never does. The old one
// lives on at a server that does, and what was sent under it may still be executed, so it has not expired.
//
// Such servers close the connection at an operation that they do not know. A client that asks for it again and again
// would never get anywhere, and would be silent about it, so it ends with ErrUnsupported.
func (s *Session) notResumed(n *conn) error {
	s.mu.Lock()
	op, ended := s.closedAt, s.cause != nil
	s.mu.Unlock()
	const what = "has not resumed it but made a new one, as ClickHouse Keeper does for each connection"
	if op == 0 || ended { // it is resumed to be closed, which is the business of another goroutine
		return fmt.Errorf("%w: %v %s", ErrLost, n.server, what)
	}
	c := s.client
	if c.suspect.Swap(int32(op)) != int32(op) {
		c.closings = 0
	}
	if c.closings++; c.closings >= maxClosings {
		return fmt.Errorf("%w: %v closes each connection at a %s, operation %d: is it ZooKeeper? (%w)",
			ErrUnsupported, n.server, opName(op), op, ErrLost)
	}
	return fmt.Errorf(
		"%w: %v %s; the connection before was closed at a %s, operation %d, which the server may not know",
		ErrLost, n.server, what, opName(op), op)
}

// granted accepts the timeout that a server grants to the session, or returns ErrLost.
//
// Each handshake negotiates the timeout anew, but the client counts with that of the creation as long as the session
// lives. A longer one is worth nothing: servers store that of the creation, and a new leader starts its clock with it.
// A server that grants a shorter one may have shortened the clock before, by a handshake whose reply never came, and
// may do so again, by one that is still on its way. So the session is lost, unless it has ended already and is only
// resumed to be closed. test/certainty has the argument.
func (s *Session) granted(n *conn, resp *wire.ConnectResponse) error {
	c, timeout := s.client, time.Duration(resp.Timeout)*time.Millisecond
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.expiry != nil && s.cause == nil && timeout < s.timeout:
		return fmt.Errorf("%w: %v grants a timeout of %v to a session that was created with %v",
			ErrLost, n.server, timeout, s.timeout)
	case s.expiry == nil:
		margin := timeout - c.window(timeout)
		if margin > timeout/4 && (!c.cfg.NoCertificates || margin > timeout*3/4) {
			return fmt.Errorf("zk: margin %v is too long for the session timeout that the server granted: %v",
				c.cfg.Margin, timeout)
		}
		n.fresh = !n.readOnly
		s.timeout, s.heard = timeout, n.started
		s.expiry = time.AfterFunc(s.deadline().Sub(s.now()), s.checkDeadline)
	}
	s.id, s.password, n.timeout = resp.SessionID, bytes.Clone(resp.Password), s.timeout
	return nil
}

// authenticate sends the session's credentials and waits until the server has accepted them all.
func (n *conn) authenticate() error {
	s := n.sess
	s.mu.Lock()
	auth := s.auth
	s.mu.Unlock()
	if len(auth) == 0 {
		return nil
	}
	var frames []byte
	for _, a := range auth {
		req := &wire.AuthRequest{Scheme: a.Scheme, Auth: a.Data}
		frames = wire.AppendRequest(frames, wire.XidAuth, wire.OpAuth, req)
	}
	if _, err := n.nc.Write(frames); err != nil {
		return err
	}
	for _, a := range auth {
		h, _, err := n.answer(wire.XidAuth)
		if err != nil {
			return err
		}
		if h.Err != wire.OK {
			return fmt.Errorf("%w: scheme %q: %v", ErrAuthFailed, a.Scheme, h.Err)
		}
	}
	n.auths = len(auth)
	return nil
}

// answer reads the reply to a request of the handshake.
func (n *conn) answer(xid int32) (wire.ReplyHeader, *jute.Decoder, error) {
	var h wire.ReplyHeader
	frame, err := n.frame()
	if err != nil {
		return h, nil, err
	}
	d := &n.dec
	d.Reset(frame)
	h.Decode(d)
	if d.Err() != nil || h.Xid != xid {
		return h, nil, fmt.Errorf("%w: unexpected reply xid %d in the handshake, want %d", ErrProtocol, h.Xid, xid)
	}
	return h, d, nil
}
