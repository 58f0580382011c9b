//go:build unix

package lin_test

// What is tried of barriers, and what is reported of them.

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/barrier"
	"github.com/seed-a3166700/turnstile/internal/lincheck"
	"github.com/seed-a3166700/turnstile/zk"
)

// The places of a barrierTrial. Quiet clients use the slow ones. Plain and double barriers have a new path now and
// then: a call whose outcome is never known leaves open what may have been at its path ever since. So have the rounds
// that go on, because parties gather only at their beginning.
const (
	hotPlain     = "plain-0"
	slowPlain    = "plain-slow"
	hotDouble    = "double-0"
	slowDouble   = "double-slow"
	failRounds   = "fail-0"
	goOnRounds   = "continue-0"
	slowRounds   = "continue-slow" // of any number of parties
	allDouble    = "double-all"    // of all clients that are alive at the end
	allRounds    = "fail-all"
	plainLength  = time.Second // how long a path is used
	doubleLength = 3 * time.Second
	roundsLength = time.Second
	together     = 3 // parties
)

// roundsOf are the configurations of rounds.
var roundsOf = map[string]barrier.RoundsConfig{
	failRounds: {Parties: together},
	goOnRounds: {Parties: together, OnLoss: barrier.Continue},
	slowRounds: {Parties: 1, OnLoss: barrier.Continue},
	allRounds:  {Parties: clients * goroutinesPerClient},
}

// doublesOf are the numbers of parties.
var doublesOf = map[string]int{hotDouble: together, slowDouble: together, allDouble: clients * goroutinesPerClient}

// barrierTrial tries barriers.
type barrierTrial struct{}

func (barrierTrial) places() []string {
	return []string{hotPlain, slowPlain, hotDouble, slowDouble, failRounds, goOnRounds, slowRounds}
}

func (barrierTrial) prepare(*epoch, *zk.Session) error { return nil }

func (t barrierTrial) instruct(o *orders) { o.Job, o.Places = barrierJob, t.places() }

func (barrierTrial) newJournal() journal { return &barrierJournal{places: map[string]*barrierPage{}} }

// barrierNote is what a worker reports of barriers: calls before they are made and after it, and parties whenever
// something has become of them.
type barrierNote struct {
	Client  int
	Session int64
	Path    string                `json:",omitempty"` // below the place
	Call    *lincheck.BarrierCall `json:",omitempty"`
	Double  *lincheck.DoubleParty `json:",omitempty"`
	Round   *lincheck.RoundParty  `json:",omitempty"`
}

func barrierReport(place string, n barrierNote) report {
	raw, err := json.Marshal(n)
	if err != nil {
		panic(err)
	}
	return report{Place: place, Recipe: raw}
}

// barrierJournal is what the workers of an epoch reported of its barriers.
type barrierJournal struct {
	mu     sync.Mutex // guards the fields below
	places map[string]*barrierPage
}

// barrierPage is what was reported of one place.
type barrierPage struct {
	calls    map[string]map[noteID]lincheck.BarrierCall // by path
	doubles  map[string]map[noteID]lincheck.DoubleParty // by path
	rounds   map[string]map[noteID]lincheck.RoundParty  // by path
	outcomes map[string][]lincheck.RoundOutcome         // by path
	last     barrierNote
}

// page returns the page of a place. The caller holds the mutex.
func (j *barrierJournal) page(place string) *barrierPage {
	page := j.places[place]
	if page == nil {
		page = &barrierPage{
			calls:    map[string]map[noteID]lincheck.BarrierCall{},
			doubles:  map[string]map[noteID]lincheck.DoubleParty{},
			rounds:   map[string]map[noteID]lincheck.RoundParty{},
			outcomes: map[string][]lincheck.RoundOutcome{},
		}
		j.places[place] = page
	}
	return page
}

func (j *barrierJournal) note(r report) {
	var n barrierNote
	if json.Unmarshal(r.Recipe, &n) != nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	page := j.page(r.Place)
	page.last = n
	if c := n.Call; c != nil {
		enter(page.calls, n.Path, noteID{c.Client, c.Asked, ""}, *c)
	}
	if d := n.Double; d != nil {
		enter(page.doubles, n.Path, noteID{d.Client, d.Asked, ""}, *d)
	}
	if p := n.Round; p != nil {
		enter(page.rounds, n.Path, noteID{p.Client, p.Asked, ""}, *p)
	}
}

// enter keeps what was reported last of a call or a party.
func enter[T any](all map[string]map[noteID]T, path string, id noteID, one T) {
	if all[path] == nil {
		all[path] = map[noteID]T{}
	}
	all[path][id] = one
}

// busy returns the client that was heard last.
func (j *barrierJournal) busy(place string) (number int, session int64, known bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	page := j.places[place]
	if page == nil || page.last.Session == 0 {
		return 0, 0, false
	}
	return page.last.Client, page.last.Session, true
}

func (j *barrierJournal) count() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var counts []string
	for _, place := range slices.Sorted(maps.Keys(j.places)) {
		counts = append(counts, fmt.Sprintf("%s: %s", place, j.places[place].count()))
	}
	return strings.Join(counts, "; ")
}

func (p *barrierPage) count() string {
	calls := map[string]int{}
	for _, path := range p.calls {
		for _, c := range path {
			calls[c.Op]++
			if c.Done == 0 {
				calls["unknown"]++
			}
		}
	}
	for _, path := range p.doubles {
		for _, d := range path {
			calls["parties"]++
			if d.Entered != 0 {
				calls["entered"]++
			}
			if d.Left != 0 {
				calls["left"]++
			}
		}
	}
	for _, path := range p.rounds {
		for _, party := range path {
			calls["parties"]++
			for _, a := range party.Arrivals {
				switch {
				case a.Done == 0:
					calls["arrived"]++
				case a.Failed:
					calls["failed"]++
				default:
					calls["passed"]++
				}
			}
		}
	}
	for _, path := range p.outcomes {
		calls["rounds"] += len(path)
	}
	var counts []string
	for _, what := range slices.Sorted(maps.Keys(calls)) {
		counts = append(counts, fmt.Sprintf("%d %s", calls[what], what))
	}
	return strings.Join(counts, ", ")
}

func (j *barrierJournal) judge(dir string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var verdicts []error
	for _, place := range slices.Sorted(maps.Keys(j.places)) {
		page := j.places[place]
		refused := func(path string, err error, history any) {
			if err != nil {
				verdicts = append(verdicts, fmt.Errorf("%s: %w", place+path, err))
				keepHistory(filepath.Join(dir, place, path), history)
			}
		}
		for path, calls := range page.calls {
			all := slices.Collect(maps.Values(calls))
			refused(path, lincheck.CheckBarrier(all), all)
		}
		for path, parties := range page.doubles {
			all := slices.Collect(maps.Values(parties))
			refused(path, lincheck.CheckDouble(all, doublesOf[place]), all)
		}
		cfg := roundsOf[place]
		for path, parties := range page.rounds {
			h := lincheck.RoundHistory{
				Needed: cfg.Parties, Continue: cfg.OnLoss == barrier.Continue,
				Parties: slices.Collect(maps.Values(parties)), Outcomes: page.outcomes[path],
			}
			refused(path, lincheck.CheckRounds(h), h)
		}
	}
	return errors.Join(verdicts...)
}
