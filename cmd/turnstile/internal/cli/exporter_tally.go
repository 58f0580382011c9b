package cli

// What turnstile exporter reads when it is asked: queues and deadlocks.

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/exposition"
	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
)

// What reading may cost.
const (
	tallyEvery   = time.Second     // at most so often
	tallyShare   = 4               // of the time, at most a quarter is spent reading
	tallyTime    = 4 * time.Second // then what was read counts, and the rest is unread
	tallyWorkers = 8               // so many queues are read at a time
	tallyQueues  = 1000            // and so many in all
)

// A tally is what was read of queues and deadlocks. It never changes.
type tally struct {
	queues map[string]*queueMetrics // by the names that are shown
	unread int                      // queues that could not be read, or were too many
	cycles map[string]int           // deadlocks by certainty; nil if they could not be read
}

// tallies keeps the last tally for all who ask at the same time, or too often.
type tallies struct {
	ctx    context.Context //nolint:containedctx // whoever asks may leave; what is read is for others, too
	client *zk.Client
	turn   chan struct{} // one slot: whoever reads, or looks at the fields below, has it

	last tally
	next time.Time // not read again before
}

func newTallies(ctx context.Context, client *zk.Client) *tallies {
	return &tallies{ctx: ctx, client: client, turn: make(chan struct{}, 1)}
}

// of returns the tally of what a survey has found: none if ctx ends while another request reads.
func (t *tallies) of(ctx context.Context, s *survey.Snapshot) tally {
	if s.Mode == survey.Cut {
		return tally{}
	}
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return tally{}
	}
	if began := time.Now(); !began.Before(t.next) {
		t.last = t.read(s.Entries) //nolint:contextcheck // see t.ctx
		t.next = time.Now().Add(max(tallyEvery, (tallyShare-1)*time.Since(began)))
	}
	return t.last
}

// read reads the queues among the entries, and the deadlocks.
func (t *tallies) read(entries []survey.Entry) tally {
	ctx, cancel := context.WithTimeout(t.ctx, tallyTime)
	defer cancel()
	found := tally{queues: make(map[string]*queueMetrics)}
	if list, err := lock.Deadlocks(ctx, t.client, ""); err == nil {
		found.cycles = map[string]int{"confirmed": 0, "possible": 0}
		for _, d := range list {
			if d.Confirmed {
				found.cycles["confirmed"]++
			} else {
				found.cycles["possible"]++
			}
		}
	}
	var paths []string
	for _, e := range entries {
		if e.Kind == survey.Queue {
			paths = append(paths, e.Path)
		}
	}
	found.unread = max(0, len(paths)-tallyQueues)
	paths = paths[:len(paths)-found.unread]
	todo := make(chan string, len(paths))
	for _, path := range paths {
		todo <- path
	}
	close(todo)
	var group sync.WaitGroup
	var mu sync.Mutex // guards found
	for range tallyWorkers {
		group.Go(func() {
			for path := range todo {
				s, err := queue.Summarize(ctx, t.client, path, 0)
				mu.Lock()
				switch {
				case err == nil:
					count(found.queues, path, newQueueMetrics(s))
				case !errors.Is(err, queue.ErrNotQueue): // that has gone since the survey saw it
					found.unread++
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	found.queues = few(found.queues)
	return found
}

// queueMetrics are the numbers of the queues whose paths have one name.
type queueMetrics struct {
	items  map[queue.State]int
	oldest time.Time // zero if nothing is ready
}

func newQueueMetrics(s queue.Summary) *queueMetrics {
	return &queueMetrics{oldest: s.Oldest, items: map[queue.State]int{
		queue.Ready: s.Ready, queue.Delayed: s.Delayed, queue.Claimed: s.Claimed, queue.Waiting: s.Waiting,
		queue.Dead: s.Dead,
	}}
}

// add counts other queues in.
func (m *queueMetrics) add(other *queueMetrics) {
	for state, n := range other.items {
		m.items[state] += n
	}
	if m.oldest.IsZero() || !other.oldest.IsZero() && other.oldest.Before(m.oldest) {
		m.oldest = other.oldest
	}
}

// compare orders those with the oldest items first, and then those with the most.
func (m *queueMetrics) compare(other *queueMetrics) int {
	switch {
	case m.oldest.IsZero() && !other.oldest.IsZero():
		return 1
	case !m.oldest.IsZero() && other.oldest.IsZero():
		return -1
	}
	total := func(m *queueMetrics) (n int) {
		for _, items := range m.items {
			n += items
		}
		return n
	}
	return cmp.Or(m.oldest.Compare(other.oldest), cmp.Compare(total(other), total(m)))
}

// write adds the values of the tally to the text.
func (t tally) write(x *exposition.Text, now time.Time) {
	exposition.Set(x, "turnstile_ensemble_cycles", exposition.Gauge, "certainty", t.cycles)
	if t.queues == nil { // nothing was read
		return
	}
	x.Gauge("turnstile_ensemble_queues_unread", t.unread)
	if len(t.queues) == 0 {
		return
	}
	const items, oldest = "turnstile_ensemble_queue_items", "turnstile_ensemble_queue_oldest_seconds"
	x.Family(items, exposition.Gauge)
	ages := make(map[string]float64, len(t.queues))
	for _, name := range slices.Sorted(maps.Keys(t.queues)) {
		m := t.queues[name]
		for _, state := range slices.Sorted(maps.Keys(m.items)) {
			x.Value(items, exposition.Label("queue", name, "state", state.String()), m.items[state])
		}
		ages[name] = 0
		if !m.oldest.IsZero() {
			ages[name] = max(0, now.Sub(m.oldest).Seconds())
		}
	}
	exposition.Set(x, oldest, exposition.Gauge, "queue", ages)
}
