package wire

// The records of create, create2, createContainer and createTTL.

import "github.com/seed-a3166700/turnstile/internal/jute"

// Flags of a create request: the kind of the node.
const (
	FlagPersistent              int32 = 0
	FlagEphemeral               int32 = 1
	FlagSequential              int32 = 2
	FlagEphemeralSequential     int32 = 3
	FlagContainer               int32 = 4
	FlagTTL                     int32 = 5
	FlagPersistentSequentialTTL int32 = 6
)

// MaxTTL is the longest life of a TTL node in milliseconds.
const MaxTTL = 1<<40 - 1

// CreateRequest makes a node. It is the body of create, create2 and createContainer.
type CreateRequest struct {
	Path  string
	Data  []byte
	ACL   []ACL
	Flags int32
}

// Append appends r to b.
func (r *CreateRequest) Append(b []byte) []byte {
	return jute.AppendInt(AppendACLs(jute.AppendBuffer(jute.AppendString(b, r.Path), r.Data), r.ACL), r.Flags)
}

// Decode fills r from d.
func (r *CreateRequest) Decode(d *jute.Decoder) {
	r.Path, r.Data, r.ACL, r.Flags = d.Required(), d.Buffer(), DecodeACLs(d), d.Int()
}

// CreateTTLRequest makes a node that goes when it has no child and was not changed for TTL milliseconds.
type CreateTTLRequest struct {
	CreateRequest
	TTL int64
}

// Append appends r to b.
func (r *CreateTTLRequest) Append(b []byte) []byte {
	return jute.AppendLong(r.CreateRequest.Append(b), r.TTL)
}

// Decode fills r from d.
func (r *CreateTTLRequest) Decode(d *jute.Decoder) {
	r.CreateRequest.Decode(d)
	r.TTL = d.Long()
}

// Create2Response answers create2, createContainer and createTTL; create is answered with a PathResponse.
type Create2Response struct {
	Path string
	Stat Stat
}

// Append appends r to b.
func (r *Create2Response) Append(b []byte) []byte { return r.Stat.Append(jute.AppendString(b, r.Path)) }

// Decode fills r from d.
func (r *Create2Response) Decode(d *jute.Decoder) {
	r.Path = d.String()
	r.Stat.Decode(d)
}
