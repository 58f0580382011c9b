package verify

// What a run has found.

import (
	"math"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/internal/lincheck"
)

// A Report is what a run has found.
type Report struct {
	Path     string
	For, Ran time.Duration
	Began    time.Time
	Clients  int
	Rate     float64
	Rounds   []Round
	Calls    int // of counters
	Holds    int // of the lock
	Kinds    []*Kind
	Failures []*Failure
	Refusals []Refusal // the first ones
	Stopped  error     // why it has ended before its time
	Left     error     // why nodes may be left
	Versions []Version // of programs and servers; for the page

	pieces    []piece
	lastCalls []lincheck.CounterCall // of the last round
	lastHolds []lincheck.Hold
}

// A Round is a part of a run, with a counter of its own.
type Round struct {
	Number        int
	Began, Ended  time.Duration // since the beginning of the run
	Calls, Holds  int
	Counter, Lock lincheck.Verdict
}

// A Refusal is the part of a refused history that contradicts itself.
type Refusal struct {
	Round int
	Calls []lincheck.CounterCall // as of JudgeCounter
	Holds []lincheck.Hold        // as of JudgeMutex
}

// A Failure is what went wrong with calls of one kind.
type Failure struct {
	What  string
	Count int
	First string
}

// A Version is that of a program, as it says itself.
type Version struct{ Of, Version string }

// A piece is a part of the time of a run.
type piece struct {
	count     int
	sum, most time.Duration
}

const pieces = 120

// callLock is a kind of call: to acquire the lock.
const callLock = "lock"

// A Kind is how long calls of one kind took.
type Kind struct {
	Name  string
	Count int
	Most  time.Duration

	counts [steps]int
}

// Each of the steps is 5 % longer than the one before; the first is a microsecond, the last more than an hour.
const (
	steps  = 480
	growth = 1.05
)

// Quantile returns how long a part of the calls took at most, to 5 %.
func (k *Kind) Quantile(part float64) time.Duration {
	left := int(math.Ceil(part * float64(k.Count)))
	for i, n := range k.counts {
		if left -= n; left <= 0 {
			return min(k.Most, time.Duration(float64(time.Microsecond)*math.Pow(growth, float64(i))))
		}
	}
	return k.Most
}

func newReport(cfg Config, clients int) *Report {
	return &Report{
		Path: cfg.Path, For: cfg.For, Began: time.Now(), Clients: clients, Rate: cfg.Rate,
		pieces: make([]piece, pieces),
	}
}

// since returns the nanoseconds since the beginning, at least 1.
func (r *Report) since() int64 { return max(1, int64(time.Since(r.Began))) }

// took notes how long a call took.
func (r *Report) took(name string, began, ended int64) {
	i := slices.IndexFunc(r.Kinds, func(k *Kind) bool { return k.Name == name })
	if i < 0 {
		i, r.Kinds = len(r.Kinds), append(r.Kinds, &Kind{Name: name})
	}
	k, long := r.Kinds[i], time.Duration(ended-began)
	k.Count++
	k.Most = max(k.Most, long)
	step := math.Ceil(math.Log(max(1, float64(long)/float64(time.Microsecond))) / math.Log(growth))
	k.counts[min(steps-1, int(step))]++
	if name == callLock {
		return // it mostly waits for other clients
	}
	p := &r.pieces[min(pieces-1, int(float64(began)/float64(r.For)*pieces))]
	p.count++
	p.sum += long
	p.most = max(p.most, long)
}

// failed notes a call that has failed.
func (r *Report) failed(what string, err error) {
	i := slices.IndexFunc(r.Failures, func(f *Failure) bool { return f.What == what })
	if i < 0 {
		i, r.Failures = len(r.Failures), append(r.Failures, &Failure{What: what, First: err.Error()})
	}
	r.Failures[i].Count++
}

// add adds a round.
func (r *Report) add(done Round, calls []lincheck.CounterCall, holds []lincheck.Hold) {
	r.Rounds = append(r.Rounds, done)
	r.Calls += done.Calls
	r.Holds += done.Holds
	if len(calls)+len(holds) > 0 && len(r.Refusals) < maxKept {
		r.Refusals = append(r.Refusals, Refusal{Round: done.Number, Calls: calls, Holds: holds})
	}
}

// Verdict is that of the run: Refused if any of its histories is, else Undecided if any is.
func (r *Report) Verdict() lincheck.Verdict {
	worst := lincheck.Accepted
	for _, d := range r.Rounds {
		for _, v := range []lincheck.Verdict{d.Counter, d.Lock} {
			if v == lincheck.Refused || worst == lincheck.Accepted {
				worst = v
			}
			if worst == lincheck.Refused {
				return worst
			}
		}
	}
	return worst
}
