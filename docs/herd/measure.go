package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

const (
	timeout = 40 * time.Second       // of the sessions: as large as servers grant, so that few pings are among the packets
	quiet   = 500 * time.Millisecond // for so long nothing but pings must come before all is taken to be over
)

// A kind is a lock to measure.
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

// measure counts the watch events of hand-overs, with so many waiters at each. Every contender has a session of its own, as processes have.
func measure(ctx context.Context, addr string, k kind, waiters, handovers int) ([]int, error) {
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
	var events []int
	for {
		var hold *lock.Hold
		select {
		case hold = <-got:
		case err := <-failed:
			return nil, err
		}
		before, err := settled(ctx, addr, waiters)
		if err != nil {
			return nil, err
		}
		if err := hold.UnlockWait(ctx); err != nil {
			return nil, err
		}
		after, err := settled(ctx, addr, waiters-1)
		if err != nil {
			return nil, err
		}
		events = append(events, after.events-before.events)
		if len(events) == handovers {
			return events, nil
		}
		if err := join(); err != nil { // in the place of the one that has the lock now
			return nil, err
		}
	}
}

// A reading is how many watch events the server has sent, and how many watches are set.
type reading struct{ events, watches int }

// sums are ZooKeeper's counts of the watches that it has fired, by what happened to the node. Its counts of packets are of no use here: asking
// for them changes them, by how many pieces the answer is sent in.
var sums = []string{
	"zk_sum_node_created_watch_count", "zk_sum_node_deleted_watch_count", "zk_sum_node_changed_watch_count", "zk_sum_node_children_watch_count",
}

// settled waits until so many watches are set and nothing happens any more but pings, and returns the reading.
//
// The holder may watch its own node besides, and those in a line do, so there may be more watches.
func settled(ctx context.Context, addr string, watches int) (reading, error) {
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

// read asks the server for its counters with the word mntr.
func read(ctx context.Context, addr string) (reading, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return reading{}, err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "mntr"); err != nil {
		return reading{}, err
	}
	text, err := io.ReadAll(conn)
	if err != nil {
		return reading{}, err
	}
	values := map[string]int{}
	for row := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSpace(row), "\t")
		if n, err := strconv.Atoi(value); err == nil {
			values[key] = n
		}
	}
	if values["zk_packets_sent"] == 0 && len(values) < 10 {
		return reading{}, fmt.Errorf("%s does not tell its counters: %.80q", addr, text)
	}
	r := reading{watches: values["zk_watch_count"]}
	if _, counts := values[sums[0]]; !counts {
		// The embedded server: what it has sent beyond an answer for each request, when none is missing.
		r.events = values["zk_packets_sent"] - values["zk_packets_received"]
	}
	for _, key := range sums {
		r.events += values[key]
	}
	return r, nil
}

func median(list []int) int {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}
