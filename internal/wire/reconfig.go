package wire

// The record of reconfig.

import "github.com/seed-a3166700/turnstile/internal/jute"

// ReconfigRequest changes the members of an ensemble. The reply is a DataResponse with the new configuration.
type ReconfigRequest struct {
	Joining    string
	Leaving    string
	NewMembers string
	FromConfig int64
}

// Append appends r to b. Empty fields become null, by which servers distinguish the forms of the request.
func (r *ReconfigRequest) Append(b []byte) []byte {
	for _, s := range []string{r.Joining, r.Leaving, r.NewMembers} {
		if s == "" {
			b = jute.AppendNull(b)
		} else {
			b = jute.AppendString(b, s)
		}
	}
	return jute.AppendLong(b, r.FromConfig)
}

// Decode fills r from d.
func (r *ReconfigRequest) Decode(d *jute.Decoder) {
	r.Joining, r.Leaving, r.NewMembers, r.FromConfig = d.String(), d.String(), d.String(), d.Long()
}
