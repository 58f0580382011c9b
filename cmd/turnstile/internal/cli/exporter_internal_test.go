package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/lock"
)

// However many locks there are, there are 200 names: those with the longest waits, and one for the others.
func TestExporterHasFewNames(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := &survey.Snapshot{Mode: survey.Live}
	word := func(i int) string { return strings.Repeat(string(rune('g'+i%20)), 1+i/20) } // none is hexadecimal
	for i := range 250 {
		s.Entries = append(s.Entries, survey.Entry{Path: "/l/" + word(i), Kind: survey.Lock, Summary: lock.Summary{
			Holding: 1, Waiting: 1 + i, First: &lock.Contender{Since: now.Add(-time.Duration(i) * time.Second)},
			Numbers: lock.Numbers{Path: "/l", Left: 1000 + i},
		}})
	}
	for i := range 1000 { // of one name
		s.Entries = append(s.Entries, survey.Entry{
			Path: fmt.Sprintf("/jobs/%d", i), Kind: survey.Election, Summary: lock.Summary{Holding: 1},
		})
	}
	text := string(ensembleMetrics(s, now))
	for _, want := range []string{
		"turnstile_ensemble_locks{kind=\"lock\"} 250\n", "turnstile_ensemble_locks{kind=\"election\"} 1000\n",
		"turnstile_ensemble_lock_waiters{lock=\"/l/" + word(249) + "\"} 250\n",
		"turnstile_ensemble_lock_longest_wait_seconds{lock=\"/l/" + word(249) + "\"} 249\n",
		"turnstile_ensemble_lock_longest_wait_seconds{lock=\"other\"} 50\n",
		"turnstile_ensemble_sequence_numbers_left{lock=\"other\"} 1000\n",
		"turnstile_ensemble_lock_waiters{lock=\"other\"} 1326\n", // 1 + 2 + … + 51
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if n := strings.Count(text, "lock_waiters{"); n != 200 {
		t.Errorf("%d names", n)
	}
	s.Mode = survey.Cut
	if text := string(ensembleMetrics(s, now)); strings.Contains(text, "lock") || !strings.Contains(text, "_up 0\n") {
		t.Errorf("while no server is connected: %s", text)
	}
}
