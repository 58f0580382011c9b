package ensemble

// How many items of queues come and go.

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
)

const (
	rateOver = 10 * time.Second // the time over which rates are measured
	rateGap  = time.Minute      // after which they are measured anew: what was long ago is none of now
)

// A Flow is how fast a queue's items come and go: a second, over the last ten seconds.
type Flow struct {
	Known   bool // it was looked at more than once
	In, Out float64

	summary queue.Summary // at the last look
	looks   []look        // of the last seconds, the latest last
}

// A look is how many items have come and gone by then.
type look struct {
	at      time.Time
	in, out int
}

// After returns the flow at the next look at the queue.
func (f Flow) After(s queue.Summary, now time.Time) Flow {
	next := Flow{summary: s, looks: []look{{at: now}}}
	if len(f.looks) == 0 || now.Sub(f.looks[len(f.looks)-1].at) > rateGap {
		return next
	}
	moved, last := s.Since(f.summary), f.looks[len(f.looks)-1]
	next.looks = append(slices.Clone(f.looks), look{now, last.in + moved.In, last.out + moved.Out})
	for len(next.looks) > 2 && now.Sub(next.looks[1].at) >= rateOver {
		next.looks = next.looks[1:]
	}
	first, last := next.looks[0], next.looks[len(next.looks)-1]
	if took := last.at.Sub(first.at).Seconds(); took > 0 {
		next.Known = true
		next.In, next.Out = float64(last.in-first.in)/took, float64(last.out-first.out)/took
	}
	return next
}

// Rate returns how many there are a second, in six characters at most.
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
