package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/measure"
)

// Each consumer works on an item for handlerTime. The consumers are divided among consumerProcesses.
const (
	handlerTime       = 20 * time.Millisecond
	consumerProcesses = 8
)

const (
	serverConsumers = 128 // the consumers that two cores must be enough for

	// A round of these loads is this many times as long as others: new consumers first learn how many they are, and how
	// fast.
	consumerRound = 3
)

// consumersLoad is n consumers of one queue, each with a session of its own. Together they must do as much as each does
// alone, as far as the machine allows.
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

// consumers lets the contenders run one after the other, and counts the items, and the requests to the server for each
// item.
func consumers(ctx context.Context, b *bench, l *load) ([]row, error) {
	there, absent := b.available(l)
	var rates, requests []row
	for _, c := range there {
		rate := row{load: l.title, contender: c, unit: l.rateUnit()}
		each := row{load: l.title + ": requests of each item", contender: c, unit: "requests", lessIsMore: true}
		if err := b.consume(ctx, l, c, &rate, &each); err != nil {
			return nil, fmt.Errorf("%s: %w", c.title(), err)
		}
		rates, requests = append(rates, rate), append(requests, each)
	}
	judge(rates, l.limit)
	judge(requests, limit{atMost, 4})
	return slices.Concat(rates, requests, absent), nil
}

// consume measures one contender: items a second, and requests of each item.
func (b *bench) consume(ctx context.Context, l *load, c contender, rate, each *row) error {
	duration := consumerRound * b.options.duration
	enough := l.processes * l.clients * int(duration/handlerTime) // as many items as they can finish in a round
	q, err := b.openQueue(ctx, l, c)
	if err != nil {
		return err
	}
	defer q.filler.close()
	t, err := b.teamAt(ctx, l, c, q.root)
	if err != nil {
		return err
	}
	defer t.workers.Close()
	for i := range b.rounds(l) + 1 {
		left, err := q.filler.count(ctx)
		if err == nil {
			err = q.filler.fill(ctx, max(0, enough-left))
		}
		if err != nil {
			return err
		}
		before, err := measure.Counters(ctx, t.backend.addr)
		if err != nil {
			return err
		}
		items, took, _, err := t.workers.Run(measure.Millis(l.order, duration))
		if err != nil {
			return err
		}
		after, err := measure.Counters(ctx, t.backend.addr)
		switch {
		case err != nil:
			return err
		case items == 0:
			return errors.New("not one item")
		case i == 0:
			continue // to warm up
		}
		sent := after["zk_packets_received"] - before["zk_packets_received"]
		rate.figures = append(rate.figures, float64(items)/took.Seconds())
		each.figures = append(each.figures, sent/float64(items))
		fmt.Fprintf(b.log, "  %-60s %12s %s, %s requests an item\n", c.title(),
			number(rate.figures[i-1]), l.rateUnit(), number(each.figures[i-1]))
	}
	return nil
}

// What the load of commands has.
const (
	commandProcesses = 24
	commandWorkers   = 2
	commandItems     = 2400
)

// commandsLoad is workers that are each a process of the command line and run a command for each item, until nothing is
// left. What it costs to start them, and to find that the queue is empty, counts.
func commandsLoad() load {
	return load{
		key: "queue-commands", rounds: fewRounds, measure: commands, limit: limit{atMost, 3},
		title: fmt.Sprintf("%d processes of turnstile queue work, %d workers each, %v an item, until it is empty",
			commandProcesses, commandWorkers, handlerTime),
		contenders: []contender{ourTasks(onZooKeeper), ourTasks(onHosted)},
	}
}

// commands lets the commands work, and counts the requests to the server for each item.
func commands(ctx context.Context, b *bench, l *load) ([]row, error) {
	there, absent := b.available(l)
	var rows []row
	for _, c := range there {
		each := row{load: l.title + ": requests of each item", contender: c, unit: "requests", lessIsMore: true}
		if err := b.work(ctx, l, c, &each); err != nil {
			return nil, fmt.Errorf("%s: %w", c.title(), err)
		}
		rows = append(rows, each)
	}
	judge(rows, l.limit)
	return slices.Concat(rows, absent), nil
}

// work measures the commands on one server.
func (b *bench) work(ctx context.Context, l *load, c contender, each *row) error {
	binary, err := b.servers.turnstile(ctx)
	if err != nil {
		return err
	}
	q, err := b.openQueue(ctx, l, c)
	if err != nil {
		return err
	}
	defer q.filler.close()
	backend, err := b.servers.get(ctx, c.server)
	if err != nil {
		return err
	}
	for range b.rounds(l) {
		if err := q.filler.fill(ctx, commandItems); err != nil {
			return err
		}
		before, err := measure.Counters(ctx, backend.addr)
		if err != nil {
			return err
		}
		var wg sync.WaitGroup
		errs := make([]error, commandProcesses)
		for i := range errs {
			args := []string{
				"queue", "work", "--connect", backend.addr, "--workers", strconv.Itoa(commandWorkers),
				"--until", "empty", q.root, "--", "sleep", strconv.FormatFloat(handlerTime.Seconds(), 'f', -1, 64),
			}
			wg.Go(func() {
				if out, err := exec.CommandContext(ctx, binary, args...).CombinedOutput(); err != nil {
					errs[i] = fmt.Errorf("turnstile queue work: %w: %s", err, out)
				}
			})
		}
		wg.Wait()
		after, err := measure.Counters(ctx, backend.addr)
		if err := errors.Join(err, errors.Join(errs...)); err != nil {
			return err
		}
		each.figures = append(each.figures, (after["zk_packets_received"]-before["zk_packets_received"])/commandItems)
		fmt.Fprintf(b.log, "  %-60s %12s requests an item\n", c.title(), number(each.figures[len(each.figures)-1]))
	}
	return nil
}
