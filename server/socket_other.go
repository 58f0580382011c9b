//go:build !unix

package server

// The mode of unix sockets, which other systems do not have.

import "syscall"

// makeSocketPrivate does nothing: on this system the directory protects a socket.
func makeSocketPrivate(_, _ string, _ syscall.RawConn) error { return nil }
