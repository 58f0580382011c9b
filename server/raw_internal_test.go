package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/jute"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// serve starts a server for a test, on a free port unless cfg has a listener.
func serve(t *testing.T, cfg Config, d disk) *Server {
	t.Helper()
	if len(cfg.Listen)+len(cfg.Listeners)+len(cfg.TLSListen) == 0 {
		cfg.Listen = []string{"127.0.0.1:0"}
	}
	cfg.InMemory = cfg.Data == ""
	if cfg.TickTime == 0 && cfg.MaxSessionTimeout == 0 {
		cfg.MaxSessionTimeout = 10 * time.Minute // sessions must not expire because the machine is busy
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := start(context.WithoutCancel(t.Context()), cfg, d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// rawClient speaks the protocol frame by frame, so that tests can send what a proper client would not.
type rawClient struct {
	nc       net.Conn
	xid      int32
	session  int64
	password []byte
	timeout  time.Duration
	zxid     int64 // the highest seen
	events   []wire.Event
}

func (s *Server) dialRaw() (*rawClient, error) { return dialAddr(s.Addrs()[0]) }

func (s *Server) dialAdmin() (*rawClient, error) { return dialAddr(s.AdminAddr()) }

func dialAddr(a net.Addr) (*rawClient, error) {
	nc, err := new(net.Dialer).DialContext(context.Background(), a.Network(), a.String())
	if err != nil {
		return nil, err
	}
	if err := nc.SetDeadline(time.Now().Add(5 * time.Minute)); err != nil { // makes a test fail that would hang
		return nil, err
	}
	return &rawClient{nc: nc}, nil
}

// connect opens a connection with a new session, or the one that req names.
func (s *Server) connect(req wire.ConnectRequest) (*rawClient, error) {
	c, err := s.dialRaw()
	if err != nil {
		return nil, err
	}
	if req.Timeout == 0 {
		req.Timeout = 600_000
	}
	resp, err := c.handshake(&req)
	if err != nil {
		_ = c.nc.Close()
		return nil, err
	}
	if resp.Timeout <= 0 {
		return nil, errors.Join(errGone, c.nc.Close())
	}
	return c, nil
}

var errGone = errors.New("the session is gone")

func (c *rawClient) handshake(req *wire.ConnectRequest) (*wire.ConnectResponse, error) {
	if _, err := c.nc.Write(appendFrame(nil, req)); err != nil {
		return nil, err
	}
	return c.readConnect()
}

// readConnect reads the reply to a handshake.
func (c *rawClient) readConnect() (*wire.ConnectResponse, error) {
	body, err := wire.ReadFrame(c.nc, 1<<30, nil)
	if err != nil {
		return nil, err
	}
	resp := new(wire.ConnectResponse)
	d := jute.NewDecoder(body)
	resp.Decode(d)
	c.session, c.password, c.timeout = resp.SessionID, resp.Password, time.Duration(resp.Timeout)*time.Millisecond
	return resp, d.Err()
}

// resume opens a new connection for c's session.
func (c *rawClient) resume(s *Server) (*rawClient, error) {
	return s.connect(wire.ConnectRequest{
		SessionID: c.session, Password: c.password, LastZxidSeen: c.zxid,
		HasReadOnly: true,
	})
}

func (c *rawClient) send(xid int32, op wire.Op, req wire.Record) error {
	_, err := c.nc.Write(wire.AppendRequest(nil, xid, op, req))
	return err
}

// next reads one frame: a reply, or an event, which it keeps.
func (c *rawClient) next() (h wire.ReplyHeader, d *jute.Decoder, err error) {
	body, err := wire.ReadFrame(c.nc, 1<<30, nil)
	if err != nil {
		return h, nil, err
	}
	d = jute.NewDecoder(body)
	h.Decode(d)
	if h.Xid == wire.XidNotification {
		var e wire.Event
		e.Decode(d)
		c.events = append(c.events, e)
	} else {
		c.zxid = max(c.zxid, h.Zxid)
	}
	return h, d, d.Err()
}

// reply reads frames up to the next reply.
func (c *rawClient) reply(resp wire.Record) (wire.ReplyHeader, error) {
	for {
		h, d, err := c.next()
		if err != nil || h.Xid == wire.XidNotification {
			if err != nil {
				return h, err
			}
			continue
		}
		if h.Err == wire.OK && resp != nil {
			resp.Decode(d)
		}
		return h, d.Err()
	}
}

// codeError is a code as an error.
type codeError wire.Code

func (e codeError) Error() string { return wire.Code(e).String() }

// call sends a request and waits for the reply. It returns a codeError if the server refuses the request.
func (c *rawClient) call(op wire.Op, req, resp wire.Record) error {
	c.xid++
	if err := c.send(c.xid, op, req); err != nil {
		return err
	}
	h, err := c.reply(resp)
	if err != nil {
		return err
	}
	if h.Xid != c.xid {
		return fmt.Errorf("got reply to request %d, want %d", h.Xid, c.xid)
	}
	if h.Err != wire.OK {
		return codeError(h.Err)
	}
	return nil
}

// ended reports whether the server has closed the connection.
func (c *rawClient) ended() bool {
	_, err := io.Copy(io.Discard, c.nc)
	var timeout net.Error
	return !errors.As(err, &timeout) || !timeout.Timeout()
}

var openACL = []wire.ACL{{Perms: wire.PermAll, ID: wire.ID{Scheme: "world", ID: "anyone"}}}

func (c *rawClient) create(path string, data []byte, flags int32) (string, error) {
	var resp wire.PathResponse
	err := c.call(wire.OpCreate, &wire.CreateRequest{Path: path, Data: data, ACL: openACL, Flags: flags}, &resp)
	return resp.Path, err
}

func (c *rawClient) get(path string) ([]byte, wire.Stat, error) {
	var resp wire.DataResponse
	err := c.call(wire.OpGetData, &wire.PathWatchRequest{Path: path}, &resp)
	return resp.Data, resp.Stat, err
}

func (c *rawClient) delete(path string) error {
	return c.call(wire.OpDelete, &wire.DeleteRequest{Path: path, Version: -1}, nil)
}

func (c *rawClient) set(path string, data []byte) error {
	return c.call(wire.OpSetData, &wire.SetDataRequest{Path: path, Data: data, Version: -1}, nil)
}
