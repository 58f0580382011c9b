package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
)

const (
	inFlight  = 16
	deep      = 100_000 // from here on memory is weighed, and a contender may find that it cannot
	deepest   = 1_000_000
	shallow   = 1_000 // what the deepest is compared with
	batchRate = 20_000
	takeRate  = 5_000
)

// queueLoads lists what is measured of queues.
func queueLoads() []load {
	var all []load
	for _, depth := range []int{100, shallow, 10_000} {
		contenders := queues(onServe)
		if depth == shallow { // for a promise about those that promise the same
			contenders = slices.DeleteFunc(contenders, func(c contender) bool {
				return c.kind == kindCuratorSimple || c.kind == kindKazooQueue || c.kind == kindRedisList
			})
		}
		all = append(all, depthLoad(depth, contenders))
	}
	latency := load{
		key: "queue-latency", title: "from the beginning of a put until a consumer that waits has the item: p50",
		measure: latencies, order: "relay", rounds: fewRounds, clients: 2, lockers: 1, contenders: queues(onServe),
	}
	for _, n := range []int{1, 32, 64, 128, 256} {
		all = append(all, consumersLoad(n))
	}
	all = append(all, commandsLoad())
	return append(all, latency, depthLoad(deep, queues(onHosted)), depthLoad(deepest, deepestQueues()))
}

// depthLoad is taking items from queues of a depth, and putting some unless the load has only some of the contenders.
func depthLoad(depth int, contenders []contender) load {
	text := number(float64(depth)) + " items deep"
	phases := []phase{
		{order: "take", workers: 1, title: "take + done, one consumer, " + text},
		{
			order: "take", workers: inFlight, limit: limit{atLeast, takeRate},
			title: fmt.Sprintf("take + done, %d in flight, %s", inFlight, text),
		},
	}
	if depth != shallow {
		phases = append(
			phases,
			phase{order: "put", workers: 1, title: "put, one by one, " + text},
			phase{
				order: "batch", workers: 1, limit: limit{atLeast, batchRate},
				title: fmt.Sprintf("put, %s at a time, %s", number(batchItems), text),
			},
		)
	}
	return load{
		key: "queue-" + strconv.Itoa(depth), title: "a queue " + text, order: "take", rounds: fewRounds, depth: depth,
		contenders: contenders,
		measure:    func(ctx context.Context, b *bench, l *load) ([]row, error) { return atDepth(ctx, b, l, phases) },
	}
}

// required is what the subject's figure, divided by the contender's, must reach in a phase of a load.
func (p *phase) required(l *load, c *contender) float64 {
	switch {
	case l.depth == deepest && c.kind == kindTurnstileQueue:
		return 0.8
	case c.kind == kindKazooLocking && p.order == "take" && p.workers == 1 && l.depth == shallow:
		return 3
	case c.kind == kindKazooLocking && p.order == "take" && p.workers == 1 && l.depth == 10*shallow:
		return 10
	default:
		return 0
	}
}

// skip says why a contender is not in a phase; empty if it is.
func (p *phase) skip(c *contender) string {
	if p.order == "batch" && (c.kind == kindCuratorSimple || c.kind == kindKazooQueue) {
		return "left out: it puts items one by one only"
	}
	return ""
}

// nodes is what a contender's queue counts for that many items.
func (p *phase) nodes(c *contender, items int64) int {
	if p.order == "batch" && c.kind == kindCuratorQueue { // a batch is one node
		items /= batchItems
	}
	return int(items)
}

const (
	atLeastOnce = ", at least once"
	atMostOnce  = ", at most once"
	inOrder     = ", in order"
	byPriority  = ", by priority, then in order"
	redisOnce   = ", at least once if the user moves back what crashed consumers have taken"
)

// ourTasks is Turnstile's queue with its default configuration.
func ourTasks(server string) contender {
	return contender{
		name: "Turnstile", kind: kindTurnstileQueue, server: server, role: subjectRole,
		config: durable + atLeastOnce + byPriority,
	}
}

// queues is the contenders of most loads: ours on both servers, and all others.
func queues(embedded string) []contender {
	peer := func(name, kind, promise string) contender {
		return contender{name: name, kind: kind, server: onZooKeeper, config: durable + promise}
	}
	return append([]contender{
		ourTasks(onZooKeeper), ourTasks(embedded),
		peer("Curator SimpleDistributedQueue", kindCuratorSimple, atMostOnce+inOrder),
		peer("Curator DistributedQueue", kindCuratorQueue, atLeastOnce+inOrder),
		peer("kazoo Queue", kindKazooQueue, atMostOnce+byPriority),
		peer("kazoo LockingQueue", kindKazooLocking, atLeastOnce+byPriority),
	}, redisLists()...)
}

func redisLists() []contender {
	return []contender{
		{name: "BLMOVE", kind: kindRedisList, server: onRedis, config: volatile + redisOnce + inOrder},
		{name: "BLMOVE", kind: kindRedisList, server: onRedisAOF, config: durable + redisOnce + inOrder},
	}
}

// deepestQueues is the contenders that can have a million items: ours, beside itself with few.
func deepestQueues() []contender {
	few := ourTasks(onHosted)
	few.depth, few.role = shallow, peerRole
	few.name += fmt.Sprintf(", %s items", number(shallow))
	return append([]contender{ourTasks(onHosted), few}, redisLists()...)
}
