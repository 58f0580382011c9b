package wire

// Identities: auth, sasl and whoAmI.

import "github.com/seed-a3166700/turnstile/internal/jute"

// AuthRequest adds an identity to a connection.
type AuthRequest struct {
	Type   int32
	Scheme string
	Auth   []byte
}

// Append appends r to b.
func (r *AuthRequest) Append(b []byte) []byte {
	return jute.AppendBuffer(jute.AppendString(jute.AppendInt(b, r.Type), r.Scheme), r.Auth)
}

// Decode fills r from d.
func (r *AuthRequest) Decode(d *jute.Decoder) {
	r.Type, r.Scheme, r.Auth = d.Int(), d.String(), d.Buffer()
}

// SASLToken is both body and answer of sasl.
type SASLToken struct{ Token []byte }

// Append appends t to b.
func (t *SASLToken) Append(b []byte) []byte { return jute.AppendBuffer(b, t.Token) }

// Decode fills t from d.
func (t *SASLToken) Decode(d *jute.Decoder) { t.Token = d.Buffer() }

// WhoAmIResponse lists the identities of a connection. ID.ID holds the user.
type WhoAmIResponse struct{ IDs []ID }

// Append appends r to b.
func (r *WhoAmIResponse) Append(b []byte) []byte {
	b = jute.AppendInt(b, int32(len(r.IDs)))
	for _, id := range r.IDs {
		b = jute.AppendString(jute.AppendString(b, id.Scheme), id.ID)
	}
	return b
}

// Decode fills r from d.
func (r *WhoAmIResponse) Decode(d *jute.Decoder) {
	n := d.Count(8)
	r.IDs = nil
	for range n {
		r.IDs = append(r.IDs, ID{Scheme: d.String(), ID: d.String()})
	}
}
