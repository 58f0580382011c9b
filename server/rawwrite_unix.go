//go:build unix

package server

// Writes that do not wait.

import (
	"errors"
	"net"
	"syscall"
)

// initRaw prepares writes that do not wait.
func (o *outbox) initRaw(nc net.Conn) {
	o.raw = rawConn(nc)
	o.rawTry = func(fd uintptr) bool {
		for {
			o.rawLen, o.rawErr = syscall.Write(int(fd), o.rawBuf)
			if !errors.Is(o.rawErr, syscall.EINTR) {
				return true
			}
		}
	}
}

// writeNow writes as much as the socket takes without waiting. It reports false if the writer goroutine must continue.
// The caller has the turn to write.
func (o *outbox) writeNow() bool {
	var buf []byte
	var more bool
	for {
		if buf, more = o.next(buf); buf == nil {
			return !more
		}
		o.rawBuf, o.rawLen, o.rawErr = buf, 0, nil
		err := o.raw.Write(o.rawTry)
		o.rawBuf = nil
		n := max(o.rawLen, 0)
		if err == nil && o.rawErr != nil && !errors.Is(o.rawErr, syscall.EAGAIN) {
			err = o.rawErr
		}
		if err != nil {
			o.c.kill()
			return true
		}
		o.wrote(n)
		if n < len(buf) {
			o.mu.Lock()
			if !o.dead {
				o.out = append(buf[n:len(buf):len(buf)], o.out...)
			}
			o.mu.Unlock()
			return false
		}
	}
}

// rawConn returns nc's raw connection, whose writes need not wait, or nil if it has none.
func rawConn(nc net.Conn) syscall.RawConn {
	switch nc.(type) {
	case *net.TCPConn, *net.UnixConn:
		raw, _ := nc.(syscall.Conn).SyscallConn()
		return raw
	}
	return nil
}
