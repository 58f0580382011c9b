//go:build !linux

package zk

// Reads and writes of a socket where there is no shortcut.

import (
	"io"
	"net"
)

// promptly returns the fastest way to read and write nc.
func promptly(nc net.Conn) io.ReadWriter { return nc }
