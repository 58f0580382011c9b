package wire

// The first request and reply of a connection.

import "github.com/seed-a3166700/turnstile/internal/jute"

// PasswordLen is the length of a session's password in bytes.
const PasswordLen = 16

// ConnectRequest is the first frame of a client: it asks for a new session (SessionID 0) or for an old one.
type ConnectRequest struct {
	ProtocolVersion int32
	LastZxidSeen    int64
	Timeout         int32 // milliseconds
	SessionID       int64
	Password        []byte
	HasReadOnly     bool // the frame carries the ReadOnly byte; clients before 3.4 leave it out
	ReadOnly        bool
}

// Append appends r to b.
func (r *ConnectRequest) Append(b []byte) []byte {
	b = jute.AppendLong(jute.AppendInt(b, r.ProtocolVersion), r.LastZxidSeen)
	b = jute.AppendBuffer(jute.AppendLong(jute.AppendInt(b, r.Timeout), r.SessionID), r.Password)
	if r.HasReadOnly {
		b = jute.AppendBool(b, r.ReadOnly)
	}
	return b
}

// Decode fills r from d.
func (r *ConnectRequest) Decode(d *jute.Decoder) {
	r.ProtocolVersion, r.LastZxidSeen, r.Timeout, r.SessionID, r.Password = d.Int(), d.Long(), d.Int(), d.Long(), d.Buffer()
	r.HasReadOnly = d.Err() == nil && d.Len() > 0
	r.ReadOnly = r.HasReadOnly && d.Bool()
}

// ConnectResponse is the first frame of a server. A timeout of 0 or less says that the session is gone.
type ConnectResponse struct {
	ProtocolVersion int32
	Timeout         int32 // milliseconds
	SessionID       int64
	Password        []byte
	HasReadOnly     bool // as in the request
	ReadOnly        bool
}

// Append appends r to b.
func (r *ConnectResponse) Append(b []byte) []byte {
	b = jute.AppendInt(jute.AppendInt(b, r.ProtocolVersion), r.Timeout)
	b = jute.AppendBuffer(jute.AppendLong(b, r.SessionID), r.Password)
	if r.HasReadOnly {
		b = jute.AppendBool(b, r.ReadOnly)
	}
	return b
}

// Decode fills r from d.
func (r *ConnectResponse) Decode(d *jute.Decoder) {
	r.ProtocolVersion, r.Timeout, r.SessionID, r.Password = d.Int(), d.Int(), d.Long(), d.Buffer()
	r.HasReadOnly = d.Err() == nil && d.Len() > 0
	r.ReadOnly = r.HasReadOnly && d.Bool()
}
