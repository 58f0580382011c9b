package wire

// The records of multi and multiRead.

import (
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/jute"
)

// multiHeader stands before every operation of a multi, in the request and in the reply.
type multiHeader struct {
	op   Op
	done bool
	err  Code
}

func (h multiHeader) append(b []byte) []byte {
	return jute.AppendInt(jute.AppendBool(jute.AppendInt(b, int32(h.op)), h.done), int32(h.err))
}

func decodeMultiHeader(d *jute.Decoder) multiHeader {
	return multiHeader{op: Op(d.Int()), done: d.Bool(), err: Code(d.Int())}
}

// multiEnd closes the list of operations and the list of results.
var multiEnd = multiHeader{op: OpError, done: true, err: -1}

// SubRequest is one operation of a multi.
type SubRequest struct {
	Op      Op
	Request Record
}

// MultiRequest is the body of multi and, if Read, of multiRead.
type MultiRequest struct {
	Read bool
	Ops  []SubRequest
}

// Append appends r to b.
func (r *MultiRequest) Append(b []byte) []byte {
	for _, s := range r.Ops {
		b = s.Request.Append(multiHeader{op: s.Op, err: -1}.append(b))
	}
	return multiEnd.append(b)
}

// Decode fills r from d; r.Read must be set before. An operation that does not belong into such a multi is an error.
func (r *MultiRequest) Decode(d *jute.Decoder) {
	r.Ops = nil
	for d.Err() == nil {
		h := decodeMultiHeader(d)
		if d.Err() != nil || h.done {
			return
		}
		if !multiAllows(r.Read, h.op) {
			d.Fail(fmt.Errorf("wire: %v inside a multi (read: %t)", h.op, r.Read))
			return
		}
		s := SubRequest{Op: h.op, Request: NewRequest(h.op)}
		s.Request.Decode(d)
		r.Ops = append(r.Ops, s)
	}
}

func multiAllows(read bool, op Op) bool {
	switch op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL, OpDelete, OpSetData, OpCheck:
		return !read
	case OpGetData, OpGetChildren:
		return read
	default:
		return false
	}
}

// MultiResult is the outcome of one operation of a multi. Op is OpError if it failed or was not tried; else it selects
// which of the other fields are there: Path for OpCreate, Path and Stat for OpCreate2, Stat for OpSetData, Data and Stat for
// OpGetData, Children for OpGetChildren, none for OpDelete and OpCheck.
type MultiResult struct {
	Op       Op
	Err      Code
	Path     string
	Stat     Stat
	Data     []byte
	Children []string
}

func (r *MultiResult) body() Record {
	switch r.Op {
	case OpError:
		return &ErrorResponse{Err: r.Err}
	case OpCreate:
		return &PathResponse{Path: r.Path}
	case OpCreate2, OpCreateContainer, OpCreateTTL:
		return &Create2Response{Path: r.Path, Stat: r.Stat}
	case OpSetData:
		return &StatResponse{Stat: r.Stat}
	case OpGetData:
		return &DataResponse{Data: r.Data, Stat: r.Stat}
	case OpGetChildren:
		return &ChildrenResponse{Children: r.Children}
	case OpDelete, OpCheck:
		return &Empty{}
	default:
		return nil
	}
}

// MultiResponse answers multi and multiRead.
type MultiResponse struct{ Results []MultiResult }

// Append appends r to b.
func (r *MultiResponse) Append(b []byte) []byte {
	for i := range r.Results {
		res := &r.Results[i]
		b = multiHeader{op: res.Op, err: res.Err}.append(b)
		if body := res.body(); body != nil {
			b = body.Append(b)
		}
	}
	return multiEnd.append(b)
}

// Decode fills r from d.
func (r *MultiResponse) Decode(d *jute.Decoder) {
	r.Results = nil
	for d.Err() == nil {
		h := decodeMultiHeader(d)
		if d.Err() != nil || h.done {
			return
		}
		res := MultiResult{Op: h.op, Err: h.err}
		if h.op == OpError || h.err != OK {
			res.Op, res.Err = OpError, decodeMultiError(d, h.err)
		} else {
			res.decodeBody(d)
		}
		r.Results = append(r.Results, res)
	}
}

// decodeMultiError reads the code that follows a failed operation's header. Some servers leave it out of multiRead: then the next
// integer is the type of the next header, and no type of a header has the value of a failure's code.
func decodeMultiError(d *jute.Decoder, inHeader Code) Code {
	if next, ok := d.PeekInt(); inHeader != OK && (!ok || Code(next) != inHeader) {
		return inHeader
	}
	return Code(d.Int())
}

func (r *MultiResult) decodeBody(d *jute.Decoder) {
	body := r.body()
	if body == nil {
		d.Fail(fmt.Errorf("wire: %v in the answer of a multi", r.Op))
		return
	}
	body.Decode(d)
	switch b := body.(type) {
	case *PathResponse:
		r.Path = b.Path
	case *Create2Response:
		r.Path, r.Stat = b.Path, b.Stat
	case *StatResponse:
		r.Stat = b.Stat
	case *DataResponse:
		r.Data, r.Stat = b.Data, b.Stat
	case *ChildrenResponse:
		r.Children = b.Children
	}
}
