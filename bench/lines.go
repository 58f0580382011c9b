package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// crowdLoads are about those who stand in line. A round of them takes as long as it takes.
func crowdLoads() []load {
	crowd := load{
		key: "crowd", title: "1,000 waiters of one process", rounds: fewRounds, contenders: waiting(onHosted),
		measure: func(ctx context.Context, b *bench, l *load) ([]row, error) {
			return crowds(ctx, b, l, manyWaiters, (*standing).everything)
		},
	}
	crowd.without(kindRedislock, onRedisAOF)
	return []load{
		crowd,
		{
			key: "sessions", title: "watch events of one release, 1,000 sessions waiting", rounds: fewRounds, limit: limit{exactly, 1},
			contenders: []contender{
				oneEach(strictly(onZooKeeper), manyWaiters+1), oneEach(strictly(onHosted), manyWaiters+1),
			},
			measure: func(ctx context.Context, b *bench, l *load) ([]row, error) {
				return crowds(ctx, b, l, manyWaiters, func(s *standing) []sample {
					return []sample{{title: l.title, unit: "events", figure: s.events, lessIsMore: true}}
				})
			},
		},
		{
			key: "goroutines", title: "client memory of each of 10,000 waiting goroutines", rounds: fewRounds, limit: limit{atMost, 4096},
			contenders: []contender{subject(onZooKeeper), subject(onHosted)},
			measure: func(ctx context.Context, b *bench, l *load) ([]row, error) {
				return crowds(ctx, b, l, manyGoroutines, func(s *standing) []sample {
					return []sample{{title: l.title, unit: "bytes", figure: s.clientBytes, lessIsMore: true}}
				})
			},
		},
	}
}

// oneEach gives every waiter a session of its own.
func oneEach(c contender, clients int) contender {
	c.clients = clients
	return c
}

// A standing is what was found out about one crowd. What a server does not tell is negative.
type standing struct {
	drain       float64 // milliseconds from the first unlock to the last
	step        float64 // microseconds from an unlock to the next one's lock
	clientBytes float64 // for each waiter; likewise the next two
	serverBytes float64
	threads     float64
	events      float64 // watch events of one release
}

func (s *standing) everything() []sample {
	n := number(manyWaiters)
	samples := []sample{
		{title: n + " waiters of one process, served one after the other", unit: "ms", figure: s.drain, lessIsMore: true},
		{title: "one release to the next one's lock, " + n + " waiting in one process", unit: "µs", figure: s.step, lessIsMore: true},
		{title: "client memory of each of " + n + " waiters", unit: "bytes", figure: s.clientBytes, lessIsMore: true},
		{title: "goroutines or threads of each of " + n + " waiters", unit: "", figure: s.threads, lessIsMore: true},
		{title: "server memory of each of " + n + " waiters", unit: "bytes", figure: s.serverBytes, lessIsMore: true},
		{title: "watch events of one release, " + n + " waiting", unit: "events", figure: s.events, lessIsMore: true},
	}
	return samples
}

// crowds lets crowds of all contenders stand and go, in turns.
func crowds(ctx context.Context, b *bench, l *load, n int, read func(*standing) []sample) ([]row, error) {
	there, absent := b.available(l)
	var tables [][]row
	for range b.rounds(l) {
		for i, c := range there {
			s, err := b.crowd(ctx, l, c, n)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.title(), err)
			}
			fmt.Fprintf(b.log, "  %-60s drained in %s ms, step %s µs, %s + %s bytes, %.2f threads, %.0f events\n", c.title(),
				number(s.drain), number(s.step), number(s.clientBytes), number(s.serverBytes), s.threads, s.events)
			tables = collect(tables, read(s), len(there), i, c)
		}
	}
	var rows []row
	for _, table := range tables {
		judge(table, l.limit)
		for _, r := range table {
			if median(r.figures) >= 0 { // else the server does not tell
				rows = append(rows, r)
			}
		}
	}
	return append(rows, absent...), nil
}

// crowd lets a holder and n waiters stand, one of them go, and then all.
func (b *bench) crowd(ctx context.Context, l *load, c contender, n int) (*standing, error) {
	t, err := b.team(ctx, l, c)
	if err != nil {
		return nil, err
	}
	defer t.crew.dismiss()
	worker := t.crew[0]
	before, err := t.memory(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := worker.order("stand " + strconv.Itoa(n)); err != nil {
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
	s := &standing{
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
		// Both after this crew's sessions were made and its lock was listed: the rest of the server's memory has come to rest.
		s.serverBytes = max(0, (after.server-drained.server)/float64(n))
	}
	return s, nil
}

func (t *team) stepAndDrain(ctx context.Context, s *standing) error {
	worker := t.crew[0]
	surplus, err := t.surplus(ctx)
	if err != nil {
		return err
	}
	step, err := worker.order("step")
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
	drain, err := worker.order("drain")
	if err != nil {
		return err
	}
	s.step, s.drain = float64(step.figures[0])/1e3, float64(drain.figures[0])/1e6
	return nil
}

// A need is what a crowd's two sides take, in bytes, and the goroutines or threads of the clients.
type need struct{ client, threads, server float64 }

func (t *team) memory(ctx context.Context) (need, error) {
	a, err := t.crew[0].order("memory")
	if err != nil {
		return need{}, err
	}
	n := need{client: float64(a.figures[0]), threads: float64(a.figures[1])}
	if t.backend.memory != nil {
		n.server, err = t.backend.memory(ctx)
	}
	return n, err
}

// awaitLine returns when so many stand in the line of the first lock. Those whom no server can count get a second.
func (t *team) awaitLine(ctx context.Context, want int) error {
	const pause, grace = 20 * time.Millisecond, time.Second
	if t.backend.line == nil || want == 1 {
		return wait(ctx, grace)
	}
	ctx, cancel := context.WithTimeout(ctx, orderLimit)
	defer cancel()
	for {
		n, err := t.backend.line(ctx, t.plan.path(0))
		if err != nil {
			return err
		}
		if n == want {
			return wait(ctx, grace) // so that the last ones see whom they wait for
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

// surplus is how many packets more than it has received the server has sent, by its own counters: requests and answers come in pairs,
// so what is more is events. Asking adds to some servers' counters, which the surplus leaves out.
func (t *team) surplus(ctx context.Context) (float64, error) {
	const pause, tries = 50 * time.Millisecond, 200
	if !t.backend.words {
		return 0, nil
	}
	var last, lastAsking float64
	for i := range tries {
		diff, err := packets(ctx, t.backend.addr)
		if err != nil {
			return 0, err
		}
		again, err := packets(ctx, t.backend.addr)
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

// packets returns how many packets the server has sent, less those that it has received.
func packets(ctx context.Context, addr string) (float64, error) {
	sent, received, err := packetCounts(ctx, addr)
	return sent - received, err
}

// packetCounts returns how many packets the server has sent, and how many it has received.
func packetCounts(ctx context.Context, addr string) (sent, received float64, err error) {
	text, err := word(ctx, addr, "mntr")
	if err != nil {
		return 0, 0, err
	}
	found := 0
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "\t")
		var to *float64
		switch key {
		case "zk_packets_sent":
			to = &sent
		case "zk_packets_received":
			to = &received
		default:
			continue
		}
		if *to, err = strconv.ParseFloat(value, 64); err != nil {
			return 0, 0, fmt.Errorf("mntr: %s: %w", key, err)
		}
		found++
	}
	if found != 2 {
		return 0, 0, fmt.Errorf("mntr: no packet counters in %q", text)
	}
	return sent, received, nil
}
