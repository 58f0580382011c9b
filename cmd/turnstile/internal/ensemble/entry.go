package ensemble

// What an entry of a survey says.

import (
	"fmt"
	"time"

	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/lock"
)

// Waits of this length are drawn as worth a look, and as most likely stuck.
const (
	LongWait  = time.Minute
	StuckWait = 10 * time.Minute
)

// Longest returns for how long the first in line has waited.
func Longest(e survey.Entry, now time.Time) time.Duration {
	if e.First == nil {
		return 0
	}
	return max(0, now.Sub(e.First.Since))
}

// IsElection reports whether candidates stand at an entry.
func IsElection(e survey.Entry) bool {
	return e.Kind == survey.Election || e.Kind == survey.Support ||
		len(e.Holders) > 0 && e.Holders[0].Kind == lock.Candidate
}

// KindWord is what an entry is, in at most eight letters.
func KindWord(e survey.Entry) string {
	switch {
	case e.Kind == survey.Permits, e.Kind == survey.KazooPermits:
		return "permits"
	case IsElection(e):
		return "election"
	case len(e.Holders) > 0 && e.Holders[0].Kind == lock.Reader:
		return "shared"
	}
	return "lock"
}

// Ago writes how long something lasts, in at most six columns.
func Ago(d time.Duration) string {
	const day = 24 * time.Hour
	d = max(0, d)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	case d < 100*day:
		return fmt.Sprintf("%dd%02dh", d/day, d%day/time.Hour)
	}
	return fmt.Sprintf("%dd", d/day)
}
