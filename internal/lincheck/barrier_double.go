package lincheck

// Double barriers: who was inside together.

import (
	"fmt"
	"math"
)

// DoubleParty is one party of a double barrier as it saw itself. Times are as in Hold. A party whose Enter has failed,
// or that was killed, may be counted at any time since: its node may be there for long.
type DoubleParty struct {
	Client  int
	Asked   int64 // before it entered
	Entered int64 `json:",omitempty"` // after that; 0 if it did not, as far as is known
	Leaving int64 `json:",omitempty"` // before it left
	Left    int64 `json:",omitempty"` // after Leave has returned nil, which says that it was inside until Leaving
}

// gone returns the latest time at which the party may have been inside.
func (p DoubleParty) gone() int64 {
	if p.Left == 0 {
		return math.MaxInt64
	}
	return p.Left
}

// CheckDouble checks that the parties can be those of one double barrier that so many parties enter together. When a
// party has entered, there was a moment at which as many may have been there: during its Enter, or earlier if one of
// them may have been inside still when it came. When a party has left, all that were inside with it when it began to
// leave had begun to leave, or their sessions had ended.
func CheckDouble(parties []DoubleParty, needed int) error {
	for i, p := range parties {
		if p.Entered != 0 && !enteredTogether(parties, i, needed) {
			return fmt.Errorf("lincheck: entered before %d had come: %+v", needed, p)
		}
		if p.Left == 0 {
			continue
		}
		for k, other := range parties {
			// Both were surely inside at p.Leaving.
			if k != i && other.Left != 0 && other.Entered < p.Leaving && other.Leaving > p.Left {
				return fmt.Errorf("lincheck: left before all were ready to: %+v, with %+v inside", p, other)
			}
		}
	}
	return nil
}

// enteredTogether reports whether there was a moment at which the barrier can have opened for a party. More and fewer
// are there only from the moment on at which a party comes, so that those moments are enough.
func enteredTogether(parties []DoubleParty, entered, needed int) bool {
	p := parties[entered]
	for _, opener := range parties {
		at := opener.Asked
		if at > p.Entered {
			continue
		}
		there, still := 0, at >= p.Asked
		for _, other := range parties {
			if other.Asked > at || other.gone() < at {
				continue
			}
			there++
			still = still || other.gone() >= p.Asked
		}
		if there >= needed && still {
			return true
		}
	}
	return false
}
