package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seed-a3166700/turnstile/counter"
	"github.com/seed-a3166700/turnstile/internal/measure"
	"github.com/seed-a3166700/turnstile/zk"
)

const (
	kindTurnstileCounter  = "turnstile-counter"
	kindTurnstileSequence = "turnstile-sequence"
)

// A counting is one connection's counter, or its sequence. Its methods may be called from several goroutines.
type counting interface {
	next(ctx context.Context) (int64, error)
	close()
}

// counterKinds are the contenders with counters that are written in Go.
var counterKinds = map[string]opener[counting]{
	kindTurnstileCounter:  openCounter,
	kindTurnstileSequence: openSequence,
}

// ourCounting is a counter or a sequence of ours, with a client of its own.
type ourCounting struct {
	client *zk.Client
	call   func(ctx context.Context) (int64, error)
}

func openCounter(ctx context.Context, p *plan) (counting, error) {
	seen, err := p.observers()
	if err != nil {
		return nil, err
	}
	client, _, err := connectWith(ctx, p.addr, seen.zk)
	if err != nil {
		return nil, err
	}
	c, err := counter.New(client, p.root, counter.Config{})
	if err != nil {
		return nil, err
	}
	return &ourCounting{client, func(ctx context.Context) (int64, error) { return c.Add(ctx, 1) }}, nil
}

func openSequence(ctx context.Context, p *plan) (counting, error) {
	client, _, err := connect(ctx, p.addr)
	if err != nil {
		return nil, err
	}
	s, err := counter.NewSequence(client, p.root, counter.SequenceConfig{})
	if err != nil {
		return nil, err
	}
	return &ourCounting{client, s.Next}, nil
}

func (o *ourCounting) next(ctx context.Context) (int64, error) { return o.call(ctx) }
func (o *ourCounting) close()                                  { _ = o.client.Close() }

// A counterWorker is the worker of a contender with a counter.
type counterWorker struct {
	plan        *plan
	connections []counting
}

func newCounterWorker(ctx context.Context, p *plan, open opener[counting]) (*counterWorker, error) {
	connections, err := connectAll(ctx, p, open)
	if err != nil {
		return nil, err
	}
	return &counterWorker{p, connections}, nil
}

func (w *counterWorker) close() { disconnect(w.connections) }

func (w *counterWorker) obey(ctx context.Context, order string, n measure.Numbers) (measure.Answer, error) {
	switch order {
	case countOrder:
		return w.count(ctx, n.Millis(0))
	case "memory":
		return memory(), nil
	default:
		return measure.Answer{}, fmt.Errorf("unknown order %q", order)
	}
}

// count calls until the time is over, in as many goroutines as the plan has lockers. No two calls may get the same.
func (w *counterWorker) count(ctx context.Context, d time.Duration) (measure.Answer, error) {
	start := time.Now()
	var over atomic.Bool
	timer := time.AfterFunc(d, func() { over.Store(true) })
	defer timer.Stop()
	var all atomic.Int64
	err := together(ctx, w.plan.lockers, func(ctx context.Context, i int) error {
		c := w.connections[i%len(w.connections)]
		n, last := int64(0), int64(-1)
		for !over.Load() {
			got, err := c.next(ctx)
			if err != nil {
				return err
			}
			if got <= last {
				return fmt.Errorf("got %d after %d", got, last)
			}
			last = got
			n++
		}
		all.Add(n)
		return nil
	})
	return since(start, all.Load()), err
}
