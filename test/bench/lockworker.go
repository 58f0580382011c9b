package main

import (
	"context"
	"fmt"
	"runtime"

	"github.com/seed-a3166700/turnstile/internal/measure"
)

// A connection makes lockers.
type connection interface {
	locker(path string) (measure.Locker, error)
	close()
}

// An opener connects to the plan's server.
type opener[T any] func(ctx context.Context, p *plan) (T, error)

// kinds are the contenders that are written in Go.
var kinds = map[string]opener[connection]{
	kindTurnstile:   openTurnstile,
	kindNodes:       openNodes,
	kindGoZooKeeper: openGoZooKeeper,
	kindEtcd:        openEtcd,
	kindRedsync:     openRedsync,
	kindRedislock:   openRedislock,
}

// A lockWorker is the worker of a contender with locks.
type lockWorker struct {
	plan        *plan
	connections []connection
	lockers     []measure.Locker
	waiters     *waiters
}

func newLockWorker(ctx context.Context, p *plan, open opener[connection]) (*lockWorker, error) {
	connections, err := connectAll(ctx, p, open)
	if err != nil {
		return nil, err
	}
	w := &lockWorker{plan: p, connections: connections}
	for i := range p.lockers {
		l, err := w.locker(i, p.path(i))
		if err != nil {
			w.close()
			return nil, err
		}
		w.lockers = append(w.lockers, l)
	}
	return w, nil
}

func (w *lockWorker) locker(i int, path string) (measure.Locker, error) {
	return w.connections[i%len(w.connections)].locker(path)
}

func (w *lockWorker) close() { disconnect(w.connections) }

// connectAll opens the plan's connections, all of them or none.
func connectAll[T interface{ close() }](ctx context.Context, p *plan, open opener[T]) ([]T, error) {
	var connections []T
	for range p.clients {
		c, err := open(ctx, p)
		if err != nil {
			disconnect(connections)
			return nil, err
		}
		connections = append(connections, c)
	}
	return connections, nil
}

func disconnect[T interface{ close() }](connections []T) {
	for _, c := range connections {
		c.close()
	}
}

func (w *lockWorker) obey(ctx context.Context, order string, n measure.Numbers) (measure.Answer, error) {
	switch order {
	case "run", "trace":
		return measure.Run(ctx, w.lockers, n.Millis(0), order == "trace")
	case "stand":
		w.waiters = newWaiters(n[0])
		return measure.Answer{}, w.waiters.start(ctx, w)
	case "step":
		return w.waiters.step()
	case "drain":
		return w.waiters.drain()
	case "memory":
		return memory(), nil
	default:
		return measure.Answer{}, fmt.Errorf("unknown order %q", order)
	}
}

// memory returns the live bytes of heap and stacks, and the number of goroutines.
func memory() measure.Answer {
	runtime.GC()
	runtime.GC() // what finalizers and pools held in the first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return measure.Answer{Figures: []int64{int64(m.HeapAlloc + m.StackInuse), int64(runtime.NumGoroutine())}}
}
