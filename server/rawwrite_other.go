//go:build !unix

package server

import "net"

// initRaw leaves writing to the writer: this system has no write that does not wait.
func (o *outbox) initRaw(net.Conn) {}

func (o *outbox) writeNow() bool { return false }
