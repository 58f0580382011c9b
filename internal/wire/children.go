package wire

// Lists of children: the replies of getChildren and getEphemerals.

import "github.com/seed-a3166700/turnstile/internal/jute"

// ChildrenResponse answers getChildren and, without ACL, getEphemerals.
type ChildrenResponse struct{ Children []string }

// Append appends r to b.
func (r *ChildrenResponse) Append(b []byte) []byte { return jute.AppendStrings(b, r.Children) }

// Decode fills r from d.
func (r *ChildrenResponse) Decode(d *jute.Decoder) { r.Children = d.Strings() }

// Children2Response answers getChildren2.
type Children2Response struct {
	Children []string
	Stat     Stat
}

// Append appends r to b.
func (r *Children2Response) Append(b []byte) []byte {
	return r.Stat.Append(jute.AppendStrings(b, r.Children))
}

// Decode fills r from d.
func (r *Children2Response) Decode(d *jute.Decoder) {
	r.Children = d.Strings()
	r.Stat.Decode(d)
}

// EphemeralsRequest is the body of getEphemerals. The null prefix reads as "", which means all as well.
type EphemeralsRequest struct{ Prefix string }

// Append appends r to b.
func (r *EphemeralsRequest) Append(b []byte) []byte { return jute.AppendString(b, r.Prefix) }

// Decode fills r from d.
func (r *EphemeralsRequest) Decode(d *jute.Decoder) { r.Prefix = d.String() }

// CountResponse answers getAllChildrenNumber.
type CountResponse struct{ Count int32 }

// Append appends r to b.
func (r *CountResponse) Append(b []byte) []byte { return jute.AppendInt(b, r.Count) }

// Decode fills r from d.
func (r *CountResponse) Decode(d *jute.Decoder) { r.Count = d.Int() }
