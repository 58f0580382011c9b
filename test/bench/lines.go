package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/seed-a3166700/turnstile/internal/measure"
)

// lineLoads are about contenders that wait in line. A round of them takes as long as it takes.
func lineLoads() []load {
	one := load{
		key: "waiters", title: "1,000 waiters of one process", rounds: fewRounds, contenders: waiting(onHosted),
		measure: func(ctx context.Context, b *bench, l *load) ([]row, error) {
			return lines(ctx, b, l, manyWaiters, (*lineCost).everything)
		},
	}
	one.without(kindRedislock, onRedisAOF)
	return []load{
		one,
		{
			key: "sessions", title: "watch events of one release, 1,000 sessions waiting", rounds: fewRounds,
			limit:      limit{exactly, 1},
			contenders: []contender{oneEach(strictly(onZooKeeper)), oneEach(strictly(onHosted))},
			measure: func(ctx context.Context, b *bench, l *load) ([]row, error) {
				return lines(ctx, b, l, manyWaiters, func(s *lineCost) []sample {
					return []sample{{title: l.title, unit: "events", figure: s.events, lessIsMore: true}}
				})
			},
		},
		{
			key: "goroutines", title: "client memory of each of 10,000 waiting goroutines", rounds: fewRounds,
			limit:      limit{atMost, 4096},
			contenders: []contender{subject(onZooKeeper), subject(onHosted)},
			measure: func(ctx context.Context, b *bench, l *load) ([]row, error) {
				return lines(ctx, b, l, manyGoroutines, func(s *lineCost) []sample {
					return []sample{{title: l.title, unit: "bytes", figure: s.clientBytes, lessIsMore: true}}
				})
			},
		},
	}
}

// oneEach gives the holder and every waiter a session of its own.
func oneEach(c contender) contender {
	c.clients = manyWaiters + 1
	return c
}

// A lineCost is what was measured of one line of waiters. What a server does not tell is negative.
type lineCost struct {
	drain       float64 // milliseconds from the first unlock to the last
	step        float64 // microseconds from an unlock to the next one's lock
	clientBytes float64 // for each waiter; likewise the next two
	serverBytes float64
	threads     float64
	events      float64 // watch events of one release
}

func (s *lineCost) everything() []sample {
	n := number(manyWaiters)
	samples := []sample{
		{title: n + " waiters of one process, served one after the other", unit: "ms", figure: s.drain},
		{title: "one release to the next one's lock, " + n + " waiting in one process", unit: "µs", figure: s.step},
		{title: "client memory of each of " + n + " waiters", unit: "bytes", figure: s.clientBytes},
		{title: "goroutines or threads of each of " + n + " waiters", unit: "", figure: s.threads},
		{title: "server memory of each of " + n + " waiters", unit: "bytes", figure: s.serverBytes},
		{title: "watch events of one release, " + n + " waiting", unit: "events", figure: s.events},
	}
	for i := range samples {
		samples[i].lessIsMore = true
	}
	return samples
}

// lines lets n waiters of each contender stand in line and leave, in turns.
func lines(ctx context.Context, b *bench, l *load, n int, read func(*lineCost) []sample) ([]row, error) {
	there, absent := b.available(l)
	var tables [][]row
	for range b.rounds(l) {
		for i, c := range there {
			s, err := b.line(ctx, l, c, n)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.title(), err)
			}
			fmt.Fprintf(b.log, "  %-60s drained in %s ms, step %s µs, %s + %s bytes, %.2f threads, %.0f events\n",
				c.title(), number(s.drain), number(s.step), number(s.clientBytes), number(s.serverBytes),
				s.threads, s.events)
			tables = collect(tables, read(s), len(there), i, c)
		}
	}
	var rows []row
	for _, table := range tables {
		judge(table, l.limit)
		for _, r := range table {
			if measure.Median(r.figures) >= 0 { // otherwise the server does not tell
				rows = append(rows, r)
			}
		}
	}
	return append(rows, absent...), nil
}

// line lets a holder and n waiters stand in line, lets one of them go, and then all.
func (b *bench) line(ctx context.Context, l *load, c contender, n int) (*lineCost, error) {
	t, err := b.teamAt(ctx, l, c, b.root(l))
	if err != nil {
		return nil, err
	}
	defer t.workers.Close()
	before, err := t.memory(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := t.workers[0].Order("stand " + strconv.Itoa(n)); err != nil {
		return nil, err
	}
	expected := n + 1
	if c.shares {
		expected = 1
	}
	if err := t.awaitLine(ctx, expected); err != nil {
		return nil, err
	}
	after, err := t.memory(ctx)
	if err != nil {
		return nil, err
	}
	s := &lineCost{
		clientBytes: (after.client - before.client) / float64(n),
		serverBytes: -1,
		threads:     (after.threads - before.threads) / float64(n),
		events:      -1,
	}
	if err := t.stepAndDrain(ctx, s); err != nil {
		return nil, err
	}
	if t.backend.memory != nil {
		drained, err := t.memory(ctx)
		if err != nil {
			return nil, err
		}
		// Both after these sessions were made and their lock was listed: the rest of the server's memory is the same.
		s.serverBytes = max(0, (after.server-drained.server)/float64(n))
	}
	return s, nil
}

func (t *team) stepAndDrain(ctx context.Context, s *lineCost) error {
	surplus, err := t.surplus(ctx)
	if err != nil {
		return err
	}
	step, err := t.workers[0].Order("step")
	if err != nil {
		return err
	}
	if t.backend.words {
		later, err := t.surplus(ctx)
		if err != nil {
			return err
		}
		s.events = later - surplus
	}
	drain, err := t.workers[0].Order("drain")
	if err != nil {
		return err
	}
	s.step, s.drain = float64(step.Figures[0])/1e3, float64(drain.Figures[0])/1e6
	return nil
}

// A need is the bytes that the clients and the server need, and the goroutines or threads of the clients.
type need struct{ client, threads, server float64 }

func (t *team) memory(ctx context.Context) (need, error) {
	a, err := t.workers[0].Order("memory")
	if err != nil {
		return need{}, err
	}
	n := need{client: float64(a.Figures[0]), threads: float64(a.Figures[1])}
	if t.backend.memory != nil {
		n.server, err = t.backend.memory(ctx)
	}
	return n, err
}

// awaitLine returns when so many contenders stand in the line of the first lock. If the server cannot count them, they
// get a second.
func (t *team) awaitLine(ctx context.Context, want int) error {
	const pause, grace = 20 * time.Millisecond, time.Second
	if t.backend.line == nil || want == 1 {
		return wait(ctx, grace)
	}
	ctx, cancel := context.WithTimeout(ctx, measure.OrderLimit)
	defer cancel()
	for {
		n, err := t.backend.line(ctx, t.plan.path(0))
		if err != nil {
			return err
		}
		if n == want {
			return wait(ctx, grace) // so that the last ones see which one they wait for
		}
		if err := wait(ctx, pause); err != nil {
			return fmt.Errorf("%d stand in line, want %d: %w", n, want, err)
		}
	}
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// surplus is how many more packets the server has sent than received, by its own counters: requests and answers come in
// pairs, so the rest is events. Asking adds to some servers' counters, which the surplus leaves out.
func (t *team) surplus(ctx context.Context) (float64, error) {
	const pause, tries = 50 * time.Millisecond, 200
	if !t.backend.words {
		return 0, nil
	}
	var last, lastAsking float64
	for i := range tries {
		diff, err := unasked(ctx, t.backend.addr)
		if err != nil {
			return 0, err
		}
		again, err := unasked(ctx, t.backend.addr)
		if err != nil {
			return 0, err
		}
		asking := again - diff                       // what a question adds
		at := diff - asking*float64(t.backend.asked) // without the questions so far
		t.backend.asked += 2
		if i > 0 && at == last && asking == lastAsking {
			return at, nil
		}
		last, lastAsking = at, asking
		if err := wait(ctx, pause); err != nil {
			return 0, err
		}
	}
	return 0, errors.New("the server's counters do not come to rest")
}

// unasked returns how many packets the server has sent, less those that it has received.
func unasked(ctx context.Context, addr string) (float64, error) {
	counters, err := measure.Counters(ctx, addr)
	return counters["zk_packets_sent"] - counters["zk_packets_received"], err
}
