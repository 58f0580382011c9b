package zk

// Reads and writes on a socket past the Go scheduler.

import (
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"
)

// A socket reads and writes a connection without notifying the Go scheduler, which would prepare for a blocking call:
// the first system call after an idle moment wakes the runtime's monitor thread, which then polls every few
// microseconds on a processor that the server could use. The sockets of package net do not block, so no preparation is
// necessary. When a call would block, the goroutine waits in the runtime's poller, as package net does.
//
// One goroutine at a time may read and one may write.
type socket struct {
	nc      net.Conn
	raw     syscall.RawConn
	in, out transfer
}

// A transfer is a system call on a socket.
type transfer struct {
	call uintptr
	name string
	most int                   // bytes per call
	all  bool                  // transfer the whole buffer, in several calls if necessary
	do   func(fd uintptr) bool // the method value try, allocated once
	buf  []byte                // what is left of the buffer
	n    int
	err  syscall.Errno
}

// promptly returns the fastest way to read and write nc.
func promptly(nc net.Conn) io.ReadWriter {
	switch nc.(type) {
	case *net.TCPConn, *net.UnixConn: // no types that embed one, because they may override its methods
	default:
		return nc
	}
	raw, err := nc.(syscall.Conn).SyscallConn()
	if err != nil {
		return nc
	}
	s := &socket{
		nc: nc, raw: raw,
		in:  transfer{call: syscall.SYS_READ, name: "read", most: readBuffer},
		out: transfer{call: syscall.SYS_WRITE, name: "write", most: inlineBytes, all: true},
	}
	s.in.do, s.out.do = s.in.try, s.out.try
	return s
}

func (s *socket) Read(p []byte) (int, error) {
	if len(p) == 0 || len(p) > readBuffer {
		return s.nc.Read(p) // a long copy would block the processor for other goroutines
	}
	n, err := s.transfer(&s.in, s.raw.Read, p)
	if n == 0 && err == nil {
		return 0, io.EOF
	}
	return n, err
}

// Write writes all of p before another Write begins, as the connection's own Write does.
func (s *socket) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	return s.transfer(&s.out, s.raw.Write, p)
}

func (s *socket) transfer(t *transfer, when func(func(fd uintptr) bool) error, p []byte) (int, error) {
	t.buf, t.n, t.err = p, 0, 0
	err := when(t.do)
	t.buf = nil
	switch {
	case err != nil:
		return t.n, err
	case t.err != 0:
		return t.n, &net.OpError{
			Op: t.name, Net: s.nc.LocalAddr().Network(), Source: s.nc.LocalAddr(), Addr: s.nc.RemoteAddr(),
			Err: os.NewSyscallError(t.name, t.err),
		}
	default:
		return t.n, nil
	}
}

// try repeats the system call until the transfer is done. It returns false if the call would block.
func (t *transfer) try(fd uintptr) bool {
	for {
		chunk := t.buf[:min(len(t.buf), t.most)]
		n, _, err := syscall.RawSyscall(
			t.call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(chunk))), uintptr(len(chunk)))
		switch err {
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			return false
		case 0:
			t.n += int(n)
			t.buf = t.buf[n:]
		default:
			t.err = err
		}
		if !t.all || t.err != 0 || len(t.buf) == 0 {
			return true
		}
	}
}
