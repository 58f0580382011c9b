package line

// What a candidate's node says.

import (
	"bytes"
	"encoding/json"
	"slices"
)

// RevokeToken is what Curator's Revoker writes into the node of a holder, and what Curator's holders look for.
const RevokeToken = "__REVOKE__"

// A CandidateRecord is the data of a candidate's node. It is the id, as other programs store it; then, after a newline,
// the value that a leader has proclaimed; then a request to the leader, if there is one. To other programs all of it is
// the id, so what is not there takes no room.
type CandidateRecord struct {
	ID      string
	Value   []byte          // nil if none is proclaimed
	Request json.RawMessage // the last one to give the leadership up; nil if there is none
}

// asks is what a request begins with. A value has to contain it and a request behind it to be taken for one.
const asks = "\n\x00turnstile asks: "

// Encode returns the data.
func (r CandidateRecord) Encode() []byte {
	data := []byte(r.ID)
	if r.Value != nil {
		data = append(append(data, '\n'), r.Value...)
	}
	if r.Request != nil {
		data = append(append(data, asks...), r.Request...)
	}
	return data
}

// DecodeCandidate reads the data of a candidate's node, ours or another program's. After a request by Curator's Revoker
// there is nothing else left in it.
func DecodeCandidate(data []byte) CandidateRecord {
	if string(data) == RevokeToken {
		return CandidateRecord{Request: json.RawMessage("{}")}
	}
	var r CandidateRecord
	if i := bytes.LastIndex(data, []byte(asks)); i >= 0 {
		if request := data[i+len(asks):]; json.Valid(request) {
			data, r.Request = data[:i], slices.Clone(request)
		}
	}
	id, value, proclaimed := bytes.Cut(data, []byte{'\n'})
	r.ID = string(id)
	if proclaimed {
		r.Value = append([]byte{}, value...) // not nil, so that an empty value is one
	}
	return r
}
