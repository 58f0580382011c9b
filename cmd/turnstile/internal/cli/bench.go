package cli

// turnstile bench.

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/internal/measure"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// benchJSON is what "turnstile bench lock --json" prints.
type benchJSON struct {
	CyclesPerSecond float64 `json:"cycles_per_second"`
	AcquireP50      float64 `json:"acquire_p50_us"`
	AcquireP99      float64 `json:"acquire_p99_us"`
	Cycles          int     `json:"cycles"`
	Seconds         float64 `json:"seconds"`
	Processes       int     `json:"processes"`
	Goroutines      int     `json:"goroutines"`
	Locks           int     `json:"locks"`
	DurationSeconds float64 `json:"duration_s"`
	Strict          bool    `json:"strict"`
	RetainSeconds   float64 `json:"retain_s"`
	Layout          string  `json:"layout"`
	Prefix          string  `json:"prefix"`
	Connect         string  `json:"connect"`
	SessionTimeout  int64   `json:"session_timeout_ms"`
}

// bencher is "turnstile bench lock".
type bencher struct {
	app        *command.App
	connection command.Connection
	processes  int
	goroutines int
	locks      int
	duration   command.Duration
	retain     command.Duration
	strict     bool
	layout     command.Choice
	prefix     string
	json       bool
	worker     bool     // this is one of the processes
	again      []string // the arguments of the processes
}

func newBench(app *command.App) *cobra.Command {
	b := &bencher{app: app, duration: command.Duration(5 * time.Second)}
	cmd := &cobra.Command{
		Use:   "lock",
		Short: "Measure how fast locks are acquired and released",
		Long: `Locks and unlocks for a while in the goroutines of one or more processes, each with one client, and
prints how many cycles a second they completed and how long acquiring took.

Goroutines of one process pass a lock on in memory, within bounds; with --strict every acquisition takes its
turn at the server. --retain keeps a lock in the process that had it last until another process wants it.
--layout is that of "turnstile lock --layout": with both, a contender has two nodes.`,
		Example: `  turnstile bench lock --goroutines 16 --locks 16 --duration 10s
  turnstile bench lock --connect 127.0.0.1:2181 --goroutines 64 --locks 1 --json
  turnstile bench lock --connect 127.0.0.1:2181 --processes 16 --strict
  turnstile bench lock --retain 10s
  turnstile bench lock --layout both --strict`,
		Args: command.ExactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := b.check(); err != nil {
				return command.Usage(cmd, err)
			}
			if b.worker {
				return command.UntilSignal(cmd.Context(), b.work)
			}
			b.again = commandLine(cmd.Flags())
			return command.UntilSignal(cmd.Context(), b.run)
		},
	}
	b.layout = command.NewChoice(layoutCurator, layoutKazoo, layoutBoth)
	flags := cmd.Flags()
	flags.IntVar(&b.processes, "processes", 1, "how many processes lock")
	flags.IntVar(&b.goroutines, "goroutines", 1, "how many goroutines lock in each process")
	flags.IntVar(&b.locks, "locks", 1, "how many locks they share; goroutine i uses lock i modulo this number")
	flags.Var(&b.duration, "duration", "how long to measure")
	flags.BoolVar(&b.strict, "strict", false, "every acquisition takes its turn at the server, also among goroutines")
	flags.Var(&b.retain, "retain", "how long to keep an unlocked lock while no other process wants it")
	flags.Var(&b.layout, "layout", "whose programs to share the line with")
	flags.StringVar(&b.prefix, "prefix", "/turnstile-bench", "`path` above the locks")
	flags.BoolVar(&b.json, "json", false, "print one JSON object (docs/cli-json.md)")
	flags.BoolVar(&b.worker, workerFlag, false, "")
	_ = flags.MarkHidden(workerFlag) // it is there
	b.connection.Flags(flags)
	return command.Group(&cobra.Command{
		Use:     "bench",
		Short:   "Measure how fast locks are",
		Example: "  turnstile bench lock --goroutines 16 --locks 16 --duration 10s",
	}, cmd)
}

// check looks at the flags.
func (b *bencher) check() error {
	switch {
	case b.processes < 1:
		return errors.New("--processes must be at least 1")
	case b.goroutines < 1:
		return errors.New("--goroutines must be at least 1")
	case b.locks < 1:
		return errors.New("--locks must be at least 1")
	case b.duration == 0:
		return errors.New("--duration must not be 0")
	case b.strict && b.retain > 0:
		return errors.New("--strict and --retain contradict each other")
	}
	if err := command.CheckPath(b.prefix); err != nil {
		return fmt.Errorf("--prefix: %w", err)
	}
	return nil
}

// run measures, cleans up and reports.
func (b *bencher) run(ctx context.Context) error {
	client, sess, err := b.connection.Open(ctx, b.app)
	if err != nil {
		return err
	}
	defer client.Close() // if it fails, the session ends by itself
	parents := b.missing(ctx, sess)
	var a measure.Answer
	if b.processes > 1 {
		a, err = b.measureProcesses(ctx)
	} else {
		a, err = b.measure(ctx, client)
	}
	b.clean(context.WithoutCancel(ctx), client, sess, parents)
	if err == nil && len(a.Cycles) == 0 {
		err = errors.New("no cycle was completed: use a longer --duration")
	}
	if err != nil {
		return err
	}
	return b.report(measure.Waits(a.Cycles), time.Duration(a.Figures[1]), sess)
}

// measure locks and unlocks in the goroutines of this process.
func (b *bencher) measure(ctx context.Context, client *zk.Client) (measure.Answer, error) {
	cfg := lock.Config{Label: "bench", Retain: time.Duration(b.retain), Layout: lockLayouts[b.layout.Value]}
	if b.strict {
		cfg.Handoff = lock.StrictFIFO
	}
	mutexes, err := b.mutexes(client, cfg)
	if err != nil {
		return measure.Answer{}, err
	}
	lockers := make([]measure.Locker, b.goroutines)
	for i := range lockers {
		lockers[i] = measure.NewMutex(mutexes[i%b.locks])
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(b.duration), errTimeOver) // also for those that wait
	defer cancel()
	a, err := measure.Run(ctx, lockers, time.Duration(b.duration), true)
	if errors.Is(err, errTimeOver) {
		return a, nil
	}
	return a, b.connection.Unanswered(err, client)
}

func (b *bencher) mutexes(client *zk.Client, cfg lock.Config) ([]*lock.Mutex, error) {
	mutexes := make([]*lock.Mutex, b.locks)
	for i := range mutexes {
		var err error
		if mutexes[i], err = lock.NewMutex(client, b.prefix+"/"+strconv.Itoa(i), cfg); err != nil {
			return nil, err
		}
	}
	return mutexes, nil
}

var errTimeOver = errors.New("the time for measuring is over")

// missing lists the parents of the prefix that do not exist yet, the deepest first.
func (b *bencher) missing(ctx context.Context, sess *zk.Session) []string {
	var list []string
	for parent := path.Dir(b.prefix); parent != "/"; parent = path.Dir(parent) {
		if _, there, err := sess.Exists(ctx, parent); there || err != nil {
			break // after an error we do not know whose it is, so it stays
		}
		list = append(list, parent)
	}
	return list
}

// clean removes the locks and the parents that were created for them, also after a measurement that has failed: in
// kazoo's layouts they are not containers, and the server would keep them. Nodes of other clients stay, and their
// parents.
func (b *bencher) clean(ctx context.Context, client *zk.Client, sess *zk.Session, parents []string) {
	ctx, cancel := context.WithTimeout(ctx, command.ReconnectWait)
	defer cancel()
	mutexes, err := b.mutexes(client, lock.Config{Label: "bench"}) // without Retain: those with it give way to them
	if err != nil {
		return
	}
	for _, m := range mutexes[:min(b.locks, b.goroutines)] { // by then all nodes ahead are gone
		if hold, err := m.Lock(ctx); err == nil {
			_ = hold.UnlockWait(ctx) // it may be lost, as far as cleaning goes
		}
	}
	batch := sess.Batch()
	for i := range b.locks {
		batch.Delete(b.prefix+"/"+strconv.Itoa(i), -1)
	}
	last := batch.Delete(b.prefix, -1)
	for _, parent := range parents {
		last = batch.Delete(parent, -1)
	}
	batch.Send()
	_, _ = last.Get(ctx)
}

func (b *bencher) report(waits []float64, took time.Duration, sess *zk.Session) error {
	slices.Sort(waits)
	r := benchJSON{
		CyclesPerSecond: float64(len(waits)) / took.Seconds(),
		AcquireP50:      measure.Percentile(waits, 50) / 1e3,
		AcquireP99:      measure.Percentile(waits, 99) / 1e3,
		Cycles:          len(waits),
		Seconds:         took.Seconds(),
		Processes:       b.processes,
		Goroutines:      b.goroutines,
		Locks:           b.locks,
		DurationSeconds: time.Duration(b.duration).Seconds(),
		Strict:          b.strict,
		RetainSeconds:   time.Duration(b.retain).Seconds(),
		Layout:          b.layout.Value,
		Prefix:          b.prefix,
		Connect:         b.connection.Servers,
		SessionTimeout:  sess.Timeout().Milliseconds(),
	}
	return b.app.Report(b.json, r, "%.0f cycles/s, acquire p50 %.*f µs, p99 %.*f µs (%s)\n",
		r.CyclesPerSecond, digits(r.AcquireP50), r.AcquireP50, digits(r.AcquireP99), r.AcquireP99, b.configuration())
}

// digits is how many belong behind the point.
func digits(microseconds float64) int {
	if microseconds < 10 {
		return 1
	}
	return 0
}

// configuration tells what was measured.
func (b *bencher) configuration() string {
	var parts []string
	if b.processes > 1 {
		parts = append(parts, fmt.Sprintf("%d processes", b.processes))
	}
	parts = append(parts, fmt.Sprintf("%d goroutines", b.goroutines), fmt.Sprintf("%d locks", b.locks),
		time.Duration(b.duration).String())
	if b.strict {
		parts = append(parts, "strict FIFO")
	}
	if b.retain > 0 {
		parts = append(parts, "retained for "+time.Duration(b.retain).String())
	}
	if b.layout.Value != layoutCurator {
		parts = append(parts, "layout "+b.layout.Value)
	}
	return strings.Join(append(parts, b.connection.Where()), ", ")
}
