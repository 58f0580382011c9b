package tree

// A node in memory.

import (
	"github.com/seed-a3166700/turnstile/internal/wire"
)

type kind uint8

const (
	persistent kind = iota
	ephemeral
	container
	ttl
)

// empty is data of length 0, which is not the same as null.
var empty = []byte{}

// node is one znode. Its data and its access list are never written to, only replaced, because replies refer to them.
type node struct {
	path     string
	parent   *node // nil for the root
	data     []byte
	acl      *acl
	czxid    int64
	mzxid    int64
	pzxid    int64
	ctime    int64
	mtime    int64
	owner    int64 // session of an ephemeral node, time to live of a TTL node in milliseconds
	version  int32
	aversion int32
	creates  int32    // children ever created: the number of the next sequential child
	at       [2]int32 // index in the parent's children, and in the session's nodes or the tree's collectables
	kind     kind
	counted  uint32 // the last count of a quota's usage that includes the node, see quota.go
	children nodeSet
}

// collected reports whether the collector may delete n some day.
func (n *node) collected() bool { return n.kind == container || n.kind == ttl }

// stat returns the node's Stat. It hides the owner of TTL nodes, which clients would otherwise take for ephemeral ones.
func (n *node) stat() wire.Stat {
	st := wire.Stat{
		Czxid: n.czxid, Mzxid: n.mzxid, Ctime: n.ctime, Mtime: n.mtime,
		Version: n.version, Cversion: 2*n.creates - int32(len(n.children)), Aversion: n.aversion,
		DataLength: int32(len(n.data)), NumChildren: int32(len(n.children)), Pzxid: n.pzxid,
	}
	if n.kind == ephemeral {
		st.EphemeralOwner = n.owner
	}
	return st
}

// dataLength returns the length of n's data as its meta record states it.
func (n *node) dataLength() int32 {
	if n.data == nil {
		return nullData
	}
	return int32(len(n.data))
}

// clone copies data out of a request's frame, keeping null apart from empty.
func clone(data []byte) []byte {
	switch {
	case data == nil:
		return nil
	case len(data) == 0:
		return empty
	}
	return append(make([]byte, 0, len(data)), data...)
}

// nodeSet is a set of nodes. Each node knows its index in it, so adding and removing take constant time.
type nodeSet []*node

// smallSet is the capacity up to which a nodeSet does not give memory back.
const smallSet = 16

// The slots of node.at.
const (
	inParent = iota
	inSession
)

func (b *nodeSet) add(n *node, slot int) {
	n.at[slot] = int32(len(*b))
	*b = append(*b, n)
}

func (b *nodeSet) remove(n *node, slot int) {
	list := *b
	last := len(list) - 1
	at := n.at[slot]
	list[at] = list[last]
	list[at].at[slot] = at
	n.at[slot] = at
	list[last] = nil
	list = list[:last]
	if cap(list) > smallSet && len(list) < cap(list)/4 {
		list = append(make(nodeSet, 0, 2*len(list)), list...)
	}
	*b = list
}

// restore undoes remove. Everything that came after the removal must have been undone before.
func (b *nodeSet) restore(n *node, slot int) {
	at := n.at[slot]
	if int(at) == len(*b) {
		*b = append(*b, n)
		return
	}
	moved := (*b)[at]
	b.add(moved, slot)
	(*b)[at] = n
}
