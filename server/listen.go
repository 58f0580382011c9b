package server

// Listeners, and admitting connections.

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// listener is a listener for clients; secure if it has TLS.
type listener struct {
	net.Listener
	secure bool
}

// listen opens all listeners of the configuration. If one fails it closes the others.
func (s *Server) listen(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			s.closeListeners()
		}
	}()
	for _, l := range s.cfg.Listeners {
		s.listeners = append(s.listeners, listener{Listener: l})
	}
	for _, l := range s.cfg.TLSListeners {
		s.listeners = append(s.listeners, listener{Listener: tls.NewListener(l, s.secure()), secure: true})
	}
	for _, addr := range s.cfg.Listen {
		l, err := listenOn(ctx, addr)
		if err != nil {
			return err
		}
		s.listeners = append(s.listeners, listener{Listener: l})
	}
	for _, addr := range s.cfg.TLSListen {
		l, err := listenOn(ctx, addr)
		if err != nil {
			return err
		}
		s.listeners = append(s.listeners, listener{Listener: tls.NewListener(l, s.secure()), secure: true})
	}
	return nil
}

func listenOn(ctx context.Context, addr string) (net.Listener, error) {
	path, unix := strings.CutPrefix(addr, "unix:")
	if unix {
		return listenUnix(ctx, path)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("server: cannot listen on %s: %w", addr, err)
	}
	return l, nil
}

// listenUnix listens on a socket file that only the user may use. It replaces the file of a dead server, but not that
// of a live one.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	fail := func(err error) (net.Listener, error) {
		return nil, fmt.Errorf("server: cannot listen on unix:%s: %w", path, err)
	}
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&fs.ModeSocket == 0 {
			return fail(errors.New("the file exists and is not a socket"))
		}
		dialer := net.Dialer{Timeout: time.Second}
		nc, err := dialer.DialContext(ctx, "unix", path)
		switch {
		case err == nil:
			_ = nc.Close()
			return fail(errors.New("another server is listening on it"))
		case !errors.Is(err, syscall.ECONNREFUSED): // any other error may come from a live server that is busy
			return fail(fmt.Errorf("cannot tell whether another server is listening on it: %w", err))
		}
		if err := os.Remove(path); err != nil {
			return fail(err)
		}
	}
	l, err := (&net.ListenConfig{Control: makeSocketPrivate}).Listen(ctx, "unix", path)
	if err != nil {
		return fail(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return fail(errors.Join(err, l.Close()))
	}
	made, err := os.Lstat(path)
	if err != nil {
		return fail(errors.Join(err, l.Close()))
	}
	return &socketFile{UnixListener: l.(*net.UnixListener), made: made}, nil //nolint:forcetypeassert // of "unix"
}

// socketFile is the listener of a socket file that it removes when it is closed, unless that is another one by now: the
// directory was removed, and another server has made it anew.
type socketFile struct {
	*net.UnixListener

	made fs.FileInfo
}

func (l *socketFile) Close() error {
	now, err := os.Lstat(l.Addr().String())
	l.SetUnlinkOnClose(err == nil && os.SameFile(now, l.made))
	return l.UnixListener.Close()
}

func (s *Server) closeListeners() {
	for _, l := range s.listeners {
		_ = l.Close()
	}
}

// warnOpen warns if any client on the network may use the server.
func (s *Server) warnOpen() {
	if s.cfg.EnforceQuota && !s.cfg.SkipACL && s.owner.tree.AnyoneMaySetQuotas() {
		s.cfg.Logger.Warn("server: quotas are enforced, but any client may change them: set an access list on " +
			"/zookeeper/quota")
	}
	if s.cfg.RequireSASL {
		return
	}
	for _, l := range s.listeners {
		a, ok := l.Addr().(*net.TCPAddr)
		if !ok || a.IP.IsLoopback() || (l.secure && s.knowsClients()) {
			continue
		}
		if l.secure {
			s.cfg.Logger.Warn("server: listening on the network with TLS but without requiring client certificates "+
				"signed by your own authority: any client may change everything that no access list protects",
				"address", a.String())
			continue
		}
		s.cfg.Logger.Warn("server: listening on the network without TLS and without authentication: "+
			"any client may read and change everything that no access list protects; "+
			"listen on 127.0.0.1, use TLS with client certificates, or require SASL", "address", a.String())
	}
}

// knowsClients reports whether TLS clients need a certificate signed by an authority of the configuration. Without
// ClientCAs the authorities are the public ones, from which anyone can get a certificate.
func (s *Server) knowsClients() bool {
	cfg := s.tls.Load()
	return cfg.ClientAuth == tls.RequireAndVerifyClientCert && cfg.ClientCAs != nil
}

// accept accepts connections of one listener until it is closed.
func (s *Server) accept(l listener) {
	for pause := time.Duration(0); ; {
		nc, err := l.Accept()
		if err != nil {
			select {
			case <-s.stopping:
				return
			default:
			}
			if errors.Is(err, net.ErrClosed) {
				s.stop(fmt.Errorf("server: listener %s was closed: %w", l.Addr(), err))
				return
			}
			// The process may be out of file descriptors: wait for connections to close.
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.cfg.Logger.Warn("server: cannot accept connections, will retry", "address", l.Addr().String(), "err", err)
			select {
			case <-time.After(pause):
			case <-s.stopping:
				return
			}
			continue
		}
		pause = 0
		s.admitConn(nc, l.secure)
	}
}

// admitConn starts a connection's goroutines, or closes it if there are too many connections.
func (s *Server) admitConn(nc net.Conn, secure bool) {
	if tcp, ok := nc.(*net.TCPConn); ok {
		_ = tcp.SetNoDelay(true)
	}
	s.mu.Lock()
	s.lastConn++
	c := newConn(s, nc, s.lastConn, secure)
	met, ok := s.makeRoom(c.from)
	if s.closed || !ok {
		closed := s.closed
		s.mu.Unlock()
		c.kill()
		if !closed {
			s.stats.rejected.Add(1)
			s.hit(met, c.remote)
		}
		return
	}
	s.conns[c.id] = c
	c.counted, c.open = true, true
	s.count(c.from)
	if s.cfg.RequireSASL {
		s.strangers.add(c)
	}
	s.wg.Add(2)
	s.mu.Unlock()
	go func() { defer s.wg.Done(); c.read() }()
	go func() { defer s.wg.Done(); c.write() }()
}

// gone tells the owner that a connection's reader has ended.
func (s *Server) gone(c *conn) {
	s.queue.push(item{kind: itemGone, conn: c})
}
