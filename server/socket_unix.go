//go:build unix

package server

// The mode of unix sockets.

import "syscall"

// makeSocketPrivate sets the mode of a unix socket before the socket has a name, so that no other user can connect
// before chmod. On systems that ignore the mode at that point, only chmod protects it.
func makeSocketPrivate(_, _ string, raw syscall.RawConn) error {
	return raw.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) })
}
