package lincheck

// The model of an election.

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// electionModel is the mutex model with other descriptions.
var electionModel = porcupine.Model{
	Init: mutexModel.Init,
	Step: mutexModel.Step,
	DescribeOperation: func(input, _ any) string {
		op := input.(mutexOp)
		if op.take {
			return fmt.Sprintf("%s leads with %d", op.node, op.token)
		}
		return fmt.Sprintf("%d stops leading", op.token)
	},
	DescribeState: func(state any) string {
		s := state.(mutexState)
		return fmt.Sprintf("leader %d, last %d", s.holder, s.last)
	},
}

// CheckElection checks that holds can be the leaderships of one election: never two leaders at once, each with a
// larger token than the one before. It reports errors as CheckMutex does.
func CheckElection(leaderships []Hold, dir string) error {
	return checkExclusive(electionModel, "an election", leaderships, dir)
}

// Sighting is a leader that an observer of an election saw.
type Sighting struct {
	Observer int // every observer has a number of its own
	Token    int64
	At       int64 // when it was seen
}

// CheckSightings checks that each observer saw the leaders of one election in order and never an earlier one again.
// The sightings of an observer are in order. An observer may miss leaders.
func CheckSightings(sightings []Sighting) error {
	last := make(map[int]Sighting)
	for _, s := range sightings {
		if before := last[s.Observer]; s.Token < before.Token {
			return fmt.Errorf("lincheck: observer %d saw the leader with token %d at %d, after the one with %d at %d",
				s.Observer, s.Token, s.At, before.Token, before.At)
		}
		last[s.Observer] = s
	}
	return nil
}
