package wire

// Records that consist of a path, or of a Stat.

import "github.com/seed-a3166700/turnstile/internal/jute"

// PathRequest is the body of getACL, sync, getAllChildrenNumber and deleteContainer.
type PathRequest struct{ Path string }

// Append appends r to b.
func (r *PathRequest) Append(b []byte) []byte { return jute.AppendString(b, r.Path) }

// Decode fills r from d.
func (r *PathRequest) Decode(d *jute.Decoder) { r.Path = d.Required() }

// PathResponse answers create and sync.
type PathResponse struct{ Path string }

// Append appends r to b.
func (r *PathResponse) Append(b []byte) []byte { return jute.AppendString(b, r.Path) }

// Decode fills r from d.
func (r *PathResponse) Decode(d *jute.Decoder) { r.Path = d.String() }

// PathWatchRequest is the body of exists, getData, getChildren and getChildren2.
type PathWatchRequest struct {
	Path  string
	Watch bool
}

// Append appends r to b.
func (r *PathWatchRequest) Append(b []byte) []byte {
	return jute.AppendBool(jute.AppendString(b, r.Path), r.Watch)
}

// Decode fills r from d.
func (r *PathWatchRequest) Decode(d *jute.Decoder) { r.Path, r.Watch = d.Required(), d.Bool() }

// StatResponse answers exists, setData and setACL.
type StatResponse struct{ Stat Stat }

// Append appends r to b.
func (r *StatResponse) Append(b []byte) []byte { return r.Stat.Append(b) }

// Decode fills r from d.
func (r *StatResponse) Decode(d *jute.Decoder) { r.Stat.Decode(d) }
