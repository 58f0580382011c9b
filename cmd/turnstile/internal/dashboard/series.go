package dashboard

// The history, in memory.

import (
	"math"
	"time"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/seed-a3166700/turnstile/internal/survey"
)

const (
	seconds   = 600  // of which each is kept
	minutes   = 1440 // of which the largest is kept
	maxSeries = 2000
)

// none is the value of a time at which nothing is known.
const none = math.MaxUint32

// A ring is one number over time: each second of ten minutes, and the largest of each minute of a day.
type ring struct {
	seconds [seconds]uint32
	minutes []uint32 // made with the first whole minute
	largest uint32   // of this minute
}

// newRing returns one of which nothing is known.
func newRing() *ring {
	r := &ring{largest: none}
	for i := range r.seconds {
		r.seconds[i] = none
	}
	return r
}

// larger returns the larger of two values that are known.
func larger(a, b uint32) uint32 {
	switch {
	case a == none:
		return b
	case b == none:
		return a
	}
	return max(a, b)
}

// add sets the value of a second.
func (r *ring) add(second int64, value uint32) {
	r.seconds[second%seconds] = value
	r.largest = larger(r.largest, value)
	if second%60 != 59 {
		return
	}
	if r.minutes == nil {
		r.minutes = make([]uint32, minutes)
		for i := range r.minutes {
			r.minutes[i] = none
		}
	}
	r.minutes[second/60%minutes] = r.largest
	r.largest = none
}

// last returns so many values, the latest last; each is the largest of some seconds or of some minutes.
func (r *ring) last(second int64, n int, day bool) []uint32 {
	list := make([]uint32, n)
	for i := range list {
		list[i] = none
	}
	if r == nil {
		return list
	}
	at, all := second, r.seconds[:]
	if day {
		at, all = second/60-1, r.minutes
	}
	per := int64(seconds / n)
	if day {
		per = int64(minutes / n)
	}
	if len(all) == 0 {
		return list
	}
	end := at / per
	if !day && at%per != per-1 {
		end-- // that step is not over: what is drawn would change each second
	}
	for i := range list {
		for k := range per {
			if t := (end-int64(n-1-i))*per + k; t <= at && t >= 0 && t > at-int64(len(all)) {
				list[i] = larger(list[i], all[t%int64(len(all))])
			}
		}
	}
	return list
}

// series are the numbers that are kept: those of the whole, and how many wait at each lock for which somebody has
// waited.
type series struct {
	start                  time.Time
	second                 int64 // since start
	held, waiting, longest *ring
	locks                  map[string]*ring
	full                   bool // there are more locks than are kept
}

func newSeries() *series {
	return &series{
		start: time.Now(), second: -1, held: newRing(), waiting: newRing(), longest: newRing(),
		locks: make(map[string]*ring),
	}
}

// number returns a number as it is kept.
func number(n int64) uint32 { return uint32(min(max(n, 0), none-1)) }

// add adds a second. Nothing is known of it without a snapshot, or if no server is connected.
func (h *series) add(s *survey.Snapshot, f facts, now time.Time) {
	second := int64(now.Sub(h.start) / time.Second)
	if second <= h.second {
		return // ticks are not exact
	}
	for missed := max(h.second+1, second-60*minutes); missed < second; missed++ { // this process was stopped
		h.each(missed, func(string) uint32 { return none }, none, none, none)
	}
	h.second = second
	if s == nil || s.Mode == survey.Cut {
		h.each(second, func(string) uint32 { return none }, none, none, none)
		return
	}
	longest := time.Duration(0)
	if !f.first.IsZero() {
		longest = now.Sub(f.first)
	}
	for _, e := range s.Entries {
		if _, ok := h.locks[e.Path]; ok || e.Waiting == 0 || !e.Kind.Contended() {
			continue
		}
		if len(h.locks) >= maxSeries && !h.forget(s) {
			h.full = true
			break
		}
		h.locks[e.Path] = newRing()
	}
	h.each(second, func(path string) uint32 {
		e, _ := s.Entry(path)
		return number(int64(e.Waiting))
	}, number(int64(f.held)), number(int64(f.waiting)), number(int64(longest/time.Second)))
}

func (h *series) each(second int64, waiting func(path string) uint32, held, all, longest uint32) {
	for path, r := range h.locks {
		r.add(second, waiting(path))
	}
	h.held.add(second, held)
	h.waiting.add(second, all)
	h.longest.add(second, longest)
}

// forget makes room: it forgets the locks that are neither held nor waited for. It reports whether there is any.
func (h *series) forget(s *survey.Snapshot) bool {
	n := len(h.locks)
	for path := range h.locks {
		if e, ok := s.Entry(path); !ok || e.Holding+e.Waiting == 0 {
			delete(h.locks, path)
		}
	}
	return len(h.locks) < n
}

// waitLevel is how a wait of this length is drawn.
func waitLevel(d time.Duration) string {
	switch {
	case d >= ensemble.StuckWait:
		return "bad"
	case d >= ensemble.LongWait:
		return "warn"
	}
	return ""
}
