package tree

// Encoding of a node in the store.

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// nullData is the length in the meta record of a node whose data is null.
const nullData = -1

const (
	recordVersion = 1
	flagKind      = 0x03
	flagOpen      = 0x04 // the access list is openList and is left out
)

var errRecord = errors.New("tree: damaged node record")

// appendRecord appends the meta record of n, whose data has the given length: -1 if it is null. A node without a data
// record has length 0 or -1.
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

// decodeRecord sets the fields of n that the record holds, and returns the length of the data and the access list.
func decodeRecord(b []byte, n *node) (length int32, list []wire.ACL, err error) {
	if len(b) < 2 {
		return 0, nil, errRecord
	}
	if b[0] != recordVersion {
		return 0, nil, fmt.Errorf("tree: unknown version %d of a node record, want %d", b[0], recordVersion)
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
