package main

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/measure"
	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/zktest"
)

func TestMedianIsCertainBetweenFiguresOfTheMiddle(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		figures   int // 1, 2, 3 and so on
		low, high float64
		ok        bool
	}{
		{0, 0, 0, false},
		{5, 0, 0, false}, // 1 in 16 that all are on one side
		{6, 1, 6, true},
		{8, 1, 8, true},
		{9, 2, 8, true},
		{20, 6, 15, true},
		{60, 22, 39, true}, // as tables of the sign test have it
	} {
		var figures []float64
		for i := row.figures; i > 0; i-- {
			figures = append(figures, float64(i))
		}
		low, high, ok := medianBounds(figures)
		if low != row.low || high != row.high || ok != row.ok {
			t.Errorf("%d figures: got %v, %v, %v, want %v, %v, %v",
				row.figures, low, high, ok, row.low, row.high, row.ok)
		}
	}
}

func TestVerdictOfACostNeedsCertainty(t *testing.T) {
	t.Parallel()
	differences := func(name string, figures ...float64) row {
		return row{
			load: name, contender: subject(onServe), figures: figures, unit: "%", paired: true, limit: limit{atMost, 3},
		}
	}
	var table, verdict bytes.Buffer
	rows := []row{
		differences("small", -1, 0.5, 1, 1, 2, 2.5),
		differences("large", 4, 5, 6, 7, 8, 9),
		differences("noisy", -5, 0, 1, 2, 4, 5),
		differences("short", 1, 1, 1),
	}
	writeTable(&table, rows)
	writeVerdict(&verdict, rows)
	for i, want := range []string{
		"| 1 %, 95 % sure: -1 to 2.50, within noise | -1 – 2.50 |  | ≤ 3 % **met** |",
		"| 6.50 %, 95 % sure: 4 to 9 | 4 – 9 |  | ≤ 3 % **NOT met** |",
		"| 1.50 %, 95 % sure: -5 to 5, within noise | -5 – 5 |  | ≤ 3 % not certain |",
		"| 1 %, too few rounds to tell | 1 – 1 |  | ≤ 3 % not certain |",
	} {
		if line := strings.Split(table.String(), "\n")[2+i]; !strings.HasSuffix(line, want) {
			t.Errorf("got %q, want %q at its end", line, want)
		}
	}
	if got, want := verdict.String(), "Targets met: 1 of 2."; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := results(table.String()); len(got) != len(rows) || got[1].median != 6.5 || got[1].unit != "%" {
		t.Errorf("read back: got %v", got)
	}
}

func TestCostsAreBesideThePaceWithoutThem(t *testing.T) {
	t.Parallel()
	// A cycle of 500 µs, of which 100 are the client's; and one of 512.5, of which 110 are.
	without, with := pace{2000, 100_000}, pace{1950, 110_000}
	if slower, busier := percent(without, with); math.Abs(slower-2.5) > 1e-9 || math.Abs(busier-2) > 1e-9 {
		t.Errorf("percent: got %v, %v, want 2.5, 2", slower, busier)
	}
	slower, busier := nanoseconds(without, with)
	if math.Abs(slower-1e9/1950+500_000) > 1e-6 || math.Abs(busier-10_000) > 1e-9 {
		t.Errorf("nanoseconds: got %v, %v, want 12,820.5, 10,000", slower, busier)
	}
}

func TestWorkersWithHooksDoTheSame(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	for _, hooks := range []string{idleHooks, withMetrics} {
		for kind, word := range map[string]string{
			kindTurnstile: "run", kindNodes: "run", kindTurnstileQueue: "put", kindTurnstileCounter: countOrder,
		} {
			t.Run(kind+" "+hooks, func(t *testing.T) {
				t.Parallel()
				p := plan{addr: srv.Addr(), root: "/" + kind + hooks, clients: 1, lockers: 1, locks: 1, hooks: hooks}
				done := order(t, employ(t, kind, p), measure.Millis(word, time.Second))
				if len(done.Figures) != 2 || done.Figures[0] == 0 {
					t.Errorf("got %v, want how often, and how long", done.Figures)
				}
			})
		}
	}
}

func TestPlanSaysWhichHooksThereAre(t *testing.T) {
	t.Parallel()
	seen, err := (&plan{hooks: withMetrics}).observers()
	if err != nil {
		t.Fatal(err)
	}
	none, err := new(plan).observers()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (&plan{hooks: "loud"}).observers(); err == nil {
		t.Error("hooks that there are not: got no error")
	}
	if seen.zk.Request == nil || seen.lock.Acquired == nil || seen.queue.Claimed == nil {
		t.Error("metrics lack a hook")
	}
	if none.zk.Request != nil || none.lock.Acquired != nil || none.queue.Claimed != nil {
		t.Error("a plan without hooks has some")
	}
}

func TestQueueWorkerServesUntilTheTimeIsOver(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	const root = "/queue"
	f, err := openFiller(t.Context(), kindTurnstileQueue, srv.Addr(), root)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	const items = 10_000
	if err := f.fill(t.Context(), items); err != nil {
		t.Fatal(err)
	}
	w := employ(t, kindTurnstileQueue, plan{addr: srv.Addr(), root: root, clients: 1, lockers: 2})
	done := order(t, w, measure.Millis(serveOrder, time.Second))
	left, err := f.count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if served := int(done.Figures[0]); served == 0 || served+left != items {
		t.Errorf("got %d served and %d left of %d", served, left, items)
	}
}

func TestProcessorTimeGrowsWithWork(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells of other processes")
	}
	grows := func(name string, now func() (time.Duration, error)) {
		before, err := now()
		for after := before; err == nil && after == before; {
			after, err = now() // is work
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	grows("this process", func() (time.Duration, error) {
		a, err := processorTime()
		return time.Duration(a.Figures[0]), err
	})
	grows("a process", func() (time.Duration, error) { return processorOf(os.Getpid()) })
	if _, err := processorOf(1 << 30); err == nil {
		t.Error("no process: got no error")
	}
}

func TestCrowdIsHeldAndWaitedFor(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	c, err := newCrowd(t.Context(), srv.Addr(), "/crowd", 30, 4)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	s, err := survey.Read(t.Context(), srv.Client(t, 10*time.Second), survey.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Entries) != 30 {
		t.Errorf("got %d locks, want 30", len(s.Entries))
	}
	holders, waiters := make(map[int64]bool), make(map[int64]bool)
	for _, e := range s.Entries {
		if e.Kind != survey.Lock || e.Holding != 1 || e.Waiting != 4 || !e.Holders[0].Known {
			t.Errorf("%s: got %s, %d holders, %d waiters, want a lock, 1 that is known, 4",
				e.Path, e.Kind, e.Holding, e.Waiting)
			continue
		}
		holders[e.Holders[0].Session], waiters[e.First.Session] = true, true
	}
	for id := range holders {
		if waiters[id] {
			t.Errorf("session %x holds and waits", id)
		}
	}
}

func TestViewerAsksForWhatIsNew(t *testing.T) {
	t.Parallel()
	const page = "a page that is longer than an answer without a page"
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/":
			w.WriteHeader(http.StatusNotFound)
		case r.Header.Get("If-None-Match") == "tag" && r.Header.Get("Turnstile-Part") != "":
			w.Header().Set("ETag", "tag")
			w.WriteHeader(http.StatusNotModified)
		default:
			w.Header().Set("ETag", "tag")
			fmt.Fprint(w, strings.Repeat(page, 100))
		}
	}))
	defer srv.Close()
	var v viewers
	client := v.browser()
	defer client.CloseIdleConnections()
	tag, err := look(t.Context(), client, srv.URL, false, "")
	if err != nil || tag != "tag" {
		t.Fatalf("got %q, %v, want the tag", tag, err)
	}
	whole := v.got.Load()
	if tag, err = look(t.Context(), client, srv.URL, true, tag); err != nil || tag != "tag" {
		t.Errorf("got %q, %v, want the tag", tag, err)
	}
	if again := v.got.Load() - whole; whole < int64(100*len(page)) || again <= 0 || again > 500 {
		t.Errorf("got %d bytes and then %d, want the page and then a few", whole, again)
	}
	if _, err := look(t.Context(), client, srv.URL+"/missing", false, ""); err == nil {
		t.Error("a page that there is not: got no error")
	}
	lost := watchPage(t.Context(), srv.URL+"/missing", 1)
	lost.group.Wait() // it gives up
	if err := lost.end(); err == nil {
		t.Error("viewers of a page that there is not: got no error")
	}
}
