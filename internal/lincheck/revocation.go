package lincheck

import (
	"fmt"
	"slices"
)

// Revocation is a request to one holder to give its lock up.
type Revocation struct {
	Client   int    // who asks
	Node     string // the holder's; no two holders have the same, but those who hand it on in one process
	Asked    int64  // before the holder was asked
	Grace    int64  // how long its node was left in peace after that, at least
	Force    bool   `json:",omitempty"` // its node may have been deleted then
	Released int64  `json:",omitempty"` // when it was known to have gone by its own doing; 0 if it is not known
}

// strikes reports whether the revocation may have deleted a node by some time.
func (r Revocation) strikes(node string, by int64) bool {
	return r.Force && r.Node == node && r.Asked+r.Grace < by
}

// Undisputed returns what is left of holds if they are undisputed only until somebody may have deleted their nodes by force. Whoever revokes
// without force changes nothing: the lock is the holder's until it unlocks, or its session ends.
func Undisputed(holds []Hold, revocations []Revocation) []Hold {
	var left []Hold
	for _, h := range holds {
		until := h.alive()
		for _, r := range revocations {
			if r.strikes(h.Node, until) {
				until = r.Asked + r.Grace
			}
		}
		if until < h.Got { // the next in its process has it still, which has not heard of the deletion
			continue
		}
		if until < h.alive() {
			h.Alive, h.Nested = until, nil
		}
		left = append(left, h)
	}
	return left
}

// Why a hold has ended although its session lives.
const (
	LostRevoked = "revoked" // somebody asked
	LostDeleted = "deleted" // somebody deleted its node
	// LostUncertain: no quorum had confirmed the session in time. What the ensemble went through is not in the history,
	// so it is not judged.
	LostUncertain = "uncertain"
)

// CheckRevocations judges whether holds and the revocations of their lock fit: no hold ends while its session lives and
// is certain unless somebody asked for that, least of all because a limit was lowered; nor because its node was deleted
// unless somebody did so by force. And who is said to have given the lock up of its own accord does not hold it
// afterwards.
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
			return fmt.Errorf("lincheck: client %d, whose session lived, lost its hold with token %d (%s) by %d, and nobody had asked for that: %s",
				h.Client, h.Token, h.Node, h.Ended, h.Lost)
		}
		for _, r := range revocations {
			if r.Node == h.Node && r.Released != 0 && r.Released < h.alive() && !forced {
				return fmt.Errorf("lincheck: client %d was told at %d that client %d had given its hold with token %d (%s) up, which lasted until %d",
					r.Client, r.Released, h.Client, h.Token, h.Node, h.alive())
			}
		}
	}
	return nil
}
