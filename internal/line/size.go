package line

// Transactions that would be too large.

import (
	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// maxRequest bounds the transaction that makes nodes of ours, in bytes. A server drops the connection of a client that
// sends a request of more than a mebibyte (the default of jute.maxbuffer). The client cannot know then what became of
// the request. If it repeated the request for that reason it would do so for ever, and everything that shares the
// session would suffer. Requests that replace or remove the nodes name each of them at most twice, and so are at most
// twice as long.
const maxRequest = 1 << 19

// CheckSize returns an error if one transaction with a contender's nodes in each of the lines would be too large for
// servers.
func CheckSize(lines ...*Line) error {
	size := 0
	for _, l := range lines {
		for _, n := range l.creations(l.names(guidShape), l.mode(), l.Data()) {
			size += sizeOf(n)
		}
	}
	return checkSize(size)
}

// CheckSize returns an error if the creation of the node would be too large for servers.
func (l *NodeLock) CheckSize() error {
	return checkSize(sizeOf(zk.Node{Path: l.Path, Data: l.Data(guidShape), ACL: l.Line.ACL}))
}

func checkSize(size int) error {
	if size > maxRequest {
		return attempt.Bad("the nodes would take a request of %d bytes, and servers may refuse more than %d: "+
			"ask for less at once, or shorten paths, label and ACL", size, maxRequest)
	}
	return nil
}

// sizeOf returns about how long the creation of a node is on the wire.
func sizeOf(n zk.Node) int {
	const frame = 64 // lengths, flags, the operation's header, the number
	size := frame + len(n.Path) + len(n.Data)
	for _, a := range n.ACL {
		size += frame + len(a.ID.Scheme) + len(a.ID.ID)
	}
	return size
}

// guidShape is as long as what NewGUID returns.
const guidShape = "00000000-0000-0000-0000-000000000000"
