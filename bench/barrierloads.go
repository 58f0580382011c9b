package main

import (
	"context"
	"fmt"
	"time"
)

// barrierLoads lists what is measured of barriers.
func barrierLoads() []load {
	party := func(name, kind, server string, role role, required float64) contender {
		return contender{name: name, kind: kind, server: server, config: durable, role: role, required: required}
	}
	// gathered has all clients in one process.
	gathered := func(c contender) contender {
		c.processes, c.clients = 1, manyProcesses
		c.name += fmt.Sprintf(" (%d clients of one process)", manyProcesses)
		return c
	}
	var apart, together []contender
	for _, server := range []string{onZooKeeper, onServe} {
		ours := party("Turnstile Double", kindDouble, server, subjectRole, 0)
		curator := party("Curator DistributedDoubleBarrier", kindCuratorDouble, server, peerRole, 2)
		kazoo := gathered(party("kazoo DoubleBarrier", kindKazooDouble, server, peerRole, 0))
		rounds := party("Turnstile Rounds", kindRounds, server, aside, 0)
		apart = append(apart, ours, gathered(curator), kazoo, rounds)
		if server == onZooKeeper {
			alone := curator
			alone.name += fmt.Sprintf(" (%d processes)", manyProcesses)
			alone.skip = "not measured: within seconds a party waits for ever, because it had not counted the others" +
				" when the first of them left; the clients of one process wait for each other in memory"
			apart = append(apart, alone)
		}
		together = append(together, gathered(ours), gathered(curator), kazoo, gathered(rounds))
	}
	return []load{
		{
			key: "barrier-16", title: fmt.Sprintf("%d processes, rounds of a barrier", manyProcesses),
			measure: meetings, processes: manyProcesses, locks: manyProcesses, order: "meet", contenders: apart,
		},
		{
			key:     "barrier-clients-16",
			title:   fmt.Sprintf("%d clients of one process, rounds of a barrier", manyProcesses),
			measure: meetings, locks: manyProcesses, order: "meet", contenders: together,
		},
	}
}

// meetings lets the parties of each contender meet, as often as fills about a round. All must meet equally often.
func meetings(ctx context.Context, b *bench, l *load) ([]row, error) {
	teams, absent, err := b.barrierTeams(ctx, l)
	defer func() { closeAll(teams) }()
	if err != nil {
		return nil, err
	}
	var tables [][]row
	times := make([]int, len(teams)) // to meet in a round
	for round := -1; round < b.rounds(l); round++ {
		for i, t := range teams {
			n := times[i]
			if round < 0 {
				n = 30 // to warm up, and to learn how long it takes
			}
			_, took, _, err := t.workers.Run(fmt.Sprintf("meet %d", n))
			if err != nil {
				return nil, err
			}
			rate := float64(n) / took.Seconds()
			if round < 0 {
				times[i] = max(10, int(rate*float64(b.options.duration)/float64(time.Second)))
				continue
			}
			samples := []sample{{title: l.title, unit: "rounds/s", figure: rate}}
			tables = collect(tables, samples, len(teams), i, t.contender)
			fmt.Fprintf(b.log, "  %-60s %12s rounds/s\n", t.contender.title(), number(rate))
		}
	}
	if len(tables) == 0 {
		return absent, nil
	}
	judge(tables[0], l.limit)
	return append(tables[0], absent...), nil
}

// barrierTeams starts all contenders.
func (b *bench) barrierTeams(ctx context.Context, l *load) (teams []*team, rows []row, err error) {
	there, rows := b.available(l)
	for _, c := range there {
		t, err := b.teamAt(ctx, l, c, b.root(l))
		if err != nil {
			return teams, nil, err
		}
		teams = append(teams, t)
	}
	return teams, rows, nil
}
