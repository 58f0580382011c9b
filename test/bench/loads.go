package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
)

// A load is one workload, and the contenders that are measured under it side by side.
type load struct {
	key, title string
	contenders []contender
	processes  int // that each contender has, if it does not say otherwise; likewise the next four
	clients    int // of each process; likewise the next
	lockers    int
	locks      int
	depth      int    // of a queue
	order      string // that workers get for a round; theirs for a lock if empty
	unit       string // of a rate; items/s or cycles/s if empty
	rounds     int    // at most; 0 if as many as are asked for
	limit      limit  // of the subjects' figures
	measure    func(ctx context.Context, b *bench, l *load) ([]row, error)
}

// rateUnit is what a rate counts.
func (l *load) rateUnit() string {
	if l.unit != "" || l.order != "" {
		return cmp.Or(l.unit, "items/s")
	}
	return "cycles/s"
}

const (
	hotGoroutines  = 64
	fewGoroutines  = 16 // on the hot lock, of contenders that get slower with more
	manyProcesses  = 16
	manyWaiters    = 1000
	manyGoroutines = 10000
	fewRounds      = 3 // of loads that take long
)

// lockLoads lists what is measured of locks, and of servers.
func lockLoads() []load {
	all := serverLoads()
	all = append(
		all,
		load{
			key: "lock-1", title: "one client, one free lock: lock + unlock", measure: rates, lockers: 1, locks: 1,
			contenders: side(subject, 2, nil),
		},
		load{
			key: "lock-16", title: "one client, 16 goroutines, 16 locks", measure: rates, lockers: 16, locks: 16,
			contenders: side(subject, 1.8, nil),
		},
		load{
			key: "hot-64", title: fmt.Sprintf("%d goroutines of one process, one hot lock", hotGoroutines),
			measure: rates, lockers: hotGoroutines, locks: 1,
			contenders: side(subject, 100, func(c *contender) {
				switch {
				case c.kind == kindGoZooKeeper, c.kind == kindCurator, c.kind == kindKazoo:
					c.lockers = fewGoroutines
					c.name += fmt.Sprintf(" (%d)", fewGoroutines)
				case c.kind == kindRedsync && c.server == onRedis:
					c.required = 10
				}
			}),
		},
		load{
			key: "processes-16", title: fmt.Sprintf("%d processes, one hot lock, strict FIFO", manyProcesses),
			measure: handOvers, processes: manyProcesses, lockers: 1, locks: 1,
			contenders: side(strictly, 1.2, func(c *contender) {
				if c.kind == kindCurator { // so many Java machines would measure the machine
					c.processes, c.clients, c.lockers = 1, manyProcesses, manyProcesses
					c.name += fmt.Sprintf(" (%d clients of one JVM)", manyProcesses)
				}
			}),
		},
		load{
			key: "retained", title: "one client, one retained lock, locked again", measure: rates, lockers: 1, locks: 1,
			limit: limit{atLeast, 1_000_000},
			contenders: []contender{
				retaining(onZooKeeper),
				retaining(onServe),
				{name: "redislock", kind: kindRedislock, server: onRedis, config: volatile + lockPause},
			},
		},
	)
	for _, n := range []int{1, 16, 256} {
		l := load{
			key:     fmt.Sprintf("latency-%d", n),
			title:   fmt.Sprintf("acquiring one lock that %d want all the time, one process: p50", n),
			measure: latencies, lockers: n, locks: 1, rounds: fewRounds, contenders: waiting(onServe),
		}
		if n > hotGoroutines {
			l.without(kindRedislock, onRedis, onRedisAOF)
		}
		all = append(all, l)
	}
	all = append(all, lineLoads()...)
	return append(all, load{
		key: "footprint", title: "start-up: from the process's start to its first answer", measure: footprint,
		contenders: []contender{
			{name: "the server", server: onServe, config: durable},
			{name: "the server", server: onZooKeeper, config: durable},
		},
	})
}

// side is the contenders of most loads: ours and go-zookeeper on both servers, and all others.
func side(ours func(server string) contender, required float64, adapt func(*contender)) []contender {
	all := append([]contender{
		ours(onZooKeeper), goZooKeeper(onZooKeeper, required),
		ours(onServe), goZooKeeper(onServe, required),
	}, others()...)
	for i := range all {
		if adapt != nil {
			adapt(&all[i])
		}
	}
	return all
}

// waiting is the contenders of loads about waiters. Only those with a node for each waiter are compared.
func waiting(embedded string) []contender {
	all := append([]contender{
		strictly(onZooKeeper), goZooKeeper(onZooKeeper, 0),
		strictly(embedded), goZooKeeper(embedded, 0),
		subject(onZooKeeper), subject(embedded),
	}, others()...)
	for i := range all {
		if all[i].shares {
			all[i].role = aside
		}
	}
	return all
}

// without leaves out contenders that poll so seldom that a round, which ends when each has had the lock, could take ten
// seconds.
func (l *load) without(kind string, servers ...string) {
	for i := range l.contenders {
		c := &l.contenders[i]
		if c.kind == kind && slices.Contains(servers, c.server) {
			c.skip = "left out: with so many that poll, the last one waits up to ten seconds"
		}
	}
}

func serverLoads() []load {
	var all []load
	for _, n := range []int{1, 16, 256} {
		all = append(all, load{
			key:   "server-" + strconv.Itoa(n),
			title: fmt.Sprintf("durable create + delete, one client (ours), %d in flight", n), measure: rates,
			lockers: n,
			locks:   n,
			contenders: []contender{
				{name: "Turnstile's client", kind: kindNodes, server: onServe, config: durable, role: subjectRole},
				{name: "Turnstile's client", kind: kindNodes, server: onZooKeeper, config: durable, required: 2},
			},
		})
	}
	return all
}
