package metrics

// The metrics of locks.

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// locks are the metrics of all locks.
type locks struct {
	wait, hold                *prometheus.HistogramVec
	acquired, contended, lost *prometheus.CounterVec

	waiting, held, longestWait, longestHold *prometheus.Desc // computed when they are read

	names *names[lockName]
}

// A lockName has the series of the locks of one name, for each kind that was used.
type lockName struct {
	name  string
	kinds [lock.Permit + 1]atomic.Pointer[lockSeries]
}

// A lockSeries has the series of the locks of one name and one kind.
type lockSeries struct {
	of         *locks
	name, kind string
	contended  prometheus.Counter
	succeeded  prometheus.Observer // wait, with the outcome acquired
	released   prometheus.Observer // hold, with the end released
	acquired   [lock.Retained + 1]prometheus.Counter

	mu    sync.Mutex // guards the fields below
	waits open
	holds open
}

// open has the beginnings of what has not ended, by the numbers of the acquisitions.
type open map[uint64]time.Time

// longest returns for how long the oldest has lasted.
func (o open) longest(now time.Time) time.Duration {
	oldest := now
	for _, since := range o {
		if since.Before(oldest) {
			oldest = since
		}
	}
	return now.Sub(oldest)
}

// The causes of losses that each lock shows from the beginning, so that an alert sees the first loss.
var lockCauses = []string{"expired", "uncertain", "deleted", "revoked", "suspended"}

func newLocks(nameOf func(path string) string) *locks {
	l := &locks{
		wait: histograms("turnstile_lock_wait_seconds",
			"How long calls of Lock took, and what came of them.", slow, "lock", "kind", "outcome"),
		hold: histograms("turnstile_lock_hold_seconds",
			"How long locks were held, and how the holds ended.", slow, "lock", "kind", "end"),
		acquired: counters("turnstile_lock_acquired_total",
			"Acquisitions: from the server, handed off in memory, or retained.", "lock", "kind", "how"),
		contended: counters("turnstile_lock_contended_total",
			"Calls of Lock that had to wait for another contender.", "lock"),
		lost: counters("turnstile_lock_lost_total",
			"Holds that ended before they were unlocked.", "lock", "cause"),
		waiting: prometheus.NewDesc("turnstile_lock_waiting",
			"Calls of Lock in this process that wait for another contender.", []string{"lock", "kind"}, nil),
		held: prometheus.NewDesc("turnstile_lock_held",
			"Holds of this process.", []string{"lock", "kind"}, nil),
		longestWait: prometheus.NewDesc("turnstile_lock_longest_wait_seconds",
			"For how long the oldest call of Lock in this process has waited for another contender; 0 if none waits.",
			[]string{"lock"}, nil),
		longestHold: prometheus.NewDesc("turnstile_lock_longest_hold_seconds",
			"For how long the oldest hold of this process has lasted; 0 if there is none.", []string{"lock"}, nil),
	}
	l.names = newNames(nameOf, func(name string) *lockName {
		for _, cause := range lockCauses {
			l.lost.WithLabelValues(name, cause)
		}
		return &lockName{name: name}
	})
	return l
}

// Lock returns the hooks of a mutex, a read/write lock, a set, a semaphore or a simple lock. The hooks may be those of
// any number of them.
func (m *Metrics) Lock() lock.Hooks {
	l := m.locks
	return lock.Hooks{
		Enqueued: func(_ context.Context, e lock.Event) {
			s := l.series(e)
			s.contended.Inc()
			s.mu.Lock()
			s.waits[e.ID] = e.Since
			s.mu.Unlock()
		},
		Acquired: func(_ context.Context, e lock.Event) {
			s := l.series(e)
			s.mu.Lock()
			if e.Queued {
				delete(s.waits, e.ID)
			}
			s.holds[e.ID] = e.Since.Add(e.Took)
			s.mu.Unlock()
			s.acquired[min(e.How, lock.Retained)].Inc()
			s.succeeded.Observe(e.Took.Seconds())
		},
		Failed: func(ctx context.Context, e lock.Event) {
			s := l.series(e)
			if e.Queued {
				s.mu.Lock()
				delete(s.waits, e.ID)
				s.mu.Unlock()
			}
			l.wait.WithLabelValues(s.name, s.kind, failure(ctx, e.Err, lock.ErrHeld, "held")).Observe(e.Took.Seconds())
		},
		Released: func(e lock.Event) {
			s := l.series(e)
			switch {
			case e.Err == nil:
				s.end(e, s.released)
			case errors.Is(e.Err, lock.ErrRevoked):
				s.lost(e, "revoked")
			default:
				s.lost(e, "lost")
			}
		},
		Lost: func(e lock.Event) { l.series(e).lost(e, "lost") },
	}
}

// series returns the series of the lock that an event is about.
func (l *locks) series(e lock.Event) *lockSeries {
	n := l.names.of(e.Path)
	kind := min(e.Kind, lock.Permit)
	if s := n.kinds[kind].Load(); s != nil {
		return s
	}
	s := &lockSeries{
		of: l, name: n.name, kind: kind.String(),
		contended: l.contended.WithLabelValues(n.name),
		succeeded: l.wait.WithLabelValues(n.name, kind.String(), "acquired"),
		released:  l.hold.WithLabelValues(n.name, kind.String(), "released"),
		waits:     make(open), holds: make(open),
	}
	for how := range s.acquired {
		if how > 0 {
			s.acquired[how] = l.acquired.WithLabelValues(n.name, kind.String(), lock.How(how).String())
		}
	}
	if n.kinds[kind].CompareAndSwap(nil, s) {
		return s
	}
	return n.kinds[kind].Load()
}

// end counts the end of a hold.
func (s *lockSeries) end(e lock.Event, hold prometheus.Observer) {
	s.mu.Lock()
	delete(s.holds, e.ID)
	s.mu.Unlock()
	hold.Observe(e.Took.Seconds())
}

// lost counts the end of a hold that has ended before it was unlocked.
func (s *lockSeries) lost(e lock.Event, end string) {
	s.of.lost.WithLabelValues(s.name, cause(e.Err)).Inc()
	s.end(e, s.of.hold.WithLabelValues(s.name, s.kind, end))
}

// Describe sends the descriptions of the metrics.
func (l *locks) Describe(to chan<- *prometheus.Desc) {
	l.vectors().describe(to)
	for _, desc := range []*prometheus.Desc{l.waiting, l.held, l.longestWait, l.longestHold} {
		to <- desc
	}
}

// Collect sends the metrics.
func (l *locks) Collect(to chan<- prometheus.Metric) {
	l.vectors().collect(to)
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	for _, n := range l.names.all() {
		var wait, hold time.Duration
		for i := range n.kinds {
			s := n.kinds[i].Load()
			if s == nil {
				continue
			}
			s.mu.Lock()
			now, waits, holds := time.Now(), len(s.waits), len(s.holds)
			wait, hold = max(wait, s.waits.longest(now)), max(hold, s.holds.longest(now))
			s.mu.Unlock()
			gauge(l.waiting, float64(waits), n.name, s.kind)
			gauge(l.held, float64(holds), n.name, s.kind)
		}
		gauge(l.longestWait, wait.Seconds(), n.name)
		gauge(l.longestHold, hold.Seconds(), n.name)
	}
}

func (l *locks) vectors() group { return group{l.wait, l.hold, l.acquired, l.contended, l.lost} }

// failure says why an acquisition has failed. Taken is the error of a try while another contender has what was tried.
func failure(ctx context.Context, err, taken error, takenName string) string {
	switch {
	case errors.Is(err, taken):
		return takenName
	case ctx.Err() != nil && (errors.Is(err, context.Cause(ctx)) || errors.Is(err, ctx.Err())):
		return "canceled"
	case zk.OutcomeOf(err) == zk.Refused:
		return "refused"
	default:
		return "error"
	}
}

// cause says why a hold was lost.
func cause(err error) string {
	switch {
	case errors.Is(err, lock.ErrRevoked):
		return "revoked"
	case errors.Is(err, lock.ErrSuspended):
		return "suspended"
	case errors.Is(err, lock.ErrDeleted):
		return "deleted"
	case errors.Is(err, zk.ErrUncertain):
		return "uncertain"
	default:
		return sessionEnd(err)
	}
}
