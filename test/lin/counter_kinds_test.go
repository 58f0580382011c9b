//go:build unix

package lin_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/seed-a3166700/turnstile/counter"
	"github.com/seed-a3166700/turnstile/internal/lincheck"
	"github.com/seed-a3166700/turnstile/zk"
)

// The places of a counterTrial. Quiet clients use the slow ones.
const (
	hotCounter  = "counter-0"
	slowCounter = "counter-slow"
	sequence    = "sequence-0"
	hotValue    = "value-0"
	slowValue   = "value-slow"
)

// counterTrial tries counters, sequences and values.
type counterTrial struct{}

func (counterTrial) places() []string {
	return []string{hotCounter, slowCounter, sequence, hotValue, slowValue}
}

func (counterTrial) prepare(*epoch, *zk.Session) error { return nil }

func (t counterTrial) instruct(o *orders) { o.Job, o.Places = counterJob, t.places() }

func (counterTrial) newJournal() journal { return &counterJournal{places: map[string]*counterPage{}} }

// settle reads what the calls have left.
func (counterTrial) settle(e *epoch, sess *zk.Session) error {
	for _, place := range []string{hotCounter, slowCounter} {
		c, err := counter.New(e.client, e.root+"/"+place, counter.Config{})
		if err != nil {
			return err
		}
		x := lincheck.CounterCall{Client: -1, Op: lincheck.CounterGet, Asked: clock()}
		if x.Value, err = c.Get(e.t.Context()); err != nil {
			return err
		}
		x.Done = clock()
		e.journal.note(counterReport(place, counterNote{Call: &x}))
	}
	for _, place := range []string{hotValue, slowValue} {
		v, err := counter.NewValue(e.client, e.root+"/"+place, counter.ValueConfig{})
		if err != nil {
			return err
		}
		x := lincheck.ValueCall{Client: -1, Read: true, Asked: clock()}
		now, err := v.Get(e.t.Context())
		if err != nil {
			return err
		}
		x.Old, x.Done = string(now.Data), clock()
		e.journal.note(counterReport(place, counterNote{Value: &x}))
	}
	return e.noOrphans(e.root)
}

func counterReport(place string, n counterNote) report {
	raw, err := json.Marshal(n)
	if err != nil {
		panic(err)
	}
	return report{Place: place, Recipe: raw}
}

// counterJournal is what the workers of an epoch reported of its counters.
type counterJournal struct {
	mu     sync.Mutex // guards the fields below
	places map[string]*counterPage
}

// counterPage is what was reported of one place.
type counterPage struct {
	calls  map[noteID]lincheck.CounterCall
	values map[noteID]lincheck.ValueCall
	ids    []lincheck.IDs
	seen   []lincheck.Sighting
	last   counterNote
}

func (j *counterJournal) note(r report) {
	var n counterNote
	if json.Unmarshal(r.Recipe, &n) != nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	page := j.places[r.Place]
	if page == nil {
		page = &counterPage{calls: map[noteID]lincheck.CounterCall{}, values: map[noteID]lincheck.ValueCall{}}
		j.places[r.Place] = page
	}
	page.last = n
	if c := n.Call; c != nil {
		page.calls[noteID{c.Client, c.Asked, ""}] = *c
	}
	if v := n.Value; v != nil {
		page.values[noteID{v.Client, v.Asked, ""}] = *v
	}
	if n.IDs != nil {
		page.ids = append(page.ids, *n.IDs)
	}
	if n.Seen != nil {
		page.seen = append(page.seen, *n.Seen)
	}
}

// busy returns the client that was heard last.
func (j *counterJournal) busy(place string) (number int, session int64, known bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	page := j.places[place]
	if page == nil || page.last.Session == 0 {
		return 0, 0, false
	}
	return page.last.Client, page.last.Session, true
}

func (j *counterJournal) count() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var counts []string
	for _, place := range slices.Sorted(maps.Keys(j.places)) {
		p := j.places[place]
		ids, unknown := 0, 0
		for _, got := range p.ids {
			ids += len(got.IDs)
		}
		for _, c := range p.calls {
			if c.Done == 0 {
				unknown++
			}
		}
		for _, v := range p.values {
			if v.Done == 0 {
				unknown++
			}
		}
		counts = append(counts, fmt.Sprintf("%s: %d calls, %d unknown, %d ids, %d sightings", place,
			len(p.calls)+len(p.values), unknown, ids, len(p.seen)))
	}
	return strings.Join(counts, "; ")
}

func (j *counterJournal) judge(dir string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var verdicts []error
	for _, place := range slices.Sorted(maps.Keys(j.places)) {
		p := j.places[place]
		kept := filepath.Join(dir, place)
		calls, values := slices.Collect(maps.Values(p.calls)), slices.Collect(maps.Values(p.values))
		err := errors.Join(
			lincheck.CheckCounter(slices.Clone(calls), kept),
			lincheck.CheckValue(slices.Clone(values), kept),
			lincheck.CheckSequence(p.ids),
			lincheck.CheckSightings(p.seen),
		)
		if err != nil {
			verdicts = append(verdicts, fmt.Errorf("%s: %w", place, err))
			keepHistory(kept, map[string]any{"calls": calls, "values": values, "ids": p.ids, "sightings": p.seen})
		}
	}
	return errors.Join(verdicts...)
}
