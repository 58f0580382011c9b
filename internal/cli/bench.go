package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

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
	Goroutines      int     `json:"goroutines"`
	Locks           int     `json:"locks"`
	DurationSeconds float64 `json:"duration_s"`
	Prefix          string  `json:"prefix"`
	Connect         string  `json:"connect"`
	SessionTimeout  int64   `json:"session_timeout_ms"`
}

// bencher is "turnstile bench lock".
type bencher struct {
	*cli
	connection connection
	goroutines int
	locks      int
	duration   duration
	prefix     string
	json       bool
}

func (c *cli) bench() *cobra.Command {
	parent := &cobra.Command{
		Use:     "bench",
		Short:   "Measure how fast locks are",
		Example: "  turnstile bench lock --goroutines 16 --locks 16 --duration 10s",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	b := &bencher{cli: c, duration: duration(5 * time.Second)}
	cmd := &cobra.Command{
		Use:   "lock",
		Short: "Measure cycles of locking and unlocking",
		Long: `Lets goroutines of one client lock and unlock for a while, and prints how many cycles a second they made and
how long locking took.`,
		Example: `  turnstile bench lock --goroutines 16 --locks 16 --duration 10s
  turnstile bench lock --connect 127.0.0.1:2181 --goroutines 64 --locks 1 --json`,
		Args: exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case b.goroutines < 1:
				return usage(cmd, errors.New("--goroutines must be at least 1"))
			case b.locks < 1:
				return usage(cmd, errors.New("--locks must be at least 1"))
			case b.duration == 0:
				return usage(cmd, errors.New("--duration must not be 0"))
			}
			if err := checkPath(b.prefix); err != nil {
				return usage(cmd, fmt.Errorf("--prefix: %w", err))
			}
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			return failed(b.run(ctx))
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&b.goroutines, "goroutines", 1, "how many goroutines lock")
	flags.IntVar(&b.locks, "locks", 1, "how many locks they share; goroutine i uses lock i modulo this")
	flags.Var(&b.duration, "duration", "how long to measure")
	flags.StringVar(&b.prefix, "prefix", "/turnstile-bench", "`path` under which the locks live")
	flags.BoolVar(&b.json, "json", false, "print one JSON object (docs/cli-json.md)")
	b.connection.flags(flags)
	parent.AddCommand(cmd)
	return parent
}

func (b *bencher) run(ctx context.Context) error {
	client, sess, err := b.open(ctx, &b.connection)
	if err != nil {
		return err
	}
	defer client.Close() // the session ends by itself if it cannot be closed now
	mutexes := make([]*lock.Mutex, b.locks)
	for i := range mutexes {
		if mutexes[i], err = lock.NewMutex(client, b.prefix+"/"+strconv.Itoa(i), lock.Config{Label: "bench"}); err != nil {
			return err
		}
	}
	begin := time.Now()
	waits, err := b.cycle(ctx, mutexes)
	took := time.Since(begin)
	if err == nil && len(waits) == 0 {
		err = errors.New("no cycle was completed: give it a longer --duration")
	}
	if err != nil {
		return b.connection.gaveUp(err, client.LastError())
	}
	b.clean(ctx, mutexes, sess)
	return b.report(waits, took, sess)
}

// cycle has the goroutines lock and unlock for the duration, and returns how long each acquisition took.
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
				errs[i] = hold.Unlock(ctx)
			}
		})
	}
	wg.Wait()
	errs = slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, errTimeOver) || errors.Is(err, context.DeadlineExceeded) })
	return slices.Concat(waits...), errors.Join(errs...)
}

var errTimeOver = errors.New("the time for measuring is over")

// clean removes the locks. Whatever cannot be removed now, the server removes by itself: they are containers.
func (b *bencher) clean(ctx context.Context, mutexes []*lock.Mutex, sess *zk.Session) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for _, m := range mutexes[:min(b.locks, b.goroutines)] { // at the end of the line, all who left it before have left
		if hold, err := m.Lock(ctx); err == nil {
			_ = hold.Unlock(ctx) // it may be lost, as far as cleaning goes
		}
	}
	batch := sess.Batch()
	for i := range b.locks {
		batch.Delete(b.prefix+"/"+strconv.Itoa(i), -1)
	}
	last := batch.Delete(b.prefix, -1)
	batch.Send()
	_, _ = last.Get(ctx)
}

func (b *bencher) report(waits []time.Duration, took time.Duration, sess *zk.Session) error {
	slices.Sort(waits)
	at := func(percent int) float64 { // the smallest that this percentage does not exceed
		return float64(waits[(len(waits)*percent+99)/100-1].Nanoseconds()) / 1e3
	}
	r := benchJSON{
		CyclesPerSecond: float64(len(waits)) / took.Seconds(),
		AcquireP50:      at(50),
		AcquireP99:      at(99),
		Cycles:          len(waits),
		Seconds:         took.Seconds(),
		Goroutines:      b.goroutines,
		Locks:           b.locks,
		DurationSeconds: time.Duration(b.duration).Seconds(),
		Prefix:          b.prefix,
		Connect:         b.connection.servers,
		SessionTimeout:  sess.Timeout().Milliseconds(),
	}
	if b.json {
		return b.cli.json(r)
	}
	_, err := fmt.Fprintf(b.stdout, "%.0f cycles/s, acquire p50 %.0f µs, p99 %.0f µs (%d goroutines, %d locks, %v, %s)\n",
		r.CyclesPerSecond, r.AcquireP50, r.AcquireP99, r.Goroutines, r.Locks, time.Duration(b.duration), b.connection.where())
	return err
}
