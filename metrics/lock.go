package metrics

// The metrics of locks.

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-a3166700/turnstile/internal/outcome"
	"github.com/seed-a3166700/turnstile/lock"
)

// locks are the metrics of all locks. Passing a lock on in memory is so fast that counting must be, too: it takes one
// mutex, which no other lock needs, and the rest is done when the metrics are read.
type locks struct {
	lost, deadlocks *prometheus.CounterVec

	wait, hold, acquired, contended, waiting, held, longestWait, longestHold *prometheus.Desc

	names *names[lockName]
}

// A lockName has the series of the locks of one name, for each kind that was used.
type lockName struct {
	name  string
	kinds [lock.Permit + 1]atomic.Pointer[lockSeries]
}

// A lockSeries has the series of the locks of one name and one kind.
type lockSeries struct {
	name, kind string

	mu           sync.Mutex // guards the fields below
	waits, holds open
	contended    uint64
	acquired     [lock.Retained + 1]uint64
	wait         [len(outcomes)]*histogram // nil before the first
	hold         [len(ends)]*histogram
}

// What comes of calls of Lock.
const (
	outcomeAcquired = iota
	outcomeHeld
	outcomeCanceled
	outcomeDeadlock
	outcomeRefused
	outcomeError
)

// How holds end.
const (
	endReleased = iota
	endLost
	endRevoked
)

var (
	outcomes = [...]string{
		outcome.Acquired, outcome.Held, outcome.Canceled, outcome.Deadlock, outcome.Refused, outcome.Error,
	}
	ends = [...]string{"released", "lost", "revoked"}
)

// The causes of losses that each lock shows from the beginning, so that an alert sees the first loss.
var lockCauses = []string{"expired", "uncertain", "deleted", "revoked", "suspended"}

func newLocks(nameOf func(path string) string) *locks {
	l := &locks{
		wait: desc("turnstile_lock_wait_seconds",
			"How long calls of Lock took, and what came of them.", "lock", "kind", "outcome"),
		hold: desc("turnstile_lock_hold_seconds",
			"How long locks were held, and how the holds ended.", "lock", "kind", "end"),
		acquired: desc("turnstile_lock_acquired_total",
			"Acquisitions: from the server, handed off in memory, or retained.", "lock", "kind", "how"),
		contended: desc("turnstile_lock_contended_total",
			"Calls of Lock that had to wait for another contender.", "lock"),
		lost: counters("turnstile_lock_lost_total",
			"Holds that ended before they were unlocked.", "lock", "cause"),
		deadlocks: counters("turnstile_lock_deadlocks_total", "Calls of Lock that were part of a deadlock.", "lock"),
		waiting: desc("turnstile_lock_waiting",
			"Calls of Lock in this process that wait for another contender.", "lock", "kind"),
		held: desc("turnstile_lock_held", "Holds of this process.", "lock", "kind"),
		longestWait: desc("turnstile_lock_longest_wait_seconds",
			"For how long the oldest call of Lock in this process has waited for another contender; 0 if none waits.",
			"lock"),
		longestHold: desc("turnstile_lock_longest_hold_seconds",
			"For how long the oldest hold of this process has lasted; 0 if there is none.", "lock"),
	}
	l.names = newNames(nameOf, func(name string) *lockName {
		for _, cause := range lockCauses {
			l.lost.WithLabelValues(name, cause)
		}
		l.deadlocks.WithLabelValues(name)
		return &lockName{name: name}
	})
	return l
}

// Lock returns the hooks of a mutex, a read/write lock, a set, a semaphore or a simple lock. They may be those of any
// number of them; hooks that belong to one lock alone find its numbers faster.
func (m *Metrics) Lock() lock.Hooks {
	k := &lockHooks{locks: m.locks}
	return lock.Hooks{
		Enqueued: k.enqueued, Acquired: k.acquired, Failed: k.failed, Released: k.released, Lost: k.lost,
		Deadlock: k.deadlock,
	}
}

// lockHooks are the hooks of a lock, or of several.
type lockHooks struct {
	locks *locks
	first atomic.Pointer[known] // the first that was used, which saves a look-up
}

// known are the series of a path.
type known struct {
	path   string
	kind   lock.Kind
	series *lockSeries
}

// series returns the series of the lock that an event is about.
func (k *lockHooks) series(e *lock.Event) *lockSeries {
	first := k.first.Load()
	if first != nil && first.kind == e.Kind && first.path == e.Path {
		return first.series
	}
	s := k.locks.names.of(e.Path).series(e.Kind)
	if first == nil {
		k.first.CompareAndSwap(nil, &known{strings.Clone(e.Path), e.Kind, s})
	}
	return s
}

func (n *lockName) series(kind lock.Kind) *lockSeries {
	at := &n.kinds[min(kind, lock.Permit)]
	if s := at.Load(); s != nil {
		return s
	}
	s := &lockSeries{name: n.name, kind: kind.String()}
	s.wait[outcomeAcquired], s.hold[endReleased] = newHistogram(slow), newHistogram(slow)
	if at.CompareAndSwap(nil, s) {
		return s
	}
	return at.Load()
}

func (k *lockHooks) enqueued(_ context.Context, e lock.Event) {
	s := k.series(&e)
	s.mu.Lock()
	s.contended++
	s.waits.begin(e.ID, e.Since)
	s.mu.Unlock()
}

func (k *lockHooks) acquired(_ context.Context, e lock.Event) {
	s := k.series(&e)
	s.mu.Lock()
	if e.Queued {
		s.waits.end(e.ID)
	}
	s.holds.begin(e.ID, e.Since.Add(e.Took))
	s.acquired[min(e.How, lock.Retained)]++
	s.wait[outcomeAcquired].observe(e.Took.Seconds())
	s.mu.Unlock()
}

func (k *lockHooks) failed(ctx context.Context, e lock.Event) {
	s := k.series(&e)
	at := slices.Index(outcomes[:], outcome.OfFailure(ctx, e.Err))
	s.mu.Lock()
	if e.Queued {
		s.waits.end(e.ID)
	}
	observe(&s.wait[at], e.Took)
	s.mu.Unlock()
}

func (k *lockHooks) released(e lock.Event) {
	switch {
	case e.Err == nil:
		k.series(&e).end(&e, endReleased)
	case errors.Is(e.Err, lock.ErrRevoked):
		k.endEarly(&e, endRevoked)
	default: // suspended
		k.endEarly(&e, endLost)
	}
}

func (k *lockHooks) deadlock(e lock.Event) {
	k.locks.deadlocks.WithLabelValues(k.series(&e).name).Inc()
}

func (k *lockHooks) lost(e lock.Event) { k.endEarly(&e, endLost) }

// endEarly counts a hold that has ended before it was unlocked.
func (k *lockHooks) endEarly(e *lock.Event, end int) {
	s := k.series(e)
	k.locks.lost.WithLabelValues(s.name, outcome.OfLoss(e.Err)).Inc()
	s.end(e, end)
}

// end counts the end of a hold.
func (s *lockSeries) end(e *lock.Event, end int) {
	s.mu.Lock()
	s.holds.end(e.ID)
	observe(&s.hold[end], e.Took)
	s.mu.Unlock()
}

// observe counts how long something took.
func observe(h **histogram, took time.Duration) {
	if *h == nil {
		*h = newHistogram(slow)
	}
	(*h).observe(took.Seconds())
}

// Describe sends the descriptions of the metrics.
func (l *locks) Describe(to chan<- *prometheus.Desc) {
	l.lost.Describe(to)
	l.deadlocks.Describe(to)
	describe(to, l.wait, l.hold, l.acquired, l.contended, l.waiting, l.held, l.longestWait, l.longestHold)
}

// Collect sends the metrics.
func (l *locks) Collect(to chan<- prometheus.Metric) {
	l.lost.Collect(to)
	l.deadlocks.Collect(to)
	for _, n := range l.names.all() {
		var contended uint64
		var wait, hold time.Duration
		for i := range n.kinds {
			s := n.kinds[i].Load()
			if s == nil {
				continue
			}
			s.mu.Lock()
			now := time.Now()
			contended += s.contended
			wait, hold = max(wait, s.waits.longest(now)), max(hold, s.holds.longest(now))
			collected := l.collect(s)
			s.mu.Unlock()
			send(to, collected)
		}
		to <- prometheus.MustNewConstMetric(l.contended, prometheus.CounterValue, float64(contended), n.name)
		to <- prometheus.MustNewConstMetric(l.longestWait, prometheus.GaugeValue, wait.Seconds(), n.name)
		to <- prometheus.MustNewConstMetric(l.longestHold, prometheus.GaugeValue, hold.Seconds(), n.name)
	}
}

// collect returns the metrics of the locks of one name and one kind. The caller holds s.mu.
func (l *locks) collect(s *lockSeries) (all []prometheus.Metric) {
	all = append(all,
		prometheus.MustNewConstMetric(l.waiting, prometheus.GaugeValue, float64(s.waits.n), s.name, s.kind),
		prometheus.MustNewConstMetric(l.held, prometheus.GaugeValue, float64(s.holds.n), s.name, s.kind))
	for how := lock.FromServer; how <= lock.Retained; how++ {
		all = append(all, prometheus.MustNewConstMetric(l.acquired, prometheus.CounterValue, float64(s.acquired[how]),
			s.name, s.kind, how.String()))
	}
	for at, h := range s.wait {
		if h != nil {
			all = append(all,
				h.export(l.wait, labels("lock", s.name, "kind", s.kind, "outcome", outcomes[at])))
		}
	}
	for end, h := range s.hold {
		if h != nil {
			all = append(all, h.export(l.hold, labels("lock", s.name, "kind", s.kind, "end", ends[end])))
		}
	}
	return all
}
