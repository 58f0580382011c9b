package wire

// Data: setData, and the reply of getData.

import "github.com/seed-a3166700/turnstile/internal/jute"

// DataResponse answers getData. Null data is nil, empty data is not.
type DataResponse struct {
	Data []byte
	Stat Stat
}

// Append appends r to b.
func (r *DataResponse) Append(b []byte) []byte { return r.Stat.Append(jute.AppendBuffer(b, r.Data)) }

// Decode fills r from d.
func (r *DataResponse) Decode(d *jute.Decoder) {
	r.Data = d.Buffer()
	r.Stat.Decode(d)
}

// SetDataRequest replaces a node's data, if its version is the given one or Version is -1.
type SetDataRequest struct {
	Path    string
	Data    []byte
	Version int32
}

// Append appends r to b.
func (r *SetDataRequest) Append(b []byte) []byte {
	return jute.AppendInt(jute.AppendBuffer(jute.AppendString(b, r.Path), r.Data), r.Version)
}

// Decode fills r from d.
func (r *SetDataRequest) Decode(d *jute.Decoder) {
	r.Path, r.Data, r.Version = d.String(), d.Buffer(), d.Int()
}
