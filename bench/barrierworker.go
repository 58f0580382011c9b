package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/barrier"
	"github.com/seed-a3166700/turnstile/internal/measure"
	"github.com/seed-a3166700/turnstile/zk"
)

// The contenders with barriers that are written in Go.
const (
	kindDouble = "double"
	kindRounds = "rounds"
)

// meeters return what does one round of a party: it enters and leaves, or arrives.
var meeters = map[string]func(ctx context.Context, client *zk.Client, p *plan) (func(context.Context) error, error){
	kindDouble: func(_ context.Context, client *zk.Client, p *plan) (func(context.Context) error, error) {
		d, err := barrier.NewDouble(client, p.root, p.locks, barrier.Config{})
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) error {
			m, err := d.Enter(ctx)
			if err != nil {
				return err
			}
			return m.Leave(ctx)
		}, nil
	},
	kindRounds: func(ctx context.Context, client *zk.Client, p *plan) (func(context.Context) error, error) {
		r, err := barrier.NewRounds(client, p.root, barrier.RoundsConfig{Parties: p.locks})
		if err != nil {
			return nil, err
		}
		party, err := r.Join(ctx)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) error {
			_, err := party.Arrive(ctx)
			return err
		}, nil
	},
}

// A barrierWorker is a worker with one party for each connection. The plan's locks are the number of all parties.
type barrierWorker struct {
	clients []*zk.Client
	parties []func(context.Context) error
}

func newBarrierWorker(ctx context.Context, p *plan, kind string) (worker, error) {
	w := &barrierWorker{}
	for range p.clients {
		client, _, err := connect(ctx, p.addr)
		if err != nil {
			w.close()
			return nil, err
		}
		w.clients = append(w.clients, client)
		party, err := meeters[kind](ctx, client, p)
		if err != nil {
			w.close()
			return nil, err
		}
		w.parties = append(w.parties, party)
	}
	return w, nil
}

func (w *barrierWorker) close() {
	for _, c := range w.clients {
		_ = c.Close()
	}
}

func (w *barrierWorker) obey(ctx context.Context, order string, n measure.Numbers) (measure.Answer, error) {
	if order != "meet" {
		return measure.Answer{}, fmt.Errorf("unknown order %q", order)
	}
	start := time.Now()
	errs := make([]error, len(w.parties))
	var all sync.WaitGroup
	for i, party := range w.parties {
		all.Go(func() {
			for range n[0] {
				if errs[i] = party(ctx); errs[i] != nil {
					return
				}
			}
		})
	}
	all.Wait()
	return measure.Answer{Figures: []int64{int64(n[0]), int64(time.Since(start))}}, errors.Join(errs...)
}
