package cli

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/internal/supervise"
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
	parent := &cobra.Command{
		Use:     "bench",
		Short:   "Measure how fast locks are",
		Example: "  turnstile bench lock --goroutines 16 --locks 16 --duration 10s",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	b := &bencher{app: app, duration: command.Duration(5 * time.Second)}
	cmd := &cobra.Command{
		Use:   "lock",
		Short: "Measure cycles of locking and unlocking",
		Long: `Lets goroutines of one or more processes, each with one client, lock and unlock for a while, and prints
how many cycles a second they made and how long locking took.

Goroutines of one process pass a lock on in memory, within bounds; --strict has every acquisition take its
turn at the server. --retain keeps a lock for the process that had it last while no other wants it.
--layout measures the names of "turnstile lock --layout": with both, a contender has two nodes.`,
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
			ctx, stop := supervise.Until(cmd.Context())
			defer stop()
			if b.worker {
				return command.Failed(b.work(ctx))
			}
			b.again = commandLine(cmd.Flags())
			return command.Failed(b.run(ctx))
		},
	}
	b.layout = command.NewChoice(layoutCurator, layoutKazoo, layoutBoth)
	flags := cmd.Flags()
	flags.IntVar(&b.processes, "processes", 1, "how many processes lock")
	flags.IntVar(&b.goroutines, "goroutines", 1, "how many goroutines of each process lock")
	flags.IntVar(&b.locks, "locks", 1, "how many locks they share; goroutine i uses lock i modulo this")
	flags.Var(&b.duration, "duration", "how long to measure")
	flags.BoolVar(&b.strict, "strict", false, "let each acquisition take its turn at the server, also among goroutines")
	flags.Var(&b.retain, "retain", "how long to keep a lock that was unlocked, while no other process wants it")
	flags.Var(&b.layout, "layout", "with whose programs the locks stand in one line")
	flags.StringVar(&b.prefix, "prefix", "/turnstile-bench", "`path` under which the locks live")
	flags.BoolVar(&b.json, "json", false, "print one JSON object (docs/cli-json.md)")
	flags.BoolVar(&b.worker, workerFlag, false, "")
	_ = flags.MarkHidden(workerFlag) // it is there
	b.connection.Flags(flags)
	parent.AddCommand(cmd)
	return parent
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
	var measured measurement
	if b.processes > 1 {
		measured, err = b.measureProcesses(ctx)
	} else {
		measured, err = b.measure(ctx, client)
	}
	b.clean(context.WithoutCancel(ctx), client, sess, parents)
	if err == nil && len(measured.Waits) == 0 {
		err = errors.New("no cycle was completed: give it a longer --duration")
	}
	if err != nil {
		return err
	}
	return b.report(measured, sess)
}

// A measurement is how long each acquisition took, and all of them together.
type measurement struct {
	Waits []time.Duration `json:"waits_ns"`
	Took  time.Duration   `json:"took_ns"`
}

// measure locks and unlocks in the goroutines of this process.
func (b *bencher) measure(ctx context.Context, client *zk.Client) (measurement, error) {
	cfg := lock.Config{Label: "bench", Retain: time.Duration(b.retain), Layout: lockLayouts[b.layout.Value]}
	if b.strict {
		cfg.Handoff = lock.StrictFIFO
	}
	mutexes, err := b.mutexes(client, cfg)
	if err != nil {
		return measurement{}, err
	}
	begin := time.Now()
	waits, err := b.cycle(ctx, mutexes)
	if err != nil {
		return measurement{}, b.connection.Unanswered(err, client)
	}
	return measurement{waits, time.Since(begin)}, nil
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

// cycle locks and unlocks in goroutines for the duration, and returns how long each acquisition took.
func (b *bencher) cycle(ctx context.Context, mutexes []*lock.Mutex) ([]time.Duration, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(b.duration), errTimeOver)
	defer cancel()
	var wg sync.WaitGroup
	waits := make([][]time.Duration, b.goroutines)
	errs := make([]error, b.goroutines)
	for i := range b.goroutines {
		wg.Go(func() {
			for ctx.Err() == nil && errs[i] == nil {
				begin := time.Now()
				hold, err := mutexes[i%b.locks].Lock(ctx)
				if err != nil {
					errs[i] = err
					return
				}
				waits[i] = append(waits[i], time.Since(begin))
				errs[i] = hold.Unlock()
			}
		})
	}
	wg.Wait()
	errs = slices.DeleteFunc(errs, func(err error) bool {
		return errors.Is(err, errTimeOver) || errors.Is(err, context.DeadlineExceeded)
	})
	return slices.Concat(waits...), errors.Join(errs...)
}

var errTimeOver = errors.New("the time for measuring is over")

// missing lists the parents of the prefix that do not exist yet, the deepest first.
func (b *bencher) missing(ctx context.Context, sess *zk.Session) []string {
	var list []string
	for parent := path.Dir(b.prefix); parent != "/"; parent = path.Dir(parent) {
		if _, there, err := sess.Exists(ctx, parent); there || err != nil { // after an error it is not known whose it is, and it stays
			break
		}
		list = append(list, parent)
	}
	return list
}

// clean removes the locks and the parents that were created for them, also after a measurement that has failed: in
// kazoo's layouts they are not containers, and the server would keep them. Nodes of other clients stay, and their
// parents.
func (b *bencher) clean(ctx context.Context, client *zk.Client, sess *zk.Session, parents []string) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
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

func (b *bencher) report(m measurement, sess *zk.Session) error {
	slices.Sort(m.Waits)
	at := func(percent int) float64 { // the smallest that this percentage does not exceed
		return float64(m.Waits[(len(m.Waits)*percent+99)/100-1].Nanoseconds()) / 1e3
	}
	r := benchJSON{
		CyclesPerSecond: float64(len(m.Waits)) / m.Took.Seconds(),
		AcquireP50:      at(50),
		AcquireP99:      at(99),
		Cycles:          len(m.Waits),
		Seconds:         m.Took.Seconds(),
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
	if b.json {
		return b.app.JSON(r)
	}
	return b.app.Printf("%.0f cycles/s, acquire p50 %.*f µs, p99 %.*f µs (%s)\n",
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
