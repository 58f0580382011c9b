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

// lockJournal is what the workers of an epoch have seen of its locks.
type lockJournal struct {
	mu    sync.Mutex // guards all below
	holds map[string]map[holdID]lincheck.Hold
	write map[string][]lincheck.Write
	seen  map[string][]lincheck.Sighting
	last  map[string]lincheck.Hold // of each place, the one that was reported last
}

// holdID tells a hold from others even if a lock gives one token twice.
type holdID struct {
	client int
	got    int64
}

func newLockJournal() *lockJournal {
	return &lockJournal{
		holds: make(map[string]map[holdID]lincheck.Hold),
		write: make(map[string][]lincheck.Write),
		seen:  make(map[string][]lincheck.Sighting),
		last:  make(map[string]lincheck.Hold),
	}
}

func (j *lockJournal) note(r report) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if h := r.Hold; h != nil {
		if j.holds[r.Place] == nil {
			j.holds[r.Place] = make(map[holdID]lincheck.Hold)
		}
		j.holds[r.Place][holdID{h.Client, h.Got}] = *h
		j.last[r.Place] = *h
	}
	if r.Write != nil {
		j.write[r.Place] = append(j.write[r.Place], *r.Write)
	}
	if r.Seen != nil {
		j.seen[r.Place] = append(j.seen[r.Place], *r.Seen)
	}
}

// busy returns the number of whoever is known to hold the lock in a place just now.
func (j *lockJournal) busy(place string) (number int, held bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	h, known := j.last[place]
	return h.Client, known && h.Ended == 0
}

// count says how much was seen in each place.
func (j *lockJournal) count() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var counts []string
	for _, place := range slices.Sorted(maps.Keys(j.holds)) {
		counts = append(counts, fmt.Sprintf("%s: %d holds, %d guarded writes, %d sightings",
			place, len(j.holds[place]), len(j.write[place]), len(j.seen[place])))
	}
	return strings.Join(counts, "; ")
}

// judge returns nil if each place was what its kind promises. Otherwise it keeps what was seen in dir.
func (j *lockJournal) judge(dir string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var verdicts []error
	for _, place := range slices.Sorted(maps.Keys(j.holds)) {
		holds := slices.Collect(maps.Values(j.holds[place]))
		kept := filepath.Join(dir, place)
		err := errors.Join(
			kindOf(place).judge(holds, kept),
			lincheck.CheckWrites(j.write[place]),
			lincheck.CheckSightings(j.seen[place]),
		)
		if err == nil {
			continue
		}
		verdicts = append(verdicts, fmt.Errorf("%s: %w", place, err))
		everything := map[string]any{"holds": holds, "writes": j.write[place], "sightings": j.seen[place]}
		keepHistory(kept, everything)
	}
	return errors.Join(verdicts...)
}
