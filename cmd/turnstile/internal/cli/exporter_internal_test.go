package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
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
	text = string(ensembleMetrics(s, tally{}, now))
	if strings.Contains(text, "lock") || !strings.Contains(text, "_up 0\n") {
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
			path := fmt.Sprintf("/q/%s/%d", strings.Repeat(string(rune('g'+i%20)), 1+i/20), n)
			count(queues, path, newQueueMetrics(s))
		}
	}
	found := tally{queues: few(queues), unread: 3, cycles: map[string]int{"confirmed": 1, "possible": 0}}
	text := string(ensembleMetrics(&survey.Snapshot{Mode: survey.Live}, found, now))
	for _, want := range []string{
		"turnstile_ensemble_cycles{certainty=\"confirmed\"} 1\n",
		"turnstile_ensemble_cycles{certainty=\"possible\"} 0\n",
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
					m := got.queues["/q"]
					if m == nil || m.items[queue.Ready] != 1 || got.unread != 0 || got.cycles == nil {
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

// The dashboard shows every value of the exporter, and neither it nor the alerts name another. Its expressions are
// valid.
func TestDashboardAndAlertsOfEnsemblesReadWhatTheExporterShows(t *testing.T) {
	t.Parallel()
	const ops = "../../../../ops/"
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(ops + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	now := time.Now()
	held := lock.Summary{Holding: 1, Numbers: lock.Numbers{Path: "/l", Left: 1}}
	s := &survey.Snapshot{
		Mode: survey.Live, Entries: []survey.Entry{{Path: "/l", Kind: survey.Lock, Summary: held}},
	}
	all := string(ensembleMetrics(s, tally{
		queues: map[string]*queueMetrics{"/q": newQueueMetrics(queue.Summary{})},
		cycles: map[string]int{"confirmed": 0},
	}, now))
	name := regexp.MustCompile(`turnstile_ensemble_[a-z_]+`)
	label := regexp.MustCompile(`([a-z]+)(=~|!=|=)\\?"`)
	dashboard, alerts := read("ensemble-dashboard.json"), read("ensemble-alerts.yml")
	for _, found := range name.FindAllString(all, -1) {
		if !strings.Contains(dashboard, found) {
			t.Errorf("the dashboard does not show %s", found)
		}
	}
	for _, used := range name.FindAllString(dashboard+alerts, -1) {
		if !strings.Contains(all, "\n"+used+" ") && !strings.Contains(all, "\n"+used+"{") {
			t.Errorf("no metric %s", used)
		}
	}
	for _, used := range label.FindAllStringSubmatch(dashboard+alerts, -1) {
		if used[1] != "job" && !strings.Contains(all, used[1]+`="`) {
			t.Errorf("no label %s", used[1])
		}
	}
	var parsed struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal([]byte(dashboard), &parsed); err != nil {
		t.Fatal(err)
	}
	var rules strings.Builder
	rules.WriteString("groups: [{name: dashboard, rules: [\n")
	for i, panel := range parsed.Panels {
		for j, target := range panel.Targets {
			fmt.Fprintf(&rules, "{record: 'expr_%d_%d', expr: %q},\n", i, j, target.Expr)
		}
	}
	peer.Need(t, "promtool")
	file := filepath.Join(t.TempDir(), "dashboard.yml")
	if err := os.WriteFile(file, []byte(rules.String()+"]}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check", "rules", file}, {"test", "rules", ops + "ensemble-alerts.test.yml"}} {
		if out, err := exec.CommandContext(t.Context(), "promtool", args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}

// Each request would take seconds until a server has answered for the first time.
func TestExporterAnswersAtOnceWhileNoServerDoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, err := zk.Open(t.Context(), zk.Config{
			Servers: "zk1", Dial: func(context.Context, string, string) (net.Conn, error) { return nil, io.EOF },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		s, err := survey.Follow(t.Context(), client, survey.FollowConfig{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		time.Sleep(time.Second) // it has tried
		began, got := time.Now(), httptest.NewRecorder()
		new(exporter).handler(s, newTallies(t.Context(), client), client.LastError).ServeHTTP(
			got, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
		if took := time.Since(began); got.Code != http.StatusServiceUnavailable || took > time.Second/10 {
			t.Errorf("got %d after %v, want 503 at once", got.Code, took)
		}
	})
}
