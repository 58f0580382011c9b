package main

import "fmt"

const (
	counterGoroutines = 16
	countOrder        = "count"
)

// counterLoads lists what is measured of counters.
func counterLoads() []load {
	hot := fmt.Sprintf("%d goroutines of one process, one counter: add 1", counterGoroutines)
	apart := fmt.Sprintf("%d processes, one counter: add 1", manyProcesses)
	return []load{
		{
			key: "counter-16", title: hot, measure: rates, order: countOrder, unit: "calls/s",
			lockers: counterGoroutines, contenders: counters(50),
		},
		{
			key: "counter-processes-16", title: apart, measure: rates, order: countOrder, unit: "calls/s",
			processes: manyProcesses, lockers: 1,
			contenders: oneJVM(counters(2)),
		},
		{
			key: "sequence", title: "ids of one process, one goroutine, in blocks of 1,000", measure: rates,
			order: countOrder, unit: "ids/s", lockers: 1, limit: limit{atLeast, 1_000_000},
			contenders: []contender{
				ourSequence(onZooKeeper), ourSequence(onServe),
				{name: "Curator CachedAtomicLong", kind: kindCuratorCached, server: onZooKeeper, config: durable},
				{name: "Curator CachedAtomicLong", kind: kindCuratorCached, server: onServe, config: durable},
			},
		},
	}
}

// counters is the contenders of loads with a counter. Required is the promise about Curator's.
func counters(required float64) []contender {
	var all []contender
	for _, server := range []string{onZooKeeper, onServe} {
		all = append(all, ourCounter(server),
			contender{
				name: "Curator DistributedAtomicLong", kind: kindCuratorLong, server: server, config: durable,
				required: required,
			},
			contender{name: "kazoo Counter", kind: kindKazooCounter, server: server, config: durable},
		)
	}
	return all
}

// oneJVM gives Curator's contenders one process with many clients: so many Java machines would measure the machine.
func oneJVM(all []contender) []contender {
	for i := range all {
		if c := &all[i]; isCurator(c.kind) {
			c.processes, c.clients, c.lockers = 1, manyProcesses, manyProcesses
			c.name += fmt.Sprintf(" (%d clients of one JVM)", manyProcesses)
		}
	}
	return all
}

func ourCounter(server string) contender {
	return contender{
		name: "Turnstile", kind: kindTurnstileCounter, server: server, role: subjectRole,
		config: durable + ", no call lost or done twice",
	}
}

func ourSequence(server string) contender {
	return contender{
		name: "Turnstile Sequence", kind: kindTurnstileSequence, server: server, role: subjectRole, config: durable,
	}
}
