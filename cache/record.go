package cache

// What is stored of a node, and its encoding.

import (
	"encoding/binary"
)

// A record is what is stored of a node, besides its path.
type record struct {
	czxid, mzxid int64
	ctime, mtime int64
	owner        int64
	version      int32
	size         int    // of the data at the server
	data         []byte // nil if the node has none, or if data is not kept
	null         bool   // the node has null data
}

// The flags of an encoded record.
const (
	hasChanges = 1 << iota // mzxid, mtime and version follow
	hasOwner               // the session of an ephemeral node follows
	hasSize                // data is not kept, and its size follows
	isBig                  // the data is not in the leaf, but in its list of big ones at the index that follows
	isNull                 // the data is null
)

// maxInline bounds the data that is stored in the leaf itself, so that copying a leaf stays cheap.
const maxInline = 512

// base is what zxids and times are stored relative to: those of the first node of a table.
type base struct {
	set         bool
	zxid, ctime int64
}

// append encodes r. The index is that of its data among the leaf's big ones, and is ignored if the data is small.
func (r *record) append(b []byte, from base, index int) []byte {
	flags := byte(0)
	if r.mzxid != r.czxid || r.mtime != r.ctime || r.version != 0 {
		flags |= hasChanges
	}
	if r.owner != 0 {
		flags |= hasOwner
	}
	if r.size != len(r.data) {
		flags |= hasSize
	}
	if len(r.data) > maxInline {
		flags |= isBig
	}
	if r.null {
		flags |= isNull
	}
	b = append(b, flags)
	if flags&isBig != 0 {
		b = binary.AppendUvarint(b, uint64(index)) // first, so that it is found quickly
	}
	b = binary.AppendVarint(b, r.czxid-from.zxid)
	b = binary.AppendVarint(b, r.ctime-from.ctime)
	if flags&hasChanges != 0 {
		b = binary.AppendVarint(b, r.mzxid-r.czxid)
		b = binary.AppendVarint(b, r.mtime-r.ctime)
		b = binary.AppendVarint(b, int64(r.version))
	}
	if flags&hasOwner != 0 {
		b = binary.AppendVarint(b, r.owner)
	}
	if flags&hasSize != 0 {
		b = binary.AppendUvarint(b, uint64(r.size))
	}
	if flags&isBig == 0 {
		b = append(b, r.data...)
	}
	return b
}

// decodeRecord decodes what append has encoded. The record's data shares memory with the leaf.
func decodeRecord(b []byte, from base, big [][]byte) record {
	flags := b[0]
	b = b[1:]
	var r record
	if flags&isBig != 0 {
		r.data = big[takeUvarint(&b)]
	}
	r.czxid = from.zxid + takeVarint(&b)
	r.ctime = from.ctime + takeVarint(&b)
	r.mzxid, r.mtime = r.czxid, r.ctime
	if flags&hasChanges != 0 {
		r.mzxid += takeVarint(&b)
		r.mtime += takeVarint(&b)
		r.version = int32(takeVarint(&b))
	}
	if flags&hasOwner != 0 {
		r.owner = takeVarint(&b)
	}
	size := uint64(0)
	if flags&hasSize != 0 {
		size = takeUvarint(&b)
	}
	if flags&isBig == 0 {
		r.data = b
	}
	r.null = flags&isNull != 0
	r.size = len(r.data)
	if flags&hasSize != 0 {
		r.size = int(size)
	}
	return r
}

// bigIndex returns the index of an encoded record's data among the big ones, or -1.
func bigIndex(rest []byte) int {
	if rest[0]&isBig == 0 {
		return -1
	}
	i, _ := binary.Uvarint(rest[1:])
	return int(i)
}

func takeVarint(b *[]byte) int64 {
	v, n := binary.Varint(*b)
	*b = (*b)[n:]
	return v
}

func takeUvarint(b *[]byte) uint64 {
	v, n := binary.Uvarint(*b)
	*b = (*b)[n:]
	return v
}
