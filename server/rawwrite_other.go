//go:build !unix

package server

import "net"

// initRaw does nothing: on this system the writer goroutine does all writes.
func (o *outbox) initRaw(net.Conn) {}

func (o *outbox) writeNow() bool { return false }
