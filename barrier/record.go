package barrier

// What the node of Rounds says: the round, and what became of earlier ones.

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// Outcome is what became of a round.
type Outcome struct {
	Round  int64 `json:"round"`
	Lost   int   `json:"lost"`             // parties that died in it
	Failed bool  `json:"failed,omitempty"` // by FailRound
}

// maxOutcomes is how many rounds with losses are remembered: the latest.
const maxOutcomes = 256

// A record is the data of the node. Its version changes with every round, so that what a party does under the condition
// of that version belongs to one round. But the node may be deleted and made anew, and have the same version and the
// same round again. So the directories have names that no other record has, and each transaction needs one of them; and
// who has read a record compares the czxid before it relies on the number of the round.
type record struct {
	ID       string    `json:"id"` // in the names of the directories
	Parties  int       `json:"parties"`
	OnLoss   string    `json:"onLoss"`
	Round    int64     `json:"round"`              // which the parties are in
	Gathered bool      `json:"gathered,omitempty"` // with Continue: so many parties have come as there should be
	Behind   []string  `json:"behind"`             // the directories of parties that have not arrived at Round
	Arrived  string    `json:"arrived"`            // the directory of those that have
	Since    int64     `json:"since"`              // outcomes before this round are forgotten
	Losses   []Outcome `json:"losses,omitempty"`   // the rounds since then in which parties died, in order

	czxid   int64 // of the node
	version int32
}

func newRecord(cfg RoundsConfig) *record {
	r := &record{ID: attempt.NewGUID(), Parties: cfg.Parties, OnLoss: cfg.OnLoss.String(), Round: 1, Since: 1}
	r.Behind, r.Arrived = []string{r.arrivals(0)}, r.arrivals(1)
	return r
}

// arrivals is the name of the directory of the parties that have arrived at a round.
func (r *record) arrivals(round int64) string { return fmt.Sprintf("arrived-%d-%s", round, r.ID) }

func (r *record) encode() []byte {
	data, _ := json.Marshal(r) // cannot fail: numbers and strings
	return data
}

func decodeRecord(path string, data []byte, stat zk.Stat) (*record, error) {
	r := &record{czxid: stat.Czxid, version: stat.Version}
	if err := json.Unmarshal(data, r); err != nil || r.Round < 1 || len(r.Behind) == 0 || r.Arrived == "" {
		return nil, fmt.Errorf("%s does not hold rounds; use a path of its own, or delete it", path)
	}
	return r, nil
}

// matches returns an error unless the record is that of rounds with the configuration.
func (r *record) matches(cfg RoundsConfig) error {
	if r.Parties != cfg.Parties || r.OnLoss != cfg.OnLoss.String() {
		return fmt.Errorf("%w: stored %d parties and %s, given %d and %v",
			ErrMismatch, r.Parties, r.OnLoss, cfg.Parties, cfg.OnLoss)
	}
	return nil
}

// outcome returns what became of a round before r.Round.
func (r *record) outcome(round int64) (Outcome, error) {
	if round < r.Since {
		return Outcome{}, fmt.Errorf("%w: round %d; kept since round %d", ErrForgotten, round, r.Since)
	}
	i, found := slices.BinarySearchFunc(r.Losses, round, func(o Outcome, n int64) int { return int(o.Round - n) })
	if found {
		return r.Losses[i], nil
	}
	return Outcome{Round: round}, nil
}

// next returns the record of the next round. Crowded are the directories in which there are parties.
func (r *record) next(o Outcome, crowded []string) *record {
	n := *r
	n.Round++
	n.Behind = crowded
	n.Arrived = n.arrivals(n.Round)
	if o.Lost > 0 {
		n.Losses = append(slices.Clone(r.Losses), o)
	}
	if extra := len(n.Losses) - maxOutcomes; extra > 0 {
		n.Since = n.Losses[extra-1].Round + 1
		n.Losses = n.Losses[extra:]
	}
	return &n
}
