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
	root    string
	clients []*zk.Client
	parties []func(context.Context) error // does one round each

	// Of a gathering.
	members []*barrier.Member
	missing chan struct{}
	entered chan error
}

func newBarrierWorker(ctx context.Context, p *plan, kind string) (worker, error) {
	w := &barrierWorker{root: p.root}
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
	start := time.Now()
	answer := func(err error) (measure.Answer, error) {
		return measure.Answer{Figures: []int64{int64(time.Since(start))}}, err
	}
	switch order {
	case "meet":
		err := w.each(func(i int) error {
			for range n[0] {
				if err := w.parties[i](ctx); err != nil {
					return err
				}
			}
			return nil
		})
		return measure.Answer{Figures: []int64{int64(n[0]), int64(time.Since(start))}}, err
	case "gather":
		return answer(w.gather(ctx))
	case "enter":
		w.missing <- struct{}{}
		return answer(<-w.entered)
	case "leave":
		return answer(w.each(func(i int) error { return w.members[i].Leave(ctx) }))
	default:
		return measure.Answer{}, fmt.Errorf("unknown order %q", order)
	}
}

// each calls f for all parties at once, and waits.
func (w *barrierWorker) each(f func(i int) error) error {
	errs := make([]error, len(w.clients))
	var all sync.WaitGroup
	for i := range w.clients {
		all.Go(func() { errs[i] = f(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// gather lets all parties but the first come. The first comes when told by missing; entered then says that all are
// inside.
func (w *barrierWorker) gather(ctx context.Context) error {
	w.members, w.missing, w.entered = make([]*barrier.Member, len(w.clients)), make(chan struct{}), make(chan error, 1)
	go func() {
		w.entered <- w.each(func(i int) error {
			d, err := barrier.NewDouble(w.clients[i], w.root, len(w.clients), barrier.Config{})
			if err != nil {
				return err
			}
			if i == 0 {
				<-w.missing
			}
			w.members[i], err = d.Enter(ctx)
			return err
		})
	}()
	for {
		dir, _, err := w.clients[0].Exists(ctx, w.root)
		if err != nil || int(dir.NumChildren) == len(w.clients)-1 {
			return err
		}
		if err := wait(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}
