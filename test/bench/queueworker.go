package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-a3166700/turnstile/internal/measure"
)

// The items of all loads, and how many go into a batch.
const (
	itemBytes  = 100
	batchItems = 1000
)

// numbering makes items that differ, as often as it is called.
type numbering struct{ made int64 }

func (m *numbering) bodies(n int) [][]byte {
	all := make([][]byte, n)
	for i := range all {
		m.made++
		all[i] = fmt.Appendf(nil, "%0*d", itemBytes, m.made)
	}
	return all
}

// A tasks is one connection's way to a queue. Its methods may be called from several goroutines.
type tasks interface {
	put(ctx context.Context, bodies [][]byte) error
	take(ctx context.Context) (done func(ctx context.Context) error, err error) // waits for an item
	close()
}

// queueKinds are the contenders with queues that are written in Go.
var queueKinds = map[string]opener[tasks]{
	kindTurnstileQueue: openTurnstileQueue,
	kindRedisList:      openRedisList,
}

// A queueWorker is the worker of a contender with queues. Its first connection puts, and its last one takes.
type queueWorker struct {
	plan        *plan
	connections []tasks
	numbering
}

func newQueueWorker(ctx context.Context, p *plan, open opener[tasks]) (*queueWorker, error) {
	connections, err := connectAll(ctx, p, open)
	if err != nil {
		return nil, err
	}
	return &queueWorker{plan: p, connections: connections}, nil
}

func (w *queueWorker) close() { disconnect(w.connections) }

func (w *queueWorker) producer() tasks { return w.connections[0] }
func (w *queueWorker) consumer() tasks { return w.connections[len(w.connections)-1] }

func (w *queueWorker) obey(ctx context.Context, order string, n measure.Numbers) (measure.Answer, error) {
	switch order {
	case "put":
		return w.put(ctx, n.Millis(0), 1)
	case "batch":
		return w.put(ctx, n.Millis(0), batchItems)
	case "take":
		return w.take(ctx, n[0], n.Millis(1))
	case serveOrder:
		return w.take(ctx, math.MaxInt, n.Millis(0))
	case "consume":
		return w.consume(ctx, n.Millis(0))
	case "relay":
		return w.relay(ctx, n.Millis(0))
	case "memory":
		return memory(), nil
	default:
		return measure.Answer{}, fmt.Errorf("unknown order %q", order)
	}
}

// since is the answer of so many items since start.
func since(start time.Time, items int64) measure.Answer {
	return measure.Answer{Figures: []int64{items, time.Since(start).Nanoseconds()}}
}

func (w *queueWorker) put(ctx context.Context, d time.Duration, batch int) (measure.Answer, error) {
	var n int64
	start := time.Now()
	for time.Since(start) < d {
		if err := w.producer().put(ctx, w.bodies(batch)); err != nil {
			return measure.Answer{}, err
		}
		n += int64(batch)
	}
	return since(start, n), nil
}

// take takes and acknowledges n items in as many goroutines as the plan has lockers, or fewer items if the time is over
// before.
func (w *queueWorker) take(ctx context.Context, n int, d time.Duration) (measure.Answer, error) {
	start := time.Now()
	var begun, done atomic.Int64
	err := together(ctx, w.plan.lockers, func(ctx context.Context, _ int) error {
		for time.Since(start) < d && begun.Add(1) <= int64(n) {
			if err := finish(ctx, w.consumer()); err != nil {
				return err
			}
			done.Add(1)
		}
		return nil
	})
	return since(start, done.Load()), err
}

// finish takes an item and acknowledges it.
func finish(ctx context.Context, t tasks) error {
	done, err := t.take(ctx)
	if err != nil {
		return err
	}
	return done(ctx)
}

// consume takes items on every connection until d is over, works on each for handlerTime, and acknowledges it.
func (w *queueWorker) consume(ctx context.Context, d time.Duration) (measure.Answer, error) {
	start := time.Now()
	until, cancel := context.WithDeadline(ctx, start.Add(d))
	defer cancel()
	var items atomic.Int64
	err := together(ctx, len(w.connections), func(ctx context.Context, i int) error {
		for until.Err() == nil {
			done, err := w.connections[i].take(until)
			if err == nil {
				time.Sleep(handlerTime)
				err = done(ctx)
			} else if until.Err() != nil {
				return nil //nolint:nilerr // the time is over
			}
			if err != nil {
				return err
			}
			items.Add(1)
		}
		return nil
	})
	return since(start, items.Load()), err
}

// together calls f in n goroutines. If one fails, the context of the others ends.
func together(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var group sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		group.Go(func() {
			if errs[i] = f(ctx, i); errs[i] != nil {
				cancel()
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// relay hands one item after the other from a producer to a consumer that waits for it.
func (w *queueWorker) relay(ctx context.Context, d time.Duration) (measure.Answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		over   atomic.Bool
		taken  = make(chan int64)
		err    error // of the consumer; read when taken is closed
		cycles []measure.Cycle
	)
	go func() { // ends with the item that is put when the time is over
		defer close(taken)
		for {
			var at int64
			if at, err = w.receive(ctx); err != nil || over.Load() {
				return
			}
			taken <- at
		}
	}()
	start := time.Now()
	for time.Since(start) < d {
		began := time.Now().UnixNano()
		if err := w.producer().put(ctx, w.bodies(1)); err != nil {
			return measure.Answer{}, err
		}
		at, ok := <-taken
		if !ok {
			return measure.Answer{}, err
		}
		cycles = append(cycles, measure.Cycle{Began: began, Locked: at, Unlocked: at})
	}
	a := since(start, int64(len(cycles)))
	a.Cycles = cycles
	over.Store(true)
	if err := w.producer().put(ctx, w.bodies(1)); err != nil {
		return measure.Answer{}, err
	}
	<-taken
	return a, err
}

// receive takes an item, acknowledges it, and returns when it had it.
func (w *queueWorker) receive(ctx context.Context) (int64, error) {
	done, err := w.consumer().take(ctx)
	if err != nil {
		return 0, err
	}
	at := time.Now().UnixNano()
	return at, done(ctx)
}
