package wire

// The headers of requests and replies.

import (
	"slices"

	"github.com/seed-a3166700/turnstile/internal/jute"
)

// RequestHeader stands before the body of every request but the first, ConnectRequest.
type RequestHeader struct {
	Xid int32
	Op  Op
}

// Append appends h to b.
func (h *RequestHeader) Append(b []byte) []byte {
	return jute.AppendInt(jute.AppendInt(b, h.Xid), int32(h.Op))
}

// Decode fills h from d.
func (h *RequestHeader) Decode(d *jute.Decoder) { h.Xid, h.Op = d.Int(), Op(d.Int()) }

// ReplyHeader stands before the body of every reply but the first, ConnectResponse. There is no body if Err is not OK.
type ReplyHeader struct {
	Xid  int32
	Zxid int64
	Err  Code
}

// Append appends h to b.
func (h *ReplyHeader) Append(b []byte) []byte {
	return jute.AppendInt(jute.AppendLong(jute.AppendInt(b, h.Xid), h.Zxid), int32(h.Err))
}

// Decode fills h from d.
func (h *ReplyHeader) Decode(d *jute.Decoder) {
	h.Xid, h.Zxid, h.Err = d.Int(), d.Long(), Code(d.Int())
}

// AppendRequest appends a whole request frame to b.
func AppendRequest(b []byte, xid int32, op Op, body Record) []byte {
	start := len(b)
	h := RequestHeader{Xid: xid, Op: op}
	b = h.Append(BeginFrame(b))
	if body != nil {
		b = body.Append(b)
	}
	return EndFrame(b, start)
}

// AppendReply appends a whole reply frame to b. The body is left out if h.Err is not OK.
func AppendReply(b []byte, h ReplyHeader, body Record) []byte {
	start := len(b)
	if n := ReplySize(h, body); n > 0 {
		b = slices.Grow(b, n)
	}
	b = h.Append(BeginFrame(b))
	if body != nil && h.Err == OK {
		b = body.Append(b)
	}
	return EndFrame(b, start)
}
