package ensemble

// How fast items of queues come and go.

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
)

const (
	rateOver = 10 * time.Second // looks further back than that do not count, if there are others
	rateGap  = time.Minute      // after a longer time without a look there are no rates until the next one
)

// Rates tell how many items of a queue come and go a second. They are of the last ten seconds, or since the last look
// if that was before.
type Rates struct {
	Known   bool // there was a look not long ago
	In, Out float64

	summary queue.Summary // of the last look
	totals  []totals      // at the last looks, the latest last
}

// totals are how many items have come and gone by then.
type totals struct {
	at      time.Time
	in, out int
}

// After returns the rates at the next look at the queue.
func (r Rates) After(s queue.Summary, now time.Time) Rates {
	next := Rates{summary: s, totals: []totals{{at: now}}}
	if len(r.totals) == 0 {
		return next
	}
	last := r.totals[len(r.totals)-1]
	// The wall clock counts the time in which the machine slept, too.
	if max(now.Sub(last.at), now.Round(0).Sub(last.at.Round(0))) > rateGap {
		return next
	}
	f := s.Since(r.summary)
	next.totals = append(slices.Clone(r.totals), totals{now, last.in + f.In, last.out + f.Out})
	for len(next.totals) > 2 && now.Sub(next.totals[1].at) >= rateOver {
		next.totals = next.totals[1:]
	}
	first, last := next.totals[0], next.totals[len(next.totals)-1]
	if took := last.at.Sub(first.at).Seconds(); took > 0 {
		next.Known = true
		next.In, next.Out = float64(last.in-first.in)/took, float64(last.out-first.out)/took
	}
	return next
}

// Count returns a number of items in six characters at most.
func Count(n int) string {
	switch {
	case n < 1_000_000:
		return strconv.Itoa(n)
	case n < 100_000_000:
		return strconv.Itoa(n/1000) + "k"
	}
	return strconv.Itoa(min(n/1_000_000, 99_999)) + "M"
}

// Rate returns a number a second in six characters at most.
func Rate(n float64) string {
	switch {
	case n <= 0:
		return "0"
	case n < 0.1:
		return "<0.1"
	case n < 9.95:
		return fmt.Sprintf("%.1f", n)
	case n < 99_999.5:
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprintf("%.0fk", min(n/1000, 9999))
}
