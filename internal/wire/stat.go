package wire

// The metadata of a node.

import "github.com/seed-a3166700/turnstile/internal/jute"

// StatLen is the length of an encoded Stat in bytes.
const StatLen = 68

// Stat is what a server tells about a node. Times are milliseconds since 1970 by the server's clock.
type Stat struct {
	Czxid          int64
	Mzxid          int64
	Ctime          int64
	Mtime          int64
	Version        int32
	Cversion       int32
	Aversion       int32
	EphemeralOwner int64
	DataLength     int32
	NumChildren    int32
	Pzxid          int64
}

// Append appends s to b.
func (s *Stat) Append(b []byte) []byte {
	b = jute.AppendLong(jute.AppendLong(b, s.Czxid), s.Mzxid)
	b = jute.AppendLong(jute.AppendLong(b, s.Ctime), s.Mtime)
	b = jute.AppendInt(jute.AppendInt(jute.AppendInt(b, s.Version), s.Cversion), s.Aversion)
	b = jute.AppendInt(jute.AppendInt(jute.AppendLong(b, s.EphemeralOwner), s.DataLength), s.NumChildren)
	return jute.AppendLong(b, s.Pzxid)
}

// Decode fills s from d.
func (s *Stat) Decode(d *jute.Decoder) {
	s.Czxid, s.Mzxid, s.Ctime, s.Mtime = d.Long(), d.Long(), d.Long(), d.Long()
	s.Version, s.Cversion, s.Aversion = d.Int(), d.Int(), d.Int()
	s.EphemeralOwner, s.DataLength, s.NumChildren, s.Pzxid = d.Long(), d.Int(), d.Int(), d.Long()
}
