//go:build !unix

package server

import "syscall"

// makeSocketPrivate does nothing: here the directory protects a socket.
func makeSocketPrivate(_, _ string, _ syscall.RawConn) error { return nil }
