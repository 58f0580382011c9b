package main

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/measure"
	"github.com/seed-a3166700/turnstile/zktest"
)

// cycles returns cycles by when they began, had the lock and unlocked it.
func cycles(times ...[3]int64) []measure.Cycle {
	var all []measure.Cycle
	for _, t := range times {
		all = append(all, measure.Cycle{Began: t[0], Locked: t[1], Unlocked: t[2]})
	}
	return all
}

func TestTwoAtOnceIsNoticed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		cycles []measure.Cycle
		want   bool
	}{
		{"none", nil, true},
		{"in turn, in another order", cycles([3]int64{5, 20, 30}, [3]int64{0, 1, 10}, [3]int64{2, 10, 20}), true},
		{"the second before the first has unlocked", cycles([3]int64{0, 1, 10}, [3]int64{2, 9, 20}), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if err := exclusive(test.cycles); (err == nil) != test.want {
				t.Errorf("got %v, want it to be a lock: %v", err, test.want)
			}
		})
	}
}

func TestHandOverIsFromAnUnlockToTheNextLock(t *testing.T) {
	t.Parallel()
	all := cycles([3]int64{0, 1, 10}, [3]int64{2, 13, 20}, [3]int64{5, 21, 30})
	if got, want := gaps(all), []float64{3, 1}; !slices.Equal(got, want) {
		t.Errorf("gaps: got %v, want %v", got, want)
	}
	if got, want := measure.Waits(all), []float64{1, 11, 16}; !slices.Equal(got, want) {
		t.Errorf("waits: got %v, want %v", got, want)
	}
}

func TestPercentileIsTheSmallestThatSoManyDoNotExceed(t *testing.T) {
	t.Parallel()
	figures := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for percent, want := range map[int]float64{50: 5, 99: 10, 100: 10, 10: 1, 11: 2} {
		if got := measure.Percentile(figures, percent); got != want {
			t.Errorf("p%d: got %v, want %v", percent, got, want)
		}
	}
	if got := measure.Median([]float64{4, 1, 3, 2}); got != 2.5 {
		t.Errorf("median: got %v, want 2.5", got)
	}
}

func TestTargetIsMissedIfOneServerMissesIt(t *testing.T) {
	t.Parallel()
	rows := []row{
		{load: "l", contender: subject(onZooKeeper), figures: []float64{100}},
		{load: "l", contender: subject(onServe), figures: []float64{400}},
		{load: "l", contender: goZooKeeper(onZooKeeper, 2), figures: []float64{49}},
		{load: "l", contender: goZooKeeper(onServe, 2), figures: []float64{201}},
		{load: "l", contender: contender{name: "redsync", server: onRedis, required: 10}, figures: []float64{20}},
		{load: "l", contender: contender{name: "redislock", server: onRedis, required: 5}, figures: []float64{20}},
	}
	judge(rows, limit{})
	var table, verdict bytes.Buffer
	writeTable(&table, rows)
	writeVerdict(&verdict, rows)
	for _, want := range []string{
		`go-zookeeper Lock on ZooKeeper 3.8.0 .* 2.04 × \| ≥ 2 × \*\*met\*\*`,
		`go-zookeeper Lock on turnstile serve .* 1.99 × \| ≥ 2 × \*\*NOT met\*\*`,
		`redsync on Redis, volatile .* 5.00 × \(ZooKeeper 3.8.0\), 20.00 × \(turnstile serve\) \| ≥ 10 × ` +
			`\*\*NOT met\*\*`,
		`redislock on Redis, volatile .* ≥ 5 × \*\*met\*\*`,
	} {
		if !regexp.MustCompile(want).MatchString(table.String()) {
			t.Errorf("no %q in\n%s", want, &table)
		}
	}
	if got, want := verdict.String(), "Targets met: 2 of 4."; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLessIsMoreTurnsTheRatioRound(t *testing.T) {
	t.Parallel()
	rows := []row{
		{load: "l", contender: strictly(onZooKeeper), figures: []float64{10}, lessIsMore: true},
		{load: "l", contender: goZooKeeper(onZooKeeper, 0), figures: []float64{30}, lessIsMore: true},
	}
	judge(rows, limit{atMost, 9})
	if got := rows[1].against(); got != "3.00 ×" {
		t.Errorf("got %q, want 3.00 ×", got)
	}
	if promised, kept := rows[0].promised(); !promised || kept {
		t.Errorf("got promised %v, kept %v of 10 where 9 is the limit", promised, kept)
	}
}

func TestContenderThatIsNotInstalledIsNamed(t *testing.T) {
	t.Parallel()
	var table bytes.Buffer
	const want = "not measured: not installed: java"
	writeTable(&table, []row{{load: "l", contender: goZooKeeper(onZooKeeper, 2), note: want}})
	if !strings.Contains(table.String(), want) {
		t.Errorf("no %q in\n%s", want, &table)
	}
}

// TestWorkerObeys talks to a worker of ours as the benchmark does, on a server in memory.
func TestWorkerObeys(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	for _, kind := range []string{kindTurnstile, kindGoZooKeeper} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := employ(t, kind, plan{addr: srv.Addr(), root: "/" + kind, clients: 1, lockers: 2, locks: 1})
			a := order(t, w, measure.Millis("trace", time.Second))
			if len(a.Figures) != 2 || a.Figures[0] == 0 || int(a.Figures[0]) != len(a.Cycles) {
				t.Errorf("trace: got %v and %d cycles, want as many", a.Figures, len(a.Cycles))
			}
			if err := exclusive(a.Cycles); err != nil {
				t.Error(err)
			}
			order(t, w, "stand 3")
			if a := order(t, w, "step"); len(a.Figures) != 1 {
				t.Errorf("step: got %v, want one figure", a.Figures)
			}
			if a := order(t, w, "drain"); len(a.Figures) != 1 {
				t.Errorf("drain: got %v, want one figure", a.Figures)
			}
			if a := order(t, w, "memory"); len(a.Figures) != 2 || a.Figures[0] <= 0 || a.Figures[1] <= 0 {
				t.Errorf("memory: got %v, want two figures above 0", a.Figures)
			}
			if _, err := w.Order("dance"); err == nil || !strings.Contains(err.Error(), `unknown order "dance"`) {
				t.Errorf("got %v for an order that there is not", err)
			}
		})
	}
}

// employ starts a worker in this process, which ends with the test.
func employ(t *testing.T, kind string, p plan) *measure.Process {
	t.Helper()
	orders, told := io.Pipe()
	answers, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- work(context.Background(), append([]string{kind}, p.args()...), orders, out) }()
	w := measure.NewProcess(kind, told, answers, func() { _ = told.Close() }, func() error { return <-ended })
	if err := w.Ready(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Errorf("it ended with %v", err)
		}
	})
	return w
}

func order(t *testing.T, w *measure.Process, order string) measure.Answer {
	t.Helper()
	a, err := w.Order(order)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestCounterWorkerObeys(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	for _, kind := range []string{kindTurnstileCounter, kindTurnstileSequence} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := employ(t, kind, plan{addr: srv.Addr(), root: "/" + kind, clients: 1, lockers: 4})
			a := order(t, w, measure.Millis(countOrder, time.Second))
			if len(a.Figures) != 2 || a.Figures[0] <= 0 || a.Figures[1] <= 0 {
				t.Errorf("count: got %v, want two figures above 0", a.Figures)
			}
		})
	}
}

// A promise about a peer holds on both servers, so the peer is measured on both, and so are its rows without a promise.
func TestPeersOfRecipesAreMeasuredOnBothServers(t *testing.T) {
	t.Parallel()
	for _, l := range slices.Concat(counterLoads(), cacheLoads(), barrierLoads()) {
		type peer struct {
			kind     string
			required float64
		}
		servers := make(map[peer]int)
		for _, c := range l.contenders {
			if c.role != peerRole || c.skip != "" {
				continue
			}
			if c.server == onZooKeeper {
				servers[peer{c.kind, c.required}]++
			} else {
				servers[peer{c.kind, c.required}]--
			}
		}
		for p, n := range servers {
			if n != 0 {
				t.Errorf("%s: %s is not measured on both servers, or has different promises there", l.key, p.kind)
			}
		}
	}
}
