package wire

// The records of delete and check.

import "github.com/seed-a3166700/turnstile/internal/jute"

// DeleteRequest removes a node without children, if its version is the given one or Version is -1.
type DeleteRequest struct {
	Path    string
	Version int32
}

// Append appends r to b.
func (r *DeleteRequest) Append(b []byte) []byte {
	return jute.AppendInt(jute.AppendString(b, r.Path), r.Version)
}

// Decode fills r from d.
func (r *DeleteRequest) Decode(d *jute.Decoder) { r.Path, r.Version = d.Required(), d.Int() }

// CheckRequest makes a multi fail unless the node has the given version, or exists if Version is -1.
type CheckRequest struct {
	Path    string
	Version int32
}

// Append appends r to b.
func (r *CheckRequest) Append(b []byte) []byte {
	return jute.AppendInt(jute.AppendString(b, r.Path), r.Version)
}

// Decode fills r from d.
func (r *CheckRequest) Decode(d *jute.Decoder) { r.Path, r.Version = d.Required(), d.Int() }
