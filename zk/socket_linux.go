package zk

// Reads and writes on a socket past the Go scheduler.

import (
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"
)

// A socket reads and writes a connection without telling Go's scheduler, which otherwise prepares for a call that blocks: the first system
// call after an idle moment wakes the runtime's monitor thread, and that looks around every few microseconds from then on, on a
// processor that the server would have had. A socket of Go's never blocks, so that nothing is to be prepared for; what is not there yet,
// or does not fit, is waited for without a thread, as net does it.
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
	most int                   // bytes at a time
	all  bool                  // the whole buffer, and not only what comes or fits at once
	do   func(fd uintptr) bool // try, made once
	buf  []byte                // what is left of it
	n    int
	err  syscall.Errno
}

// promptly returns what reads and writes nc, by the shortest way that there is.
func promptly(nc net.Conn) io.ReadWriter {
	switch nc.(type) {
	case *net.TCPConn, *net.UnixConn: // and nothing of a caller's that holds one, and has ways of its own
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
		out: transfer{call: syscall.SYS_WRITE, name: "write", most: loneBytes, all: true},
	}
	s.in.do, s.out.do = s.in.try, s.out.try
	return s
}

func (s *socket) Read(p []byte) (int, error) {
	if len(p) == 0 || len(p) > readBuffer {
		return s.nc.Read(p) // copying much takes long, and nobody else would get the processor
	}
	n, err := s.transfer(&s.in, s.raw.Read, p)
	if n == 0 && err == nil {
		return 0, io.EOF
	}
	return n, err
}

// Write keeps all others from writing until the whole is written, as the connection's own Write does.
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
			Op: t.name, Net: s.nc.LocalAddr().Network(), Source: s.nc.LocalAddr(), Addr: s.nc.RemoteAddr(), Err: os.NewSyscallError(t.name, t.err),
		}
	default:
		return t.n, nil
	}
}

// try does the system call until there is nothing more to do, and reports false if it has to wait for that.
func (t *transfer) try(fd uintptr) bool {
	for {
		chunk := t.buf[:min(len(t.buf), t.most)]
		n, _, err := syscall.RawSyscall(t.call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(chunk))), uintptr(len(chunk)))
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
