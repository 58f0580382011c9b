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

// queueJournal is what the workers of an epoch reported of its queues, and what was in them at the end.
type queueJournal struct {
	mu     sync.Mutex // guards the fields below
	queues map[string]*queuePages
}

// queuePages is what was reported of one queue.
type queuePages struct {
	seen       lincheck.QueueHistory
	puts       map[callID]int // their indexes in seen
	deliveries map[callID]int
	purges     map[callID]int
	requeues   map[callID]int
	last       int // the last one that was reported
	lives      int // sessions of consumers
}

// callID identifies a call among those of all workers.
type callID struct{ client, serial int }

func newQueueJournal() *queueJournal { return &queueJournal{queues: make(map[string]*queuePages)} }

// pagesLocked returns the pages of a queue.
func (j *queueJournal) pagesLocked(place string) *queuePages {
	if j.queues[place] == nil {
		j.queues[place] = &queuePages{
			puts: make(map[callID]int), deliveries: make(map[callID]int),
			purges: make(map[callID]int), requeues: make(map[callID]int),
		}
	}
	return j.queues[place]
}

func (j *queueJournal) note(r report) {
	j.mu.Lock()
	defer j.mu.Unlock()
	q := j.pagesLocked(r.Place)
	if r.Life {
		q.lives++
	}
	if p := r.Put; p != nil {
		q.seen.Puts, _ = noted(q.seen.Puts, q.puts, callID{p.Client, p.Serial}, *p)
	}
	if d := r.Delivery; d != nil {
		q.seen.Deliveries, q.last = noted(q.seen.Deliveries, q.deliveries, callID{d.Client, d.Serial}, *d)
	}
	if p := r.Purge; p != nil {
		q.seen.Purges, _ = noted(q.seen.Purges, q.purges, callID{p.Client, p.Serial}, *p)
	}
	if r.Pause != nil {
		q.seen.Pauses = append(q.seen.Pauses, *r.Pause)
	}
	if r.Rate != nil {
		q.seen.Rates = append(q.seen.Rates, *r.Rate)
	}
	if r.Periodic != nil {
		q.seen.Periodic = append(q.seen.Periodic, *r.Periodic)
	}
	if p := r.Requeue; p != nil {
		q.seen.Requeues, _ = noted(q.seen.Requeues, q.requeues, callID{p.Client, p.Serial}, *p)
	}
}

// noted adds a new element to a list, or replaces it by its later report. It also returns the element's index.
func noted[T any](list []T, known map[callID]int, id callID, what T) ([]T, int) {
	if i, ok := known[id]; ok {
		list[i] = what
		return list, i
	}
	known[id] = len(list)
	return append(list, what), len(list)
}

// found records what was in a queue at the end.
func (j *queueJournal) found(place string, dead []lincheck.Dead, marks []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	q := j.pagesLocked(place)
	q.seen.Dead, q.seen.Marks = dead, marks
}

// busy returns the number and the session of a consumer that has an item of the queue, or the number of the client that
// puts periodic items.
func (j *queueJournal) busy(place string) (number int, session int64, known bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	q := j.queues[place]
	switch {
	case q == nil:
		return 0, 0, false
	case len(q.seen.Periodic) > 0:
		return q.seen.Periodic[len(q.seen.Periodic)-1].Client, 0, true
	case len(q.seen.Deliveries) == 0:
		return 0, 0, false
	}
	d := q.seen.Deliveries[q.last]
	return d.Client, d.Session, d.Finish.Asked == 0
}

func (j *queueJournal) count() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var counts []string
	for _, place := range slices.Sorted(maps.Keys(j.queues)) {
		q := j.queues[place]
		items, full, alone, again, unclear, together := 0, 0, 0, 0, 0, 0
		for i := range q.seen.Puts {
			items += len(q.seen.Puts[i].IDs)
			if q.seen.Puts[i].Full {
				full++
			}
		}
		for i := range q.seen.Deliveries {
			d := &q.seen.Deliveries[i]
			if d.Alone {
				alone++
			}
			if d.Attempt > 1 {
				again++
			}
			if d.Finish.Done == 0 {
				unclear++
			}
			if d.Finish.Others > 0 && d.Finish.Done > 0 {
				together++
			}
		}
		counts = append(counts, fmt.Sprintf("%s: %d items put, %d deliveries to %d sessions,"+
			" %d of them in strict order, %d again, %d without an end, %d done together, %d dead",
			place, items, len(q.seen.Deliveries), q.lives, alone, again, unclear, together, len(q.seen.Dead)))
		if full > 0 {
			counts[len(counts)-1] += fmt.Sprintf(", %d times full", full)
		}
		if n := len(q.seen.Purges); n > 0 {
			gone, alone := 0, 0
			for i := range q.seen.Purges {
				gone += q.seen.Purges[i].N
				if p := &q.seen.Purges[i]; p.Session != 0 && !p.Failed {
					alone++
				}
			}
			counts[len(counts)-1] += fmt.Sprintf(", %d gone in %d purges, %d of them cut short, %d alone", gone, n,
				q.cut(), alone)
		}
		if n := len(q.seen.Pauses); n > 0 {
			counts[len(counts)-1] += fmt.Sprintf(", %d looks at its pauses", n)
		}
		if n := len(q.seen.Rates); n > 0 {
			counts[len(counts)-1] += fmt.Sprintf(", %d looks at its rate", n)
		}
		if n := len(q.seen.Periodic); n > 0 {
			counts[len(counts)-1] += fmt.Sprintf(", %d periodic puts", n)
		}
		if n := len(q.seen.Requeues); n > 0 {
			back := 0
			for i := range q.seen.Requeues {
				back += q.seen.Requeues[i].N
			}
			counts[len(counts)-1] += fmt.Sprintf(", %d put back in %d calls", back, n)
		}
	}
	return strings.Join(counts, "; ")
}

// cut returns how many purges returned an error or did not return.
func (q *queuePages) cut() int {
	n := 0
	for i := range q.seen.Purges {
		if p := &q.seen.Purges[i]; p.Failed || p.Done == 0 {
			n++
		}
	}
	return n
}

func (j *queueJournal) judge(dir string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var verdicts []error
	for _, place := range slices.Sorted(maps.Keys(j.queues)) {
		q := j.queues[place]
		kept := filepath.Join(dir, place)
		q.seen.Rules = queueKinds[place].rules(q.lives, q.cut())
		err := lincheck.CheckQueue(q.seen, kept)
		if err == nil {
			continue
		}
		verdicts = append(verdicts, fmt.Errorf("%s: %w", place, err))
		keepHistory(kept, q.seen)
	}
	return errors.Join(verdicts...)
}
