package tree

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// Node is what a node's meta record in the store says.
type Node struct {
	Czxid, Mzxid, Pzxid int64
	Ctime, Mtime        int64
	Version, Aversion   int32
	Creates             int32 // children ever created
	Session             int64 // of an ephemeral node
	TTL                 int64 // of a TTL node, in milliseconds
	Container           bool
	DataLength          int32 // -1 if the data is null; no data record if it is not above 0
	ACL                 []wire.ACL
}

// nullData is the length of data that is null.
const nullData = -1

const (
	recordVersion = 1
	flagKind      = 0x03
	flagOpen      = 0x04 // the list is world:anyone with all permissions, and left out
)

var errRecord = errors.New("tree: damaged record of a node")

// AppendNode appends the meta record of n to b.
func AppendNode(b []byte, n *Node) []byte {
	k, owner := persistent, int64(0)
	switch {
	case n.Container:
		k = container
	case n.TTL != 0:
		k, owner = ttl, n.TTL
	case n.Session != 0:
		k, owner = ephemeral, n.Session
	}
	return appendRecord(b, &node{
		czxid: n.Czxid, mzxid: n.Mzxid, pzxid: n.Pzxid, ctime: n.Ctime, mtime: n.Mtime, owner: owner,
		version: n.Version, aversion: n.Aversion, creates: n.Creates, kind: k, acl: newACL(n.ACL),
	}, n.DataLength)
}

// DecodeNode reads a meta record. It returns an error if the record is damaged or of a version that it does not know.
func DecodeNode(b []byte) (Node, error) {
	var n node
	length, list, err := decodeRecord(b, &n)
	if err != nil {
		return Node{}, err
	}
	out := Node{
		Czxid: n.czxid, Mzxid: n.mzxid, Pzxid: n.pzxid, Ctime: n.ctime, Mtime: n.mtime,
		Version: n.version, Aversion: n.aversion, Creates: n.creates, Container: n.kind == container,
		DataLength: length, ACL: list,
	}
	switch n.kind {
	case ephemeral:
		out.Session = n.owner
	case ttl:
		out.TTL = n.owner
	case persistent, container:
	}
	return out, nil
}

func appendRecord(b []byte, n *node, length int32) []byte {
	flags := byte(n.kind)
	if n.acl.open {
		flags |= flagOpen
	}
	b = append(b, recordVersion, flags)
	for _, v := range [...]int64{
		n.czxid, n.mzxid, n.pzxid, n.ctime, n.mtime, n.owner,
		int64(n.version), int64(n.aversion), int64(n.creates), int64(length),
	} {
		b = binary.AppendVarint(b, v)
	}
	if n.acl.open {
		return b
	}
	return wire.AppendACLs(b, n.acl.list)
}

// decodeRecord fills the fields of n that the record holds and returns the length of the data and the access control list.
func decodeRecord(b []byte, n *node) (length int32, list []wire.ACL, err error) {
	if len(b) < 2 {
		return 0, nil, errRecord
	}
	if b[0] != recordVersion {
		return 0, nil, fmt.Errorf("tree: record of a node in version %d, this program knows %d", b[0], recordVersion)
	}
	flags := b[1]
	if flags&^(flagKind|flagOpen) != 0 {
		return 0, nil, errRecord
	}
	n.kind = kind(flags & flagKind)
	b = b[2:]
	var v [10]int64
	for i := range v {
		x, size := binary.Varint(b)
		if size <= 0 {
			return 0, nil, errRecord
		}
		v[i], b = x, b[size:]
	}
	n.czxid, n.mzxid, n.pzxid, n.ctime, n.mtime, n.owner = v[0], v[1], v[2], v[3], v[4], v[5]
	for _, x := range v[6:] {
		if int64(int32(x)) != x {
			return 0, nil, errRecord
		}
	}
	n.version, n.aversion, n.creates, length = int32(v[6]), int32(v[7]), int32(v[8]), int32(v[9])
	if length < nullData {
		return 0, nil, errRecord
	}
	if flags&flagOpen != 0 {
		if len(b) != 0 {
			return 0, nil, errRecord
		}
		return length, openList, nil
	}
	list, err = decodeList(b)
	return length, list, err
}
