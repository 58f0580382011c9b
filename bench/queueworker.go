package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
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
var queueKinds = map[string]func(ctx context.Context, p *plan) (tasks, error){
	kindTurnstileQueue: openTurnstileQueue,
	kindRedisList:      openRedisList,
}

// A shift is what puts and takes in one worker process. The first connection puts, the last one takes.
type shift struct {
	plan        *plan
	connections []tasks
	numbering
}

func newShift(ctx context.Context, p *plan, open func(context.Context, *plan) (tasks, error)) (*shift, error) {
	connections, err := connectAll(ctx, p, open)
	if err != nil {
		return nil, err
	}
	return &shift{plan: p, connections: connections}, nil
}

func (s *shift) close() { disconnect(s.connections) }

func (s *shift) producer() tasks { return s.connections[0] }
func (s *shift) consumer() tasks { return s.connections[len(s.connections)-1] }

func (s *shift) obey(ctx context.Context, order string, n numbers, out io.Writer) ([]int64, error) {
	switch order {
	case "put":
		return s.put(ctx, n.millis(0), 1)
	case "batch":
		return s.put(ctx, n.millis(0), batchItems)
	case "take":
		return s.take(ctx, n[0], n.millis(1))
	case "consume":
		return s.consume(ctx, n.millis(0))
	case "relay":
		return s.relay(ctx, n.millis(0), out)
	case "memory":
		return memory(), nil
	default:
		return nil, fmt.Errorf("unknown order %q", order)
	}
}

func (s *shift) put(ctx context.Context, d time.Duration, batch int) ([]int64, error) {
	var n int64
	start := time.Now()
	for time.Since(start) < d {
		if err := s.producer().put(ctx, s.bodies(batch)); err != nil {
			return nil, err
		}
		n += int64(batch)
	}
	return []int64{n, time.Since(start).Nanoseconds()}, nil
}

// take lets everybody take and acknowledge items, n in all, or fewer if the time is over before.
func (s *shift) take(ctx context.Context, n int, d time.Duration) ([]int64, error) {
	var (
		group       sync.WaitGroup
		over        atomic.Bool
		begun, done atomic.Int64
		errs        = make([]error, s.plan.lockers)
	)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	start := time.Now()
	timer := time.AfterFunc(d, func() { over.Store(true) })
	defer timer.Stop()
	for i := range errs {
		group.Go(func() {
			for !over.Load() && begun.Add(1) <= int64(n) {
				if errs[i] = finish(ctx, s.consumer()); errs[i] != nil {
					cancel()
					return
				}
				done.Add(1)
			}
		})
	}
	group.Wait()
	elapsed := time.Since(start)
	return []int64{done.Load(), elapsed.Nanoseconds()}, errors.Join(errs...)
}

// finish takes an item and acknowledges it.
func finish(ctx context.Context, t tasks) error {
	done, err := t.take(ctx)
	if err != nil {
		return err
	}
	return done(ctx)
}

// relay hands one item after the other from a producer to a consumer that waits for it.
func (s *shift) relay(ctx context.Context, d time.Duration, out io.Writer) ([]int64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		over  atomic.Bool
		taken = make(chan int64)
		err   error // of the consumer; to be read when taken is closed
		n     int64
	)
	go func() { // ends with the item that is put when the time is over
		defer close(taken)
		for {
			var at int64
			if at, err = s.receive(ctx); err != nil || over.Load() {
				return
			}
			taken <- at
		}
	}()
	start := time.Now()
	for time.Since(start) < d {
		began := time.Now().UnixNano()
		if err := s.producer().put(ctx, s.bodies(1)); err != nil {
			return nil, err
		}
		at, ok := <-taken
		if !ok {
			return nil, err
		}
		if _, err := fmt.Fprintf(out, "t %d %d %d\n", began, at, at); err != nil {
			return nil, err
		}
		n++
	}
	elapsed := time.Since(start)
	over.Store(true)
	if err := s.producer().put(ctx, s.bodies(1)); err != nil {
		return nil, err
	}
	<-taken
	return []int64{n, elapsed.Nanoseconds()}, err
}

// receive takes an item, acknowledges it, and returns when it had it.
func (s *shift) receive(ctx context.Context) (int64, error) {
	done, err := s.consumer().take(ctx)
	if err != nil {
		return 0, err
	}
	at := time.Now().UnixNano()
	return at, done(ctx)
}
