package main

import (
	"context"
	"fmt"
	"time"
)

// barrierLoads lists what is measured of barriers.
func barrierLoads() []load {
	side := func(name, kind, server string, role role, required float64) contender {
		c := contender{name: name, kind: kind, server: server, config: durable, role: role, required: required}
		if isCurator(kind) || isKazoo(kind) { // so many Java machines or Pythons would measure the machine
			c.processes, c.clients = 1, manyProcesses
			c.name += fmt.Sprintf(" (%d clients of one process)", manyProcesses)
		}
		return c
	}
	return []load{{
		key: "barrier-16", title: fmt.Sprintf("%d processes, rounds of a barrier", manyProcesses),
		measure: meetings, processes: manyProcesses, locks: manyProcesses, order: "meet",
		contenders: []contender{
			side("Turnstile Double", kindDouble, onZooKeeper, subjectRole, 0),
			side("Curator DistributedDoubleBarrier", kindCuratorDouble, onZooKeeper, peerRole, 2),
			side("kazoo DoubleBarrier", kindKazooDouble, onZooKeeper, peerRole, 0),
			side("Turnstile Double", kindDouble, onServe, subjectRole, 0),
			side("Curator DistributedDoubleBarrier", kindCuratorDouble, onServe, peerRole, 2),
			side("kazoo DoubleBarrier", kindKazooDouble, onServe, peerRole, 0),
			side("Turnstile Rounds", kindRounds, onZooKeeper, aside, 0),
			side("Turnstile Rounds", kindRounds, onServe, aside, 0),
		},
	}}
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
