package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Consumers work on an item for handlerTime, and are as many in each of consumerProcesses.
const (
	handlerTime       = 20 * time.Millisecond
	consumerProcesses = 8
)

// serverConsumers is how many consumers two cores must be enough for.
const serverConsumers = 128

// consumerRound is how many times as long as others a round of these loads is: consumers that begin learn how many they
// are, and how fast.
const consumerRound = 3

// consumersLoad is n consumers of one queue, each with a session of its own. What each does by itself all must do
// together, as far as the machine allows.
func consumersLoad(n int) load {
	processes := min(n, consumerProcesses)
	return load{
		key: fmt.Sprintf("queue-consumers-%d", n), order: "consume", rounds: fewRounds, measure: consumers,
		title:     fmt.Sprintf("%s with a session each, %v an item", consumersText(n), handlerTime),
		processes: processes, clients: n / processes, lockers: 1,
		limit:      limit{atLeast, float64(min(n, serverConsumers)) * float64(time.Second/handlerTime) / 2},
		contenders: []contender{ourTasks(onZooKeeper), ourTasks(onHosted)},
	}
}

func consumersText(n int) string {
	if n == 1 {
		return "one consumer"
	}
	return fmt.Sprintf("%d consumers", n)
}

// consumers lets the contenders take turns, and counts the items, and what each of them takes in requests to the server.
func consumers(ctx context.Context, b *bench, l *load) ([]row, error) {
	there, absent := b.available(l)
	round := consumerRound * b.options.duration
	enough := l.processes * l.clients * int(round/handlerTime) // all that they can do in a round
	var rates, requests []row
	for _, c := range there {
		rate, each, err := b.consume(ctx, l, c, round, enough)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.title(), err)
		}
		rates = append(rates, row{load: l.title, contender: c, figures: rate, unit: l.rateUnit()})
		requests = append(requests, row{
			load: l.title + ": requests of each item", contender: c, figures: each, unit: "requests", lessIsMore: true,
		})
	}
	judge(rates, l.limit)
	judge(requests, limit{atMost, 4})
	return slices.Concat(rates, requests, absent), nil
}

// consume measures one contender: items a second, and requests of each item.
func (b *bench) consume(ctx context.Context, l *load, c contender, round time.Duration, enough int) (rates, requests []float64, err error) {
	backend, err := b.servers.get(ctx, c.server)
	if err != nil {
		return nil, nil, err
	}
	root := b.root(l)
	stock, err := openStock(ctx, c.kind, backend.addr, root)
	if err != nil {
		return nil, nil, err
	}
	defer stock.close()
	if err := stock.fill(ctx, enough); err != nil {
		return nil, nil, err
	}
	t, err := b.teamAt(ctx, l, c, root)
	if err != nil {
		return nil, nil, err
	}
	defer t.crew.dismiss()
	for i := range b.rounds(l) + 1 {
		left, err := stock.count(ctx)
		if err == nil {
			err = stock.fill(ctx, max(0, enough-left))
		}
		if err != nil {
			return nil, nil, err
		}
		_, before, err := packetCounts(ctx, backend.addr)
		if err != nil {
			return nil, nil, err
		}
		answers, err := t.crew.order(milliseconds(l.order, round))
		if err != nil {
			return nil, nil, err
		}
		_, after, err := packetCounts(ctx, backend.addr)
		if err != nil {
			return nil, nil, err
		}
		var items, took int64
		for _, a := range answers {
			if len(a.figures) != 2 {
				return nil, nil, fmt.Errorf("%s: figures %v, want items and a time", l.order, a.figures)
			}
			items, took = items+a.figures[0], max(took, a.figures[1])
		}
		if items == 0 {
			return nil, nil, errors.New("not one item")
		}
		if i == 0 {
			continue // to warm up
		}
		rates = append(rates, float64(items)/time.Duration(took).Seconds())
		requests = append(requests, (after-before)/float64(items))
		fmt.Fprintf(b.log, "  %-60s %12s %s, %s requests an item\n", c.title(), number(rates[len(rates)-1]), l.rateUnit(),
			number(requests[len(requests)-1]))
	}
	return rates, requests, nil
}

// consume lets every connection take items, work on them, and acknowledge them.
func (s *shift) consume(ctx context.Context, d time.Duration) ([]int64, error) {
	var group sync.WaitGroup
	var items atomic.Int64
	errs := make([]error, len(s.connections))
	start := time.Now()
	until, cancel := context.WithDeadline(ctx, start.Add(d))
	defer cancel()
	for i, c := range s.connections {
		group.Go(func() {
			for until.Err() == nil {
				done, err := c.take(until)
				if err == nil {
					time.Sleep(handlerTime)
					err = done(ctx)
				} else if until.Err() != nil {
					return
				}
				if errs[i] = err; err != nil {
					return
				}
				items.Add(1)
			}
		})
	}
	group.Wait()
	return []int64{items.Load(), time.Since(start).Nanoseconds()}, errors.Join(errs...)
}
