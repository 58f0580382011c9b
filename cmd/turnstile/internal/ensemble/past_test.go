package ensemble_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/lock"
)

// Where each job has a lock of its own, there are always new paths.
func TestHistoryForgetsPathsThatHaveGone(t *testing.T) {
	t.Parallel()
	history := make(ensemble.History)
	owner := func(lock.Contender) string { return "somebody" }
	snapshot := func(from, to int) *survey.Snapshot {
		s := new(survey.Snapshot)
		for i := from; i < to; i++ {
			s.Entries = append(s.Entries, survey.Entry{
				Path: fmt.Sprintf("/jobs/%07d", i), Summary: lock.Summary{Holders: []lock.Contender{{Token: 1}}},
			})
		}
		return s
	}
	last := snapshot(0, 0)
	for round := range 30 {
		next := snapshot(round*1000, round*1000+2000)
		changes := history.Note(last, next, owner, time.Now())
		if want := 2000; len(changes) < 1000 || len(changes) > want {
			t.Fatalf("round %d: %d changes", round, len(changes))
		}
		if p := history[next.Entries[1999].Path]; p == nil || p.Changes != 1 {
			t.Fatalf("round %d: %+v", round, p)
		}
		if len(history) > 10_000 {
			t.Fatalf("round %d: %d paths", round, len(history))
		}
		last = next
	}
}
