package lincheck

// Rounds: what the parties were told of each, and who was missing.

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
)

// RoundArrival is a party's arrival at a round. Times are as in Hold.
type RoundArrival struct {
	Asked  int64 // before it arrived
	Done   int64 `json:",omitempty"` // after it was told of the round; 0 if it was not
	Round  int64 `json:",omitempty"` // that it was told of
	Failed bool  `json:",omitempty"` // the round has failed; otherwise it was passed
	// It was told that it is no party any more, although its session was there still.
	Ousted bool `json:",omitempty"`
}

// RoundParty is one party of rounds as it saw itself.
type RoundParty struct {
	Client   int
	Asked    int64          // before it joined
	Joined   int64          `json:",omitempty"` // after that; 0 if that failed, or is unknown
	Arrivals []RoundArrival `json:",omitempty"` // in their order; only the last one may be without an outcome
	Left     int64          `json:",omitempty"` // after it has left in good order; 0 if it may count as lost
	// Sessions that have ended while it joined, or may have: each of them may have left a party that is lost.
	Ended int `json:",omitempty"`
}

// told returns the last round that the party was told of, or 0.
func (p RoundParty) told() int64 {
	for _, a := range slices.Backward(p.Arrivals) {
		if a.Done != 0 {
			return a.Round
		}
	}
	return 0
}

// RoundOutcome is what the server says of a round at the end.
type RoundOutcome struct {
	Round  int64
	Lost   int  `json:",omitempty"`
	Failed bool `json:",omitempty"`
}

// RoundHistory is what the parties of rounds saw.
type RoundHistory struct {
	Needed   int  // how many parties there should be
	Continue bool // a round goes on with the living; otherwise it fails when a party is lost
	Parties  []RoundParty
	Outcomes []RoundOutcome // of all rounds that are over; none if they are not known
}

// roundFacts are what follows for one round from all that parties were told of it.
type roundFacts struct {
	round    int64
	failed   bool
	told     bool
	first    int64 // when the first party was told
	lastCome int64 // when the last party came that was told it was passed: before that it was not over
}

// CheckRounds checks that the parties can be those of one Rounds. All are told the same of a round, which is what the
// server says at the end. A party is told of one round after the other, and of none twice. No party is told that a
// round was passed before all others that were told the same had come, and before as many had come as there should be;
// if rounds go on with the living, that many must have come or died before the first is passed. A party whose session
// lives is not left behind. No more parties are lost than may have died, and a round fails only by a loss.
func CheckRounds(h RoundHistory) error {
	rounds := make(map[int64]*roundFacts)
	for _, o := range h.Outcomes {
		rounds[o.Round] = &roundFacts{round: o.Round, failed: o.Failed, first: math.MaxInt64}
	}
	for _, p := range h.Parties {
		if err := h.tell(rounds, p); err != nil {
			return err
		}
	}
	return errors.Join(h.checkArrivals(rounds), h.checkLosses(rounds))
}

// tell adds what a party was told to the rounds.
func (h RoundHistory) tell(rounds map[int64]*roundFacts, p RoundParty) error {
	var last int64
	for _, a := range p.Arrivals {
		if a.Ousted {
			return fmt.Errorf("lincheck: a party was left behind whose session lived: %+v", p)
		}
		if a.Done == 0 {
			continue
		}
		if last != 0 && a.Round != last+1 {
			return fmt.Errorf("lincheck: told of round %d after round %d: %+v", a.Round, last, p)
		}
		last = a.Round
		f := rounds[a.Round]
		if f == nil {
			if h.Outcomes != nil {
				return fmt.Errorf("lincheck: told of round %d, which is not over: %+v", a.Round, p)
			}
			f = &roundFacts{round: a.Round, failed: a.Failed, first: math.MaxInt64}
			rounds[a.Round] = f
		}
		if f.failed != a.Failed {
			return fmt.Errorf("lincheck: round %d was told to be passed and failed: %+v", a.Round, p)
		}
		f.told, f.first = true, min(f.first, a.Done)
		if !a.Failed {
			f.lastCome = max(f.lastCome, a.Asked)
		}
	}
	return nil
}

// checkArrivals checks that enough had come before a round was passed.
func (h RoundHistory) checkArrivals(rounds map[int64]*roundFacts) error {
	for _, f := range rounds {
		if f.failed || !f.told {
			continue
		}
		if f.lastCome > f.first {
			return fmt.Errorf("lincheck: round %d was passed before all had come: %+v", f.round, *f)
		}
		if h.Continue && f.round > 1 {
			continue // any number may be alive
		}
		come := 0
		for _, p := range h.Parties {
			lost := h.Continue && p.Left == 0 && p.Asked <= f.first
			if lost || h.arrivedAt(p, f, rounds) {
				come++
			}
			if h.Continue && p.Asked <= f.first {
				come += p.Ended
			}
		}
		if come < h.Needed {
			return fmt.Errorf("lincheck: round %d was passed by %d of %d parties: %+v", f.round, come, h.Needed, *f)
		}
	}
	return nil
}

// arrivedAt reports whether a party may have arrived at a round before the first party was told of it.
func (h RoundHistory) arrivedAt(p RoundParty, f *roundFacts, rounds map[int64]*roundFacts) bool {
	for _, a := range p.Arrivals {
		switch {
		case a.Asked > f.first:
		case a.Done != 0:
			if a.Round == f.round {
				return true
			}
		case p.told() != 0:
			return p.told()+1 == f.round
		default: // it joined while the round may have been the current one
			before := rounds[f.round-1]
			return p.Asked <= f.first && (before == nil || before.lastCome <= p.Joined)
		}
	}
	return false
}

// checkLosses checks that for each loss a party may have died in that round or an earlier one.
func (h RoundHistory) checkLosses(rounds map[int64]*roundFacts) error {
	lost := make(map[int64]int)
	for _, f := range rounds {
		if f.failed {
			lost[f.round] = 1
		}
	}
	for _, o := range h.Outcomes {
		lost[o.Round] = o.Lost
		if o.Failed && (o.Lost == 0 || h.Continue) {
			return fmt.Errorf("lincheck: a round failed without a loss, or although it should go on: %+v", o)
		}
	}
	total := 0
	for _, round := range slices.Sorted(maps.Keys(lost)) {
		total += lost[round]
		dead := 0
		for _, p := range h.Parties {
			if f := rounds[round]; f.told && p.Asked > f.first {
				continue
			}
			if dead += p.Ended; p.Left == 0 && p.told() <= round {
				dead++
			}
		}
		if total > dead {
			return fmt.Errorf("lincheck: %d parties were lost up to round %d, and only %d can have died", total, round,
				dead)
		}
	}
	return nil
}
