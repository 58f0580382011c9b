package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/measure"
	"github.com/seed-a3166700/turnstile/zktest"
)

// TestQueueWorkerObeys talks to a worker with a queue as the benchmark does, on a server in memory.
func TestQueueWorkerObeys(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	const root, depth = "/queue", 100
	w := employ(t, kindTurnstileQueue, plan{addr: srv.Addr(), root: root, clients: 2, lockers: 4})
	filler, err := openFiller(t.Context(), kindTurnstileQueue, srv.Addr(), root)
	if err != nil {
		t.Fatal(err)
	}
	defer filler.close()
	there := func(want int) {
		t.Helper()
		if got, err := filler.count(t.Context()); err != nil || got != want {
			t.Fatalf("got %d items, %v; want %d", got, err, want)
		}
	}
	if err := filler.fill(t.Context(), depth); err != nil {
		t.Fatal(err)
	}
	there(depth)
	if a := order(t, w, "take 40 60000"); len(a.Figures) != 2 || a.Figures[0] != 40 || a.Figures[1] <= 0 {
		t.Errorf("take: got %v, want 40 items and a time", a.Figures)
	}
	there(depth - 40)
	if a := order(t, w, "take 60 60000"); len(a.Figures) != 2 || a.Figures[0] != 60 {
		t.Errorf("take: got %v, want 60 items and a time", a.Figures)
	}
	there(0)
	a := order(t, w, measure.Millis("relay", time.Second))
	if len(a.Figures) != 2 || a.Figures[0] == 0 || int(a.Figures[0]) != len(a.Cycles) {
		t.Errorf("relay: got %v and %d lines, want as many", a.Figures, len(a.Cycles))
	}
	there(0)
	put := order(t, w, measure.Millis("put", time.Second))
	batch := order(t, w, measure.Millis("batch", time.Second))
	if batch.Figures[0] == 0 || batch.Figures[0]%batchItems != 0 {
		t.Errorf("batch: got %v, want thousands of items", batch.Figures)
	}
	there(int(put.Figures[0] + batch.Figures[0]))
	for _, bad := range []string{"dance", "take many 5", "take 1 2 3"} {
		if _, err := w.Order(bad); err == nil {
			t.Errorf("got no error for %q", bad)
		}
	}
}

func TestFillersFillTheNodesOfTheirContenders(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	_, sess, err := connect(t.Context(), srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ kind, first, data string }{
		{kindCuratorSimple, "/qn-0000000000", "0*1"},
		{kindCuratorQueue, "/queue-0000000000", "\x00\x01\x00\x01\x01\x00\x00\x00d0*1\x02"},
		{kindKazooQueue, "/entry-100-0000000000", "0*1"},
		{kindKazooLocking, "/entries/entry-100-0000000000", "0*1"},
	} {
		t.Run(test.kind, func(t *testing.T) {
			t.Parallel()
			root := "/" + test.kind
			filler, err := openFiller(t.Context(), test.kind, srv.Addr(), root)
			if err != nil {
				t.Fatal(err)
			}
			defer filler.close()
			const n = 2100 // more than are sent at a time
			if err := filler.fill(t.Context(), n); err != nil {
				t.Fatal(err)
			}
			if got, err := filler.count(t.Context()); err != nil || got != n {
				t.Errorf("got %d items, %v; want %d", got, err, n)
			}
			data, _, err := sess.Get(t.Context(), root+test.first)
			if err != nil || !regexp.MustCompile("^"+test.data+"$").Match(data) {
				t.Errorf("got %q, %v; want %q", data, err, test.data)
			}
		})
	}
}

func TestListThatIsTooLongIsSaid(t *testing.T) {
	t.Parallel()
	s := &nodeFiller{prefix: "qn-"}
	if got := s.tooLong(61_680, 0); got != "" {
		t.Errorf("got %q for 61,680 names of 17 bytes, which fit", got)
	}
	const want = "1,700,000 bytes, and its client takes 1,048,575"
	if got := s.tooLong(100_000, 0); !strings.Contains(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := s.tooLong(100_000, widePacket); got != "" {
		t.Errorf("got %q for a client that takes more", got)
	}
}

// A team that says that it has taken more or less than is gone from the server is found out.
func TestItemsAreCountedAfterwards(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	for _, lie := range []int{0, 1} {
		t.Run(fmt.Sprintf("%d too many", lie), func(t *testing.T) {
			t.Parallel()
			root := fmt.Sprintf("/honest-%d", lie)
			filler, err := openFiller(t.Context(), kindTurnstileQueue, srv.Addr(), root)
			if err != nil {
				t.Fatal(err)
			}
			defer filler.close()
			q := &filledQueue{contender: ourTasks(onServe), root: root, filler: filler, depth: 50}
			if err := q.fill(t.Context(), q.depth); err != nil {
				t.Fatal(err)
			}
			p := plan{addr: srv.Addr(), root: root, clients: 1, lockers: 1}
			workers := measure.Processes{employ(t, kindTurnstileQueue, p)}
			t0 := &team{contender: q.contender, workers: workers, backend: &backend{}, plan: p}
			s := &queueTeam{team: t0, queue: q}
			take := phase{order: "take", workers: 1}
			if rate, err := s.serve(t.Context(), &take, time.Second); err != nil || rate <= 0 {
				t.Fatalf("got %v items/s, %v", rate, err)
			}
			q.items += lie
			if err := s.end(t.Context(), &take); (err == nil) != (lie == 0) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestPromisesOfQueues(t *testing.T) {
	t.Parallel()
	one, many := &phase{order: "take", workers: 1}, &phase{order: "take", workers: inFlight}
	put := &phase{order: "put", workers: 1}
	locking := contender{kind: kindKazooLocking}
	few := contender{kind: kindTurnstileQueue, role: peerRole}
	for _, test := range []struct {
		phase     *phase
		depth     int
		contender contender
		want      float64
	}{
		{one, 100, locking, 0},
		{one, 1000, locking, 3},
		{one, 10_000, locking, 10},
		{many, 10_000, locking, 0},
		{put, 10_000, locking, 0},
		{one, deepest, few, 0.8},
		{many, deepest, few, 0.8},
		{put, deepest, few, 0.8},
		{one, 10_000, contender{kind: kindCuratorQueue}, 0},
	} {
		if got := test.phase.required(&load{depth: test.depth}, &test.contender); got != test.want {
			t.Errorf("%s at %d, %d to %s: got %v, want %v",
				test.contender.kind, test.depth, test.phase.workers, test.phase.order, got, test.want)
		}
	}
}

func TestHistogramTotal(t *testing.T) {
	t.Parallel()
	const text = " num     #instances         #bytes  class name (module)\n-----\n" +
		"   1:         15003         832000  [B (java.base@17.0.15)\nTotal         62040        4886368\n"
	if got, err := histogramTotal(text); err != nil || got != 4886368 {
		t.Errorf("got %v, %v; want 4886368", got, err)
	}
	if got, err := histogramTotal("Total war\n"); err == nil {
		t.Errorf("got %v for what is no histogram", got)
	}
}

// TestPartLeavesTheOtherAlone is about figures.md: measuring one part again keeps the other's figures.
func TestPartLeavesTheOtherAlone(t *testing.T) {
	t.Parallel()
	locks := section{"Locks", "| old lock |\n\n### Locks: the machine\n\n- slow"}
	both := page("", []section{locks, {"Queues", "| old queue |"}})
	text := string(page(string(both), []section{{"Queues", "| new queue |"}}))
	const want = "\n## Locks\n\n| old lock |\n\n### Locks: the machine\n\n- slow\n\n" +
		"## Queues\n\n| new queue |\n\n## Repeat it\n"
	if !strings.Contains(text, want) {
		t.Errorf("no %q in\n%s", want, text)
	}
	once := strings.Count(text, "# Benchmarks") == 1 && strings.Count(text, repeatTitle) == 1
	if strings.Contains(text, "old queue") || !once {
		t.Errorf("something stands there twice:\n%s", text)
	}
	if again := string(page(text, nil)); again != text {
		t.Errorf("got another page from nothing new:\n%s", again)
	}
}

func TestPartIsWholeIfNothingIsLeftOut(t *testing.T) {
	t.Parallel()
	measured := func(_ context.Context, _ *bench, l *load) ([]row, error) { return []row{{load: l.title}}, nil }
	p := &part{loads: func() []load {
		return []load{{key: "queue-a", measure: measured}, {key: "queue-b", measure: measured}}
	}}
	for _, test := range []struct {
		args []string
		rows int
		want bool
	}{
		{nil, 2, true},
		{[]string{"-only", "queue"}, 2, true},
		{[]string{"-only", "queue-a"}, 1, false},
		{[]string{"-who", "Turnstile"}, 2, false},
	} {
		o, err := parse(test.args, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		b := &bench{options: o, servers: &servers{}, log: io.Discard}
		rows, whole, err := b.part(t.Context(), p)
		if err != nil || whole != test.want || len(rows) != test.rows {
			t.Errorf("%v: got %d rows, whole %v, %v; want %d, %v",
				test.args, len(rows), whole, err, test.rows, test.want)
		}
	}
	if _, err := parse([]string{"-part", "elections"}, io.Discard); err == nil {
		t.Error("got no error for a part that there is not")
	}
}
