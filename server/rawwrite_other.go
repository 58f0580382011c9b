//go:build !unix

package server

// Writes that do not wait, which other systems do not have.

import "net"

// initRaw does nothing: on this system the writer goroutine does all writes.
func (o *outbox) initRaw(net.Conn) {}

func (o *outbox) writeNow() bool { return false }
