package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// A locker is one goroutine's way to a lock. It is used by one goroutine at a time.
type locker interface {
	lock(ctx context.Context) error
	unlock(ctx context.Context) error
	settle(ctx context.Context) error // waits for what the last unlock left under way
}

// A connection makes lockers.
type connection interface {
	locker(path string) (locker, error)
	close()
}

// kinds are the contenders that are written in Go.
var kinds = map[string]func(ctx context.Context, p *plan) (connection, error){
	kindTurnstile:   openTurnstile,
	kindNodes:       openNodes,
	kindGoZooKeeper: openGoZooKeeper,
	kindEtcd:        openEtcd,
	kindRedsync:     openRedsync,
	kindRedislock:   openRedislock,
}

// A gang is what locks in one worker process.
type gang struct {
	plan        *plan
	connections []connection
	lockers     []locker
	crowd       *crowd
}

func newGang(ctx context.Context, p *plan, open func(context.Context, *plan) (connection, error)) (*gang, error) {
	connections, err := connectAll(ctx, p, open)
	if err != nil {
		return nil, err
	}
	g := &gang{plan: p, connections: connections}
	for i := range p.lockers {
		l, err := g.locker(i, p.path(i))
		if err != nil {
			g.close()
			return nil, err
		}
		g.lockers = append(g.lockers, l)
	}
	return g, nil
}

func (g *gang) locker(i int, path string) (locker, error) {
	return g.connections[i%len(g.connections)].locker(path)
}

func (g *gang) close() { disconnect(g.connections) }

// connectAll opens the plan's connections, all of them or none.
func connectAll[T interface{ close() }](ctx context.Context, p *plan, open func(context.Context, *plan) (T, error)) ([]T, error) {
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

func (g *gang) obey(ctx context.Context, order string, n numbers, out io.Writer) ([]int64, error) {
	switch order {
	case "run", "trace":
		return g.run(ctx, n.millis(0), order == "trace", out)
	case "stand":
		g.crowd = newCrowd(n[0])
		return nil, g.crowd.stand(ctx, g)
	case "step":
		took, err := g.crowd.step()
		return []int64{took.Nanoseconds()}, err
	case "drain":
		took, err := g.crowd.drain()
		return []int64{took.Nanoseconds()}, err
	case "memory":
		return memory(), nil
	default:
		return nil, fmt.Errorf("unknown order %q", order)
	}
}

// memory returns the live bytes of heap and stacks, and the number of goroutines.
func memory() []int64 {
	runtime.GC()
	runtime.GC() // what finalizers and pools held in the first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return []int64{int64(m.HeapAlloc + m.StackInuse), int64(runtime.NumGoroutine())}
}

// A cycle is when a locker asked for the lock, had it, and began to give it back, in nanoseconds of the system's clock.
type cycle struct{ began, locked, unlocked int64 }

// run cycles in all lockers until d is over and what the last ones left under way is done, and returns how many cycles that were
// and how long they took.
func (g *gang) run(ctx context.Context, d time.Duration, trace bool, out io.Writer) ([]int64, error) {
	var (
		group  sync.WaitGroup
		over   atomic.Bool
		counts = make([]int64, len(g.lockers))
		errs   = make([]error, len(g.lockers))
		traces = make([][]cycle, len(g.lockers))
	)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	start := time.Now()
	timer := time.AfterFunc(d, func() { over.Store(true) })
	defer timer.Stop()
	for i, l := range g.lockers {
		group.Go(func() {
			if trace {
				traces[i], errs[i] = traced(ctx, l, &over)
				counts[i] = int64(len(traces[i]))
			} else {
				counts[i], errs[i] = counted(ctx, l, &over)
			}
			if errs[i] == nil {
				errs[i] = l.settle(ctx)
			}
			if errs[i] != nil {
				cancel()
			}
		})
	}
	group.Wait()
	elapsed := time.Since(start)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var sum int64
	for i, n := range counts {
		sum += n
		for _, c := range traces[i] {
			if _, err := fmt.Fprintf(out, "t %d %d %d\n", c.began, c.locked, c.unlocked); err != nil {
				return nil, err
			}
		}
	}
	return []int64{sum, elapsed.Nanoseconds()}, nil
}

// counted is the loop that is measured: nothing but locking and unlocking, a million times a second where that is promised.
func counted(ctx context.Context, l locker, over *atomic.Bool) (n int64, err error) {
	for !over.Load() {
		if err := l.lock(ctx); err != nil {
			return n, err
		}
		if err := l.unlock(ctx); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func traced(ctx context.Context, l locker, over *atomic.Bool) (cycles []cycle, err error) {
	for !over.Load() {
		c := cycle{began: time.Now().UnixNano()}
		if err := l.lock(ctx); err != nil {
			return cycles, err
		}
		c.locked = time.Now().UnixNano()
		c.unlocked = time.Now().UnixNano()
		if err := l.unlock(ctx); err != nil {
			return cycles, err
		}
		cycles = append(cycles, c)
	}
	return cycles, nil
}
