package ensemble

// What an entry of a survey says.

import (
	"cmp"
	"fmt"
	"slices"
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

// IsQueue reports whether an entry is a queue, ours or one of Curator's or kazoo's.
func IsQueue(e survey.Entry) bool { return e.Kind == survey.Queue || e.Kind == survey.ClassicQueue }

// SortQueues sorts queues by "oldest", "ready" or "dead", the largest first, and leaves them as they are otherwise.
func SortQueues(list []survey.Entry, counts map[string]Queue, order string) {
	slices.SortStableFunc(list, func(a, b survey.Entry) int {
		one, two := counts[a.Path], counts[b.Path]
		switch order {
		case "oldest":
			return cmp.Compare(two.Oldest, one.Oldest)
		case "ready":
			return cmp.Compare(two.Ready, one.Ready)
		case "dead":
			return cmp.Compare(two.Dead, one.Dead)
		}
		return 0
	})
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
