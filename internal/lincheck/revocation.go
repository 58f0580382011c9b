package lincheck

// Revocations.

import (
	"fmt"
	"slices"
)

// Revocation is a request to one holder to release its lock.
type Revocation struct {
	Client   int    // of the request
	Node     string // the holder's, which only holders that hand it on within one process share
	Asked    int64  // before the request
	Grace    int64  // how long the holder's node was left alone after that, at least
	Force    bool   `json:",omitempty"` // whether the node may have been deleted afterwards
	Released int64  `json:",omitempty"` // when the revoker learned that the holder had released it; 0 if it did not
}

// strikes reports whether the revocation may have deleted a node by a time.
func (r Revocation) strikes(node string, by int64) bool {
	return r.Force && r.Node == node && r.Asked+r.Grace < by
}

// Undisputed returns the holds with their ends moved to the time at which a forced revocation may have deleted their
// nodes. A revocation without force changes nothing: the holder keeps the lock until it releases it or its session
// ends.
func Undisputed(holds []Hold, revocations []Revocation) []Hold {
	var left []Hold
	for _, h := range holds {
		until := h.alive()
		for _, r := range revocations {
			if r.strikes(h.Node, until) {
				until = r.Asked + r.Grace
			}
		}
		if until < h.Got { // the holder is the next one of its process, which has not learned of the deletion
			continue
		}
		if until < h.alive() {
			h.Alive, h.Nested = until, nil
		}
		left = append(left, h)
	}
	return left
}

// Why a hold ended although its session lives.
const (
	LostRevoked = "revoked" // a client asked for it
	LostDeleted = "deleted" // a client deleted its node
	// LostUncertain means that no quorum had confirmed the session in time. The history does not say what the
	// ensemble went through, so it is not checked.
	LostUncertain = "uncertain"
)

// CheckRevocations checks that holds and revocations fit. While its session lives and is certain, a hold ends only if
// a client asked for it; a lowered limit is no reason. Its node is deleted only by a forced revocation. A holder that
// is reported to have released the lock does not hold it afterwards.
func CheckRevocations(holds []Hold, revocations []Revocation) error {
	for _, h := range holds {
		named := func(r Revocation) bool { return r.Node == h.Node && r.Asked < h.Ended }
		struck := func(r Revocation) bool { return r.strikes(h.Node, max(h.Ended, h.alive())) }
		forced := slices.ContainsFunc(revocations, struck)
		switch {
		case h.Lost == "", h.Lost == LostUncertain:
		case h.Lost == LostRevoked && slices.ContainsFunc(revocations, named):
		case h.Lost == LostDeleted && forced:
		default:
			return fmt.Errorf(
				"lincheck: client %d lost its hold with token %d (%s) by %d,"+
					" although its session lived and no client asked: %s",
				h.Client, h.Token, h.Node, h.Ended, h.Lost)
		}
		for _, r := range revocations {
			if r.Node == h.Node && r.Released != 0 && r.Released < h.alive() && !forced {
				return fmt.Errorf(
					"lincheck: client %d learned at %d that client %d had released its hold with token %d (%s),"+
						" which lasted until %d",
					r.Client, r.Released, h.Client, h.Token, h.Node, h.alive())
			}
		}
	}
	return nil
}
