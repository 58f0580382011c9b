package zktest

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// conn is one end of an in-memory connection.
type conn struct {
	in, out       *pipe
	local, remote net.Addr
	once          sync.Once
	onClose       func() // tells the endpoint
}

// newConns returns the two ends of a connection to e.
func newConns(e *endpoint, client, server net.Addr) (clientEnd, serverEnd *conn) {
	up, down := &pipe{endpoint: e}, &pipe{endpoint: e}
	clientEnd = &conn{in: down, out: up, local: client, remote: server}
	serverEnd = &conn{in: up, out: down, local: server, remote: client}
	return clientEnd, serverEnd
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.in.read(p)
	return n, c.wrap("read", err)
}

func (c *conn) Write(p []byte) (int, error) {
	n, err := c.out.write(p)
	return n, c.wrap("write", err)
}

// wrap turns err into what a socket returns, so that errors.Is and net.Error work.
func (c *conn) wrap(op string, err error) error {
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return err
	case errors.Is(err, io.ErrClosedPipe):
		err = net.ErrClosed
	}
	return &net.OpError{Op: op, Net: c.local.Network(), Source: c.local, Addr: c.remote, Err: err}
}

// CloseWrite closes the writing side: the other end reads what was written before and then io.EOF.
func (c *conn) CloseWrite() error {
	c.out.closeWrite()
	return nil
}

func (c *conn) Close() error {
	c.once.Do(func() {
		c.out.closeWrite()
		c.in.closeRead()
		if c.onClose != nil {
			c.onClose()
		}
	})
	return nil
}

// reset breaks the connection for both ends.
func (c *conn) reset() {
	c.in.fail(syscall.ECONNRESET)
	c.out.fail(syscall.ECONNRESET)
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) SetDeadline(t time.Time) error {
	c.in.setReadDeadline(t)
	c.out.setWriteDeadline(t)
	return nil
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.in.setReadDeadline(t)
	return nil
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.out.setWriteDeadline(t)
	return nil
}
