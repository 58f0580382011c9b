package main

import (
	"context"
	"fmt"
	"slices"
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
	many := func(server string) contender {
		c := party("Turnstile Double", kindDouble, server, subjectRole, 0)
		c.clients = manyWaiters
		return c
	}
	return []load{
		{
			key: "barrier-1000", title: number(manyWaiters) + " parties of a double barrier",
			rounds: fewRounds, locks: manyWaiters, measure: gatherings,
			contenders: []contender{many(onZooKeeper), many(onHosted)},
		},
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

// gatherings lets all parties but one come, then the last one, and then all leave.
func gatherings(ctx context.Context, b *bench, l *load) ([]row, error) {
	there, absent := b.available(l)
	tables := make([][]row, 4)
	for _, c := range there {
		rows := []row{
			{
				load: l.title + ": watch events when the last one comes", unit: "events",
				limit: limit{atMost, manyWaiters},
			},
			{load: l.title + ": from the last one's coming until all have entered", unit: "ms"},
			{load: l.title + ": watch events when all leave", unit: "events"},
			{load: l.title + ": until all have left", unit: "ms"},
		}
		for range b.rounds(l) {
			figures, err := b.gather(ctx, l, c)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.title(), err)
			}
			fmt.Fprintf(b.log, "  %-60s %.0f events, entered in %.0f ms, %.0f events, left in %.0f ms\n",
				c.title(), figures[0], figures[1], figures[2], figures[3])
			for i := range rows {
				rows[i].figures = append(rows[i].figures, figures[i])
			}
		}
		for i := range rows {
			rows[i].contender, rows[i].lessIsMore = c, true
			tables[i] = append(tables[i], rows[i])
		}
	}
	return append(slices.Concat(tables...), absent...), nil
}

// gather measures one meeting: the events and the milliseconds of entering, and those of leaving.
func (b *bench) gather(ctx context.Context, l *load, c contender) (figures [4]float64, err error) {
	t, err := b.teamAt(ctx, l, c, b.root(l))
	if err != nil {
		return figures, err
	}
	defer t.workers.Close()
	if _, err := t.workers[0].Order("gather"); err != nil {
		return figures, err
	}
	before, err := t.surplus(ctx)
	if err != nil {
		return figures, err
	}
	for i, order := range []string{"enter", "leave"} {
		a, err := t.workers[0].Order(order)
		if err != nil {
			return figures, err
		}
		after, err := t.surplus(ctx)
		if err != nil {
			return figures, err
		}
		figures[2*i], figures[2*i+1] = after-before, float64(a.Figures[0])/1e6
		before = after
	}
	return figures, nil
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
