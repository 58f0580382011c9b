//go:build unix

package cli

// Making a listener of a descriptor.

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// closeOnExec keeps a descriptor from the programs that we start.
func closeOnExec(fd int) { unix.CloseOnExec(fd) }

// passedListener takes a descriptor, which must be of a listening socket, and closes it if it is not.
func passedListener(fd int) (net.Listener, error) {
	f := os.NewFile(uintptr(fd), "socket")
	listening, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	switch {
	case err != nil:
		return nil, errors.Join(fmt.Errorf("descriptor %d is not a socket: %w", fd, err), f.Close())
	case listening == 0:
		return nil, errors.Join(errors.New("it does not listen for connections: the socket unit needs ListenStream= "+
			"and Accept=no"), f.Close())
	}
	l, err := net.FileListener(f)
	if err = errors.Join(err, f.Close()); err != nil { // the listener has a descriptor of its own
		return nil, err
	}
	if a, ok := l.Addr().(*net.UnixAddr); ok {
		if err := checkPrivate(a.Name); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return l, nil
}

// checkPrivate returns an error if other users can connect to a unix socket: the server trusts those who can.
func checkPrivate(path string) error {
	if path == "" || strings.HasPrefix(path, "@") {
		return fmt.Errorf("every user may connect to the abstract socket %q, and clients of unix sockets may make "+
			"backups: let it have a path", path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Mode()&0o022 != 0 {
		return fmt.Errorf("other users may connect to %s, and clients of unix sockets may make backups: the socket "+
			"unit needs SocketMode=0600", path)
	}
	return nil
}
