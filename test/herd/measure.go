package main

// One measurement: waiters, a release, and the watch events that follow.

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-a3166700/turnstile/internal/measure"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

const (
	timeout = 40 * time.Second       // of the sessions: the longest that servers grant, for few pings among the packets
	quiet   = 500 * time.Millisecond // nothing has changed for so long when all is over
)

// A kind is a kind of lock to measure.
type kind struct {
	name string
	open func(client *zk.Client, path string) (locker, error)
}

type locker interface {
	Lock(ctx context.Context) (*lock.Hold, error)
}

const simple, line = "simple lock", "line (Mutex)"

var locks = []kind{
	{simple, func(c *zk.Client, path string) (locker, error) { return lock.NewSimple(c, path, lock.SimpleConfig{}) }},
	{line, func(c *zk.Client, path string) (locker, error) { return lock.NewMutex(c, path, lock.Config{}) }},
}

// countEvents counts the watch events of each hand-over, with so many waiters. Every contender has a session of its
// own, as a process has.
func countEvents(ctx context.Context, addr string, k kind, waiters, handovers int) ([]float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	path := fmt.Sprintf("/herd/%d/%d", time.Now().UnixNano(), waiters)
	got, failed := make(chan *lock.Hold, 1), make(chan error, waiters+handovers+1)
	join := func() error {
		client, err := zk.Open(ctx, zk.Config{Servers: addr, Timeout: timeout})
		if err != nil {
			return err
		}
		context.AfterFunc(ctx, func() { _ = client.Close() })
		l, err := k.open(client, path)
		if err != nil {
			return err
		}
		if _, err := client.Session(ctx); err != nil {
			return err
		}
		go func() {
			hold, err := l.Lock(ctx)
			if err != nil {
				failed <- err
				return
			}
			got <- hold
		}()
		return nil
	}
	for range waiters + 1 {
		if err := join(); err != nil {
			return nil, err
		}
	}
	var events []float64
	for {
		var hold *lock.Hold
		select {
		case hold = <-got:
		case err := <-failed:
			return nil, err
		}
		before, err := stable(ctx, addr, waiters)
		if err != nil {
			return nil, err
		}
		if err := hold.UnlockWait(ctx); err != nil {
			return nil, err
		}
		after, err := stable(ctx, addr, waiters-1)
		if err != nil {
			return nil, err
		}
		events = append(events, float64(after.events-before.events))
		if len(events) == handovers {
			return events, nil
		}
		if err := join(); err != nil { // instead of the waiter that has the lock now
			return nil, err
		}
	}
}

// A reading is how many watch events the server has sent, and how many watches are set.
type reading struct{ events, watches int }

// sums are ZooKeeper's counts of the watches that it has fired, by what happened to the node. Its counts of packets are
// of no use here: reading them changes them, by as many as the answer is sent in.
var sums = []string{
	"zk_sum_node_created_watch_count", "zk_sum_node_deleted_watch_count", "zk_sum_node_changed_watch_count",
	"zk_sum_node_children_watch_count",
}

// stable waits until at least so many watches are set and nothing happens any more but pings, and returns the reading.
// There may be more watches: contenders in a line also watch their own node, and a holder may.
func stable(ctx context.Context, addr string, watches int) (reading, error) {
	last, since := reading{}, time.Now()
	for {
		now, err := read(ctx, addr)
		if err != nil {
			return now, err
		}
		if now != last || now.watches < watches {
			since = time.Now()
		}
		last = now
		if time.Since(since) >= quiet {
			return now, nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return now, context.Cause(ctx)
		}
	}
}

// read reads the server's counters.
func read(ctx context.Context, addr string) (reading, error) {
	counters, err := measure.Counters(ctx, addr)
	if err != nil {
		return reading{}, err
	}
	events := 0.0
	if _, counts := counters[sums[0]]; !counts {
		// The embedded server: what it has sent beyond an answer for each request, when no answer is missing.
		events = counters["zk_packets_sent"] - counters["zk_packets_received"]
	}
	for _, name := range sums {
		events += counters[name]
	}
	return reading{int(events), int(counters["zk_watch_count"])}, nil
}
