package line

import (
	"fmt"

	"github.com/seed-a3166700/turnstile/zk"
)

// maxRequest bounds the transaction that makes nodes of ours, in bytes. Servers drop the connection of whoever sends a
// request of more than a mebibyte (jute.maxbuffer, where nobody has set it). What became of it nobody knows then, and
// who repeats it for that reason does so for ever, at the cost of everything that shares the session. Requests that
// replace or remove the nodes name each of them twice at most, and so are at most twice as long.
const maxRequest = 1 << 19

// CheckSize returns an error if one transaction with a contender's nodes in each of the lines would be too large for
// servers.
func CheckSize(lines ...*Line) error {
	size := 0
	for _, l := range lines {
		for _, n := range l.creations(l.names(guidShape), zk.EphemeralSequential) {
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
		return fmt.Errorf("the nodes would take a request of %d bytes, and servers may refuse more than %d: "+
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
