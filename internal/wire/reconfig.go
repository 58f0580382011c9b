package wire

// The record of reconfig.

import "github.com/seed-a3166700/turnstile/internal/jute"

// ReconfigRequest changes the members of an ensemble. It is answered with a DataResponse: the new configuration.
type ReconfigRequest struct {
	Joining    string
	Leaving    string
	NewMembers string
	FromConfig int64
}

// Append appends r to b. Empty fields are sent as null, which is how servers tell the forms of the request apart.
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
