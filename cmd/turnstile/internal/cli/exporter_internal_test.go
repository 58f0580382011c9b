package cli

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zktest"
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
	text := string(ensembleMetrics(s, tally{}, now))
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
	if text := string(ensembleMetrics(s, tally{}, now)); strings.Contains(text, "lock") || !strings.Contains(text, "_up 0\n") {
		t.Errorf("while no server is connected: %s", text)
	}
}

// However many queues there are, there are 200 names: those with the oldest items, and one for the others, whose
// numbers are the same each time that they are shown.
func TestExporterHasFewNamesOfQueues(t *testing.T) {
	t.Parallel()
	now := time.Now()
	queues := make(map[string]*queueMetrics)
	for i := range 250 {
		s := queue.Summary{Counts: queue.Counts{Ready: i, Dead: 1}}
		if i > 0 {
			s.Oldest = now.Add(-time.Duration(i) * time.Second)
		}
		for n := range 2 {
			count(queues, fmt.Sprintf("/q/%s/%d", strings.Repeat(string(rune('g'+i%20)), 1+i/20), n), newQueueMetrics(s))
		}
	}
	found := tally{queues: few(queues), unread: 3, cycles: map[string]int{"confirmed": 1, "possible": 0}}
	text := string(ensembleMetrics(&survey.Snapshot{Mode: survey.Live}, found, now))
	for _, want := range []string{
		"turnstile_ensemble_cycles{certainty=\"confirmed\"} 1\n", "turnstile_ensemble_cycles{certainty=\"possible\"} 0\n",
		"turnstile_ensemble_queues_unread 3\n",
		"turnstile_ensemble_queue_items{queue=\"/q/" + strings.Repeat("p", 13) + "/*\",state=\"ready\"} 498\n",
		"turnstile_ensemble_queue_oldest_seconds{queue=\"/q/" + strings.Repeat("p", 13) + "/*\"} 249\n",
		"turnstile_ensemble_queue_oldest_seconds{queue=\"other\"} 50\n",
		"turnstile_ensemble_queue_items{queue=\"other\",state=\"ready\"} 2550\n", // 2 × (0 + 1 + … + 50)
		"turnstile_ensemble_queue_items{queue=\"other\",state=\"dead\"} 102\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if n := strings.Count(text, "queue_oldest_seconds{"); n != 200 {
		t.Errorf("%d names", n)
	}
	if again := string(ensembleMetrics(&survey.Snapshot{Mode: survey.Live}, found, now)); again != text {
		t.Error("the second time, it shows something else")
	}
}

// However many ask, queues are read once a second.
func TestExporterReadsQueuesOnceASecond(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		client := srv.Client(t, 20*time.Second)
		q, err := queue.New(client, "/q", queue.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := q.Put(t.Context(), queue.Message{}); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		reads := 0
		srv.Control(func(r zktest.Request) zktest.Fault {
			mu.Lock()
			defer mu.Unlock()
			if r.Op == zktest.OpGetData && r.Path == "/q" {
				reads++
			}
			return zktest.Pass
		})
		s := &survey.Snapshot{Mode: survey.Live, Entries: []survey.Entry{
			{Path: "/q", Kind: survey.Queue}, {Path: "/gone", Kind: survey.Queue}, {Path: "/l", Kind: survey.Lock},
		}}
		shown := newTallies(t.Context(), client)
		for second := 1; second <= 3; second++ {
			var group sync.WaitGroup
			for range 20 {
				group.Go(func() {
					got := shown.of(t.Context(), s)
					if m := got.queues["/q"]; m == nil || m.items[queue.Ready] != 1 || got.unread != 0 || got.cycles == nil {
						t.Errorf("got %+v", got)
					}
				})
			}
			group.Wait()
			mu.Lock()
			if reads != second {
				t.Errorf("%d reads in second %d", reads, second)
			}
			mu.Unlock()
			time.Sleep(time.Second) // in the world's time
		}
		if err := q.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
