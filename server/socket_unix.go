//go:build unix

package server

import "syscall"

// makeSocketPrivate gives a unix socket its mode before it has a name, so that no other user can get in before chmod. A system whose sockets
// have no mode yet leaves it to that.
func makeSocketPrivate(_, _ string, raw syscall.RawConn) error {
	return raw.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) })
}
