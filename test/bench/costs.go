package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/internal/measure"
)

// Small costs need many rounds, and short turns within a round: what else the machine does then affects all alike.
const (
	costRounds = 4 // times as many rounds as other loads have
	costTurns  = 6 // of each contender in a round
)

// A pace is how fast a contender was in a round.
type pace struct {
	rate      float64 // cycles a second
	processor float64 // nanoseconds of a cycle, of the contender's process
}

// Words are what the two costs are called, and their unit.
type words struct{ unit, slower, busier string }

// costs is for loads that wait for a server.
func costs(ctx context.Context, b *bench, l *load) ([]row, error) {
	return differences(ctx, b, l, words{"%", ": of the rate, lost", ": of one core, taken"}, percent)
}

// percent returns the two costs beside a pace without them: of its rate, and of one core. A cycle takes longer by at
// most what it needs more of the processor's time, unless goroutines wait for each other. So the second is a bound of
// the first, without the noise of the disk.
func percent(without, with pace) (slower, busier float64) {
	return 100 * (1 - with.rate/without.rate), (with.processor - without.processor) * without.rate / 1e9 * 100
}

// nanos is for loads in memory.
func nanos(ctx context.Context, b *bench, l *load) ([]row, error) {
	return differences(ctx, b, l, words{"ns", ": how much longer", ": processor time added"}, nanoseconds)
}

// nanoseconds returns the two costs of each cycle.
func nanoseconds(without, with pace) (slower, busier float64) {
	return 1e9/with.rate - 1e9/without.rate, with.processor - without.processor
}

// A payer is a team whose cost is measured, or the one without it.
type payer struct {
	*team
	filler filler // of the queue that it takes from; nil if it takes from none
}

// differences lets the contenders take turns, and returns their rates, and what the others have paid, each round beside
// the first contender.
func differences(
	ctx context.Context, b *bench, l *load, w words, cost func(without, with pace) (slower, busier float64),
) ([]row, error) {
	there, absent := b.available(l)
	var payers []*payer
	defer func() {
		for _, p := range payers {
			p.close()
		}
	}()
	for _, c := range there {
		p, err := b.payer(ctx, l, c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.title(), err)
		}
		payers = append(payers, p)
	}
	var tables [][]row
	for range b.options.rounds * costRounds {
		round, err := b.takeTurns(ctx, l, payers)
		if err != nil {
			return nil, err
		}
		for i, p := range payers {
			slower, busier := cost(round[0], round[i])
			samples := []sample{
				{title: l.title, unit: l.rateUnit(), figure: round[i].rate},
				{title: l.title + w.slower, unit: w.unit, figure: slower, lessIsMore: true},
				{title: l.title + w.busier, unit: w.unit, figure: busier, lessIsMore: true},
			}
			tables = collect(tables, samples, len(payers), i, p.contender)
			fmt.Fprintf(b.log, "  %-60s %12s %s, %s and %s %s\n", p.contender.title(), number(round[i].rate),
				l.rateUnit(), number(slower), number(busier), w.unit)
		}
	}
	if len(tables) == 0 {
		return absent, nil
	}
	return slices.Concat(tables[0], absent, paid(tables[1], l.limit), paid(tables[2], l.limit)), nil
}

// paid returns the rows of those that pay a cost, of which the first is not one.
func paid(table []row, most limit) []row {
	table = table[1:]
	for i := range table {
		table[i].paired, table[i].limit = true, most
	}
	return table
}

// payer starts a team, and lets it warm up.
func (b *bench) payer(ctx context.Context, l *load, c contender) (*payer, error) {
	root := b.root(l)
	t, err := b.teamAt(ctx, l, c, root)
	if err != nil {
		return nil, err
	}
	p := &payer{team: t}
	if l.order == serveOrder {
		p.filler, err = openFiller(ctx, c.kind, t.backend.addr, root)
	}
	if err == nil {
		err = p.fill(ctx, b.options.duration)
	}
	if err == nil {
		_, err = p.turn(l, c.warmup(b.options.duration))
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *payer) close() {
	p.workers.Close()
	if p.filler != nil {
		p.filler.close()
	}
}

// fill fills a queue with more items than can be taken in that time.
func (p *payer) fill(ctx context.Context, d time.Duration) error {
	const rate = 50_000
	if p.filler == nil {
		return nil
	}
	there, err := p.filler.count(ctx)
	if err != nil {
		return err
	}
	return p.filler.fill(ctx, max(0, int(rate*d.Seconds())-there))
}

// A turn is what a team has done in one.
type turn struct {
	cycles          int64
	took, processor time.Duration
}

// turn lets a team work for so long.
func (p *payer) turn(l *load, d time.Duration) (t turn, err error) {
	before, err := p.processor()
	if err != nil {
		return t, err
	}
	t.cycles, t.took, _, err = p.workers.Run(measure.Millis(cmp.Or(l.order, "run"), d))
	if err != nil {
		return t, err
	}
	after, err := p.processor()
	t.processor = after - before
	return t, err
}

// processor returns how much of the processor's time the team has had.
func (p *payer) processor() (time.Duration, error) {
	answers, err := p.workers.Order(processorOrder)
	var all int64
	for _, a := range answers {
		if err == nil {
			all += a.Figures[0]
		}
	}
	return time.Duration(all), err
}

// takeTurns is one round. Each second turn goes backwards, so that what gets faster or slower meanwhile favours none.
func (b *bench) takeTurns(ctx context.Context, l *load, payers []*payer) ([]pace, error) {
	all := make([]turn, len(payers))
	order := make([]int, len(payers))
	for i, p := range payers {
		order[i] = i
		if err := p.fill(ctx, b.options.duration); err != nil {
			return nil, err
		}
	}
	for range costTurns {
		for _, i := range order {
			t, err := payers[i].turn(l, b.options.duration/costTurns)
			if err != nil {
				return nil, err
			}
			all[i].cycles += t.cycles
			all[i].took += t.took
			all[i].processor += t.processor
		}
		slices.Reverse(order)
	}
	paces := make([]pace, len(payers))
	for i, t := range all {
		if t.cycles == 0 {
			return nil, fmt.Errorf("%s: not one in a round of %v", payers[i].contender.title(), b.options.duration)
		}
		n := float64(t.cycles)
		paces[i] = pace{n / t.took.Seconds(), float64(t.processor.Nanoseconds()) / n}
	}
	return paces, nil
}
