package main

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/metrics"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
)

// What a plan may have for its hooks; by default there are none.
const (
	idleHooks   = "idle"    // that do nothing
	withMetrics = "metrics" // those of package metrics
)

// Observers are the hooks of one client and of what it is used for.
type observers struct {
	zk    zk.Hooks
	lock  lock.Hooks
	queue queue.Hooks
}

// observers returns new hooks. Each client needs its own.
func (p *plan) observers() (observers, error) {
	switch p.hooks {
	case "":
		return observers{}, nil
	case idleHooks:
		return idle(), nil
	case withMetrics:
		m, err := metrics.New(metrics.Config{Registerer: prometheus.NewRegistry()})
		if err != nil {
			return observers{}, err
		}
		return observers{m.ZK(), m.Lock(), m.Queue()}, nil
	default:
		return observers{}, fmt.Errorf("there are no hooks %q", p.hooks)
	}
}

// idle returns hooks that do nothing, for all that metrics count: what is left is the cost of being called.
func idle() observers {
	return observers{
		zk.Hooks{
			Request: func(context.Context, zk.RequestDone) {},
			Proof:   func(zk.ProofDone) {},
			Certain: func(time.Time) {},
		},
		lock.Hooks{
			Enqueued: func(context.Context, lock.Event) {},
			Acquired: func(context.Context, lock.Event) {},
			Failed:   func(context.Context, lock.Event) {},
			Released: func(lock.Event) {},
			Lost:     func(lock.Event) {},
			Deadlock: func(lock.Event) {},
		},
		queue.Hooks{
			Put:     func(context.Context, string, int) {},
			Claimed: func(context.Context, *queue.Item) {},
			Ended:   func(context.Context, *queue.Item, queue.ItemEnd) {},
		},
	}
}
