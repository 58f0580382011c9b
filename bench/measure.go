package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A load is one workload and those who are measured under it, side by side.
type load struct {
	key, title string
	workers    int
	target     float64 // what the first contender's figure, divided by the second's, must reach; 0 if nothing is promised
	contenders []contender
}

// A contender can do a load's cycle: a lock and an unlock, or a create and a delete.
type contender struct {
	name string // who, on what
	open func(ctx context.Context, workers int) (runner, error)
}

// A runner is a contender that is connected and ready.
type runner struct {
	cycle func(ctx context.Context, worker int) error
	drain func(ctx context.Context, worker int) error // waits for what the last cycle left under way; nil if nothing is
	close func()
}

// A row is a contender's result under one load.
type row struct {
	load, name      string
	figures         []float64 // one a round
	unit            string
	ratio, required float64 // against the peer; 0 if there is none
	lessIsMore      bool
	limit           float64 // what a figure that is not compared must reach; 0 if nothing is promised
}

// measure lets the contenders take turns for all rounds.
func (l *load) measure(ctx context.Context, o options, log io.Writer) ([]row, error) {
	runners := make([]runner, len(l.contenders))
	for i, c := range l.contenders {
		r, err := c.open(ctx, l.workers)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		defer r.close()
		runners[i] = r
	}
	rows := make([]row, len(runners))
	for i, c := range l.contenders {
		rows[i] = row{load: l.title, name: c.name, unit: "cycles/s"}
		// What compiles as it runs must have run before it is measured.
		if _, err := runners[i].round(ctx, l.workers, max(o.duration/2, time.Second)); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	for range o.rounds {
		for i, r := range runners {
			rate, err := r.round(ctx, l.workers, o.duration)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", l.contenders[i].name, err)
			}
			fmt.Fprintf(log, "  %-40s %10.0f cycles/s\n", l.contenders[i].name, rate)
			rows[i].figures = append(rows[i].figures, rate)
		}
	}
	if len(rows) > 1 {
		rows[0].ratio, rows[0].required = median(rows[0].figures)/median(rows[1].figures), l.target
	}
	return rows, nil
}

// round runs the cycle in all workers until d is over, and returns how many cycles a second were done, ends included.
func (r *runner) round(ctx context.Context, workers int, d time.Duration) (float64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		group sync.WaitGroup
		over  atomic.Bool
		count atomic.Int64
	)
	start := time.Now()
	timer := time.AfterFunc(d, func() { over.Store(true) })
	defer timer.Stop()
	for worker := range workers {
		group.Go(func() {
			n := int64(0)
			for !over.Load() && ctx.Err() == nil {
				if err := r.cycle(ctx, worker); err != nil {
					cancel(err)
					return
				}
				n++
			}
			if r.drain != nil {
				if err := r.drain(ctx, worker); err != nil {
					cancel(err)
					return
				}
			}
			count.Add(n)
		})
	}
	group.Wait()
	elapsed := time.Since(start)
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	return float64(count.Load()) / elapsed.Seconds(), nil
}

func median(figures []float64) float64 {
	sorted := slices.Sorted(slices.Values(figures))
	switch n := len(sorted); {
	case n == 0:
		return 0
	case n%2 == 1:
		return sorted[n/2]
	default:
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
}
