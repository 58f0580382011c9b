package main

import (
	"fmt"
	"slices"
	"strconv"
)

// Orders that these loads alone have.
const (
	serveOrder     = "serve"
	processorOrder = "processor"
)

// What metrics may cost: of the rate of a load that waits for a server, in percent; and a hand-off in memory, in
// nanoseconds.
const (
	percentLimit = 3
	memoryLimit  = 200
)

// seeingLoads lists what it costs to see what goes on.
func seeingLoads() []load {
	return slices.Concat(metricsLoads(), boardLoads())
}

// boardLoads are about what is shown of many locks, and about what that costs.
func boardLoads() []load {
	beside := func(locks int) load {
		return load{
			key: "dashboard-" + strconv.Itoa(locks), title: "16 goroutines, 16 locks, beside " + crowdText(locks),
			measure: besideBoard, depth: locks, lockers: 16, locks: 16, contenders: crowded("Turnstile"),
		}
	}
	return []load{
		{
			key: "locks-" + strconv.Itoa(manyLocks), title: crowdText(manyLocks), depth: manyLocks, rounds: fewRounds,
			measure: listedAndShown, contenders: crowded("turnstile"),
		},
		beside(fewLocks),
		beside(manyLocks),
	}
}

// crowded are the servers that have crowds.
func crowded(name string) []contender {
	return []contender{
		{name: name, kind: kindTurnstile, server: onEnsemble, role: aside},
		{name: name, kind: kindTurnstile, server: onServe, role: aside},
	}
}

// metricsLoads are loads with and without metrics. Waiting for ZooKeeper takes longer than for turnstile serve, so that
// there the same cost is a smaller part.
func metricsLoads() []load {
	queue, counter := ourTasks(onServe), ourCounter(onServe)
	nodes := contender{name: "Turnstile's client", kind: kindNodes, server: onServe, config: durable}
	waits := limit{atMost, percentLimit}
	return []load{
		{
			key: "metrics-lock-1", title: "metrics: one client, one free lock", measure: costs, limit: waits,
			lockers: 1, locks: 1, contenders: observed(subject(onServe)),
		},
		{
			key: "metrics-lock-16", title: "metrics: 16 goroutines, 16 locks", measure: costs, limit: waits,
			lockers: 16, locks: 16, contenders: observed(subject(onServe)),
		},
		{
			key: "metrics-hot-64", title: fmt.Sprintf("metrics: %d goroutines, one hot lock", hotGoroutines),
			measure: nanos, limit: limit{atMost, memoryLimit}, lockers: hotGoroutines, locks: 1,
			contenders: called(subject(onServe)),
		},
		{
			key: "metrics-retained", title: "metrics: a retained lock, locked again",
			measure: nanos, lockers: 1, locks: 1, // without a target
			contenders: called(retaining(onServe)),
		},
		{
			key: "metrics-put", title: "metrics: queue: put, one by one", measure: costs, limit: waits,
			order: "put", contenders: observed(queue),
		},
		{
			key: "metrics-batch", title: "metrics: queue: put, 1,000 at a time", measure: costs, limit: waits,
			order: "batch", contenders: observed(queue),
		},
		{
			key: "metrics-take-1", title: "metrics: queue: take + done, one consumer", measure: costs, limit: waits,
			order: serveOrder, lockers: 1, contenders: observed(queue),
		},
		{
			key: "metrics-take-16", title: "metrics: queue: take + done, 16 in flight", measure: costs, limit: waits,
			order: serveOrder, lockers: inFlight, contenders: observed(queue),
		},
		{
			key: "metrics-counter", title: "metrics: 16 goroutines add to one counter", measure: costs, limit: waits,
			order: countOrder, unit: "calls/s", lockers: counterGoroutines, contenders: observed(counter),
		},
		{
			key: "metrics-server-256", title: "metrics: create + delete, 256 in flight", measure: costs, limit: waits,
			lockers: 256, contenders: observed(nodes),
		},
	}
}

// observed returns a contender without hooks, and the same with those of the metrics. None is compared with
// others: their differences are the figures.
func observed(c contender) []contender {
	c.role, c.config = aside, ""
	counted := c
	counted.hooks, counted.name = withMetrics, c.name+", metrics"
	return []contender{c, counted}
}

// called adds hooks that do nothing: what being called costs in memory, of what the metrics cost.
func called(c contender) []contender {
	all := observed(c)
	idle := all[0]
	idle.hooks, idle.name = idleHooks, c.name+", hooks that do nothing"
	return slices.Insert(all, 1, idle)
}
