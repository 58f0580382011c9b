package lincheck

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// electionModel is a mutex with other words.
var electionModel = porcupine.Model{
	Init: mutexModel.Init,
	Step: mutexModel.Step,
	DescribeOperation: func(input, _ any) string {
		op := input.(mutexOp)
		if op.take {
			return fmt.Sprintf("%s leads with %d", op.node, op.token)
		}
		return fmt.Sprintf("%d leads no more", op.token)
	},
	DescribeState: func(state any) string {
		s := state.(mutexState)
		return fmt.Sprintf("leader %d, last %d", s.holder, s.last)
	},
}

// CheckElection judges whether holds can be the leaderships of one election: never two leaders at once, each with a larger token than
// the one before. It reports as CheckMutex does.
func CheckElection(leaderships []Hold, dir string) error {
	return checkExclusive(electionModel, "an election", leaderships, dir)
}

// Sighting is a leader that somebody saw who watches an election.
type Sighting struct {
	Observer int // no two observers have the same number
	Token    int64
	At       int64 // when it was seen
}

// CheckSightings judges whether each observer, whose sightings come in their order, saw the leaders of one election one after the
// other: never an earlier one again. An observer may miss leaders.
func CheckSightings(sightings []Sighting) error {
	last := make(map[int]Sighting)
	for _, s := range sightings {
		if before := last[s.Observer]; s.Token < before.Token {
			return fmt.Errorf("lincheck: observer %d saw the leader with token %d at %d, after the one with token %d at %d",
				s.Observer, s.Token, s.At, before.Token, before.At)
		}
		last[s.Observer] = s
	}
	return nil
}
