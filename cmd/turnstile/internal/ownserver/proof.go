package ownserver

// Which directory the server behind a socket serves.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"

	"github.com/seed-a3166700/turnstile/internal/lockfile"
)

// ForeignError says that the socket of this user's own server leads to a server of other data: the data directory was
// removed or replaced while its server ran, for example. Locks of that server exclude none of ours.
type ForeignError struct {
	Socket string
	Data   string // the directory that it does not serve
	PID    int    // of the process that listens; not positive if it is not known
}

// Error says what to do about it.
func (e *ForeignError) Error() string {
	who := "the process"
	if e.PID > 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("%s, which listens on %s, does not serve %s (was that directory replaced while it ran?): "+
		"end that process", who, e.Socket, e.Data)
}

// connect connects to the server if it runs, and returns its process id, which is not positive if it is not known. It
// returns a ForeignError if the server is not that of our data.
func (s *Server) connect(ctx context.Context) (net.Conn, int, error) {
	if dir := filepath.Dir(s.socket); !Ours(dir) { // under /tmp any user can make a directory of that name
		return nil, 0, fmt.Errorf("not a directory of this user: %s", dir)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", s.socket)
	if err != nil {
		return nil, 0, err
	}
	pid, err := s.prove(conn)
	if err != nil {
		return nil, 0, errors.Join(err, conn.Close())
	}
	return conn, pid, nil
}

// prove returns the process that listens at the other end of the connection, or a ForeignError if that is not the
// process that has locked our data.
//
// The kernel answers both, about the connection and about the file. So no name of a directory, no copy and no number
// in a file can deceive us: a socket that was moved, data that was removed or replaced, a process id of long ago.
func (s *Server) prove(conn net.Conn) (pid int, err error) {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, fmt.Errorf("not a unix socket: %T", conn)
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, err
	}
	if cerr := raw.Control(func(fd uintptr) { pid, err = listener(fd) }); cerr != nil {
		err = cerr
	}
	if err != nil {
		return 0, fmt.Errorf("who listens on %s: %w", s.socket, err)
	}
	holder, held, err := s.holder()
	switch {
	case err != nil:
		return 0, fmt.Errorf("who serves %s: %w", s.Data(), err)
	case held && (holder == pid || holder == lockfile.Unknown || pid == lockfile.Unknown):
		return pid, nil
	}
	return 0, &ForeignError{Socket: s.socket, Data: s.Data(), PID: pid}
}

// holder reports whether a server serves our data, and which process it is.
func (s *Server) holder() (pid int, held bool, err error) {
	return lockfile.Holder(filepath.Join(s.Data(), "lock"))
}
