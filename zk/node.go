package zk

// Nodes, their modes and their metadata.

import (
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// Stat is a node's metadata. Times are in milliseconds since 1970 by the server's clock.
type Stat struct {
	Czxid          int64 // the transaction that created the node
	Mzxid          int64 // the last one that set its data
	Ctime          int64
	Mtime          int64
	Version        int32 // counts changes of the data
	Cversion       int32 // counts creations and deletions of children
	Aversion       int32 // counts changes of the access control list
	EphemeralOwner int64 // the session of an ephemeral node, or 0: containers and nodes with a TTL have none
	DataLength     int32
	NumChildren    int32
	Pzxid          int64 // the last transaction that created or deleted a child
}

// Mode is the kind of a node to create.
type Mode int

// The modes. The server appends a ten-digit counter to the name of sequential ones.
const (
	Persistent              = Mode(wire.FlagPersistent)
	Ephemeral               = Mode(wire.FlagEphemeral) // deleted when the session ends
	PersistentSequential    = Mode(wire.FlagSequential)
	EphemeralSequential     = Mode(wire.FlagEphemeralSequential)
	Container               = Mode(wire.FlagContainer) // deleted some time after its last child
	PersistentTTL           = Mode(wire.FlagTTL)       // deleted when it has no child and was not changed for Node.TTL
	PersistentSequentialTTL = Mode(wire.FlagPersistentSequentialTTL)
)

func (m Mode) sequential() bool {
	return m == PersistentSequential || m == EphemeralSequential || m == PersistentSequentialTTL
}

func (m Mode) ttl() bool { return m == PersistentTTL || m == PersistentSequentialTTL }

// op returns the operation that creates nodes of this mode: containers and TTL nodes have their own.
func (m Mode) op() wire.Op {
	switch {
	case m == Container:
		return wire.OpCreateContainer
	case m.ttl():
		return wire.OpCreateTTL
	default:
		return wire.OpCreate2
	}
}

// Node is a node to create.
type Node struct {
	Path string
	Data []byte
	Mode Mode
	ACL  []ACL         // OpenACL if nil
	TTL  time.Duration // for the TTL modes, at least a millisecond
}

// Created describes a node that was created. Servers before 3.8.4 leave out Stat in a Multi.
type Created struct {
	Path string // with the counter, if the mode is sequential
	Stat Stat
}

// Data is a node's data with its Stat.
type Data struct {
	Data []byte // nil if the node has null data
	Stat Stat
}

// Children is a node's Stat with the names of its children, in no particular order.
type Children struct {
	Names []string
	Stat  Stat
}

// Existence says whether a node exists. Stat is zero if it does not.
type Existence struct {
	Stat   Stat
	Exists bool
}

// WatchedExistence says whether a node exists, with a watch on it. Stat is zero if it does not.
type WatchedExistence struct {
	Stat   Stat
	Exists bool
	Watch  *Watch
}

// WatchedData is a node's data with a watch on it.
type WatchedData struct {
	Data  []byte
	Stat  Stat
	Watch *Watch
}

// WatchedChildren is a node's children with a watch on them.
type WatchedChildren struct {
	Names []string
	Stat  Stat
	Watch *Watch
}
