package command

// A bound on connections.

import (
	"net"
	"sync"
)

// A limited listener closes connections that are too many at once: those that are there keep theirs.
type limited struct {
	net.Listener

	places chan struct{}
}

// Limited returns l with at most so many connections at a time.
func Limited(l net.Listener, most int) net.Listener {
	return &limited{l, make(chan struct{}, most)}
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.places <- struct{}{}:
			return &placed{Conn: conn, free: sync.OnceFunc(func() { <-l.places })}, nil
		default:
			_ = conn.Close() // nothing was read from it
		}
	}
}

// A placed connection gives its place back when it is closed.
type placed struct {
	net.Conn

	free func()
}

// Close implements net.Conn.
func (p *placed) Close() error {
	p.free()
	return p.Conn.Close()
}
