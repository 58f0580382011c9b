package line

// What a candidate's node says.

import (
	"bytes"
	"encoding/json"
)

// RevokeToken is what Curator's Revoker writes into the node of a holder, and what Curator's holders look for.
const RevokeToken = "__REVOKE__"

// A CandidateRecord is the data of a candidate's node. It is the id, as other programs store it; then, after a newline,
// the value that a leader has proclaimed; then a request to the leader, if there is one. To other programs all of it is
// the id, so what is not there takes no room.
type CandidateRecord struct {
	ID      string
	Value   []byte      // nil if none is proclaimed
	Revoked *Revocation // the last request to give the leadership up; nil if there is none
}

// asks is what a request begins with. A value has to contain it and a request behind it to be taken for one.
const asks = "\n\x00turnstile asks: "

// Encode returns the data.
func (r CandidateRecord) Encode() []byte {
	data := []byte(r.ID)
	if r.Value != nil {
		data = append(append(data, '\n'), r.Value...)
	}
	if r.Revoked != nil {
		request, err := json.Marshal(r.Revoked)
		if err != nil {
			return data // cannot happen: every field marshals
		}
		data = append(append(data, asks...), request...)
	}
	return data
}

// DecodeCandidate reads the data of a candidate's node, ours or another program's. After a request by Curator's Revoker
// there is nothing else left in it.
func DecodeCandidate(data []byte) CandidateRecord {
	if string(data) == RevokeToken {
		return CandidateRecord{Revoked: &Revocation{}}
	}
	var r CandidateRecord
	if i := bytes.LastIndex(data, []byte(asks)); i >= 0 {
		var request Revocation
		if json.Unmarshal(data[i+len(asks):], &request) == nil {
			data, r.Revoked = data[:i], &request
		}
	}
	id, value, proclaimed := bytes.Cut(data, []byte{'\n'})
	r.ID = string(id)
	if proclaimed {
		r.Value = append([]byte{}, value...) // not nil, so that an empty value is one
	}
	return r
}
