package wire

// The records of delete and check.

import "github.com/seed-a3166700/turnstile/internal/jute"

// DeleteRequest deletes a node without children, if Version is -1 or the version of its data.
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

// CheckRequest makes a multi fail unless the node exists and Version is -1 or the version of its data.
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
