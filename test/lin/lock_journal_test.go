//go:build unix

package lin_test

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/seed-a3166700/turnstile/internal/lincheck"
)

// lockJournal is what the workers of an epoch reported of its locks.
type lockJournal struct {
	mu     sync.Mutex // guards the fields below
	places map[string]*lockPage
}

// lockPage is what was reported of one place.
type lockPage struct {
	holds       map[noteID]lincheck.Hold
	writes      []lincheck.Write
	seen        []lincheck.Sighting
	limits      map[noteID]lincheck.Limit
	revocations map[noteID]lincheck.Revocation
	last        lincheck.Hold // the last one that was reported
	failures    int           // acquisitions that failed by themselves
}

// noteID identifies what is reported several times. It tells a hold from others even if a broken lock gives two holds
// the same token.
type noteID struct {
	client int
	at     int64
	node   string // of the holders that are asked at a time
}

func newLockJournal() *lockJournal { return &lockJournal{places: make(map[string]*lockPage)} }

func (j *lockJournal) note(r report) {
	j.mu.Lock()
	defer j.mu.Unlock()
	page := j.places[r.Place]
	if page == nil {
		page = &lockPage{
			holds: make(map[noteID]lincheck.Hold), limits: make(map[noteID]lincheck.Limit),
			revocations: make(map[noteID]lincheck.Revocation),
		}
		j.places[r.Place] = page
	}
	if h := r.Hold; h != nil {
		page.holds[noteID{h.Client, h.Got, ""}] = *h
		page.last = *h
	}
	if r.Failed {
		page.failures++
	}
	if r.Write != nil {
		page.writes = append(page.writes, *r.Write)
	}
	if r.Seen != nil {
		page.seen = append(page.seen, *r.Seen)
	}
	if l := r.Limit; l != nil {
		page.limits[noteID{l.Client, l.Asked, ""}] = *l
	}
	if v := r.Revocation; v != nil {
		page.revocations[noteID{v.Client, v.Asked, v.Node}] = *v
	}
}

// busy returns the number and the session of the last known holder in a place.
func (j *lockJournal) busy(place string) (number int, session int64, held bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	page := j.places[place]
	if page == nil {
		return 0, 0, false
	}
	return page.last.Client, page.last.Session, len(page.holds) > 0 && page.last.Ended == 0
}

// count returns how much was reported of each place.
func (j *lockJournal) count() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var counts []string
	for _, place := range slices.Sorted(maps.Keys(j.places)) {
		counts = append(counts, fmt.Sprintf("%s: %s", place, j.places[place].count()))
	}
	return strings.Join(counts, "; ")
}

func (p *lockPage) count() string {
	nested, lost, uncertain := 0, 0, 0
	for _, h := range p.holds {
		nested += len(h.Nested)
		switch h.Lost {
		case "":
		case lincheck.LostUncertain:
			uncertain++
		default:
			lost++
		}
	}
	var counts []string
	for _, c := range []struct {
		n    int
		what string
	}{
		{len(p.holds), "holds"},
		{nested, "nested"},
		{len(p.writes), "guarded writes"},
		{len(p.seen), "sightings"},
		{len(p.limits), "limits"},
		{len(p.revocations), "asked for"},
		{lost, "lost to that"},
		{uncertain, "lost as uncertain"},
		{p.failures, "failed"},
	} {
		if c.n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	return strings.Join(counts, ", ")
}

// judge returns nil if each place behaved as its kind promises. Otherwise it keeps the history in dir.
func (j *lockJournal) judge(dir string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var verdicts []error
	for _, place := range slices.Sorted(maps.Keys(j.places)) {
		page := j.places[place]
		holds := slices.Collect(maps.Values(page.holds))
		limits := slices.Collect(maps.Values(page.limits))
		revocations := slices.Collect(maps.Values(page.revocations))
		kept := filepath.Join(dir, place)
		err := errors.Join(
			kindOf(place).judge(lincheck.Undisputed(holds, revocations), kept),
			lincheck.CheckWrites(page.writes),
			lincheck.CheckSightings(page.seen),
			lincheck.CheckNested(holds),
			lincheck.CheckLimits(holds, limits),
			lincheck.CheckRevocations(holds, revocations),
		)
		if err == nil {
			continue
		}
		verdicts = append(verdicts, fmt.Errorf("%s: %w", place, err))
		everything := map[string]any{
			"holds": holds, "writes": page.writes, "sightings": page.seen, "limits": limits,
			"revocations": revocations,
		}
		keepHistory(kept, everything)
	}
	return errors.Join(verdicts...)
}
