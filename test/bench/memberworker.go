package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/seed-a3166700/turnstile/internal/measure"
	"github.com/seed-a3166700/turnstile/member"
	"github.com/seed-a3166700/turnstile/zk"
)

// kindPartitioner is the contender with members that share items. They are written in Go.
const kindPartitioner = "partitioner"

// A memberWorker is a worker with one member. The plan's locks are the number of items.
type memberWorker struct {
	client      *zk.Client
	partitioner *member.Partitioner
	gained      atomic.Int64
	lost        atomic.Int64

	leave context.CancelFunc // nil if it has not joined, or has been told to leave
	run   sync.WaitGroup
	err   error // of the last run; read when that has ended
}

func newMemberWorker(ctx context.Context, p *plan) (worker, error) {
	client, _, err := connect(ctx, p.addr)
	if err != nil {
		return nil, err
	}
	w := &memberWorker{client: client}
	items := make([]string, p.locks)
	for i := range items {
		items[i] = fmt.Sprintf("item-%05d", i)
	}
	w.partitioner, err = member.NewPartitioner(client, p.root, fmt.Sprintf("member-%d", os.Getpid()), items,
		member.PartitionerConfig{Hooks: member.PartitionerHooks{
			Gained: func(*member.Share) { w.gained.Add(1) },
			Lost:   func(string, error, error) { w.lost.Add(1) },
		}})
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	return w, nil
}

func (w *memberWorker) close() {
	w.end()
	w.run.Wait()
	_ = w.client.Close()
}

// end tells the member to leave.
func (w *memberWorker) end() {
	if w.leave != nil {
		w.leave()
		w.leave = nil
	}
}

func (w *memberWorker) obey(ctx context.Context, order string, _ measure.Numbers) (measure.Answer, error) {
	switch order {
	case "join":
		w.run.Wait()
		if w.err != nil && !errors.Is(w.err, context.Canceled) {
			return measure.Answer{}, w.err
		}
		var within context.Context
		within, w.leave = context.WithCancel(ctx)
		w.run.Go(func() { w.err = w.partitioner.Run(within, atWork) })
		return measure.Answer{}, nil
	case "leave":
		w.end()
		return measure.Answer{}, nil
	case "tally":
		return measure.Answer{Figures: []int64{w.gained.Load(), w.lost.Load()}}, nil
	default:
		return measure.Answer{}, fmt.Errorf("unknown order %q", order)
	}
}

// atWork works on an item until that must go.
func atWork(ctx context.Context, _ *member.Share) error {
	<-ctx.Done()
	return nil
}
