package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/internal/measure"
)

const (
	sharedItems  = 10000
	itemMembers  = 10
	memberSettle = time.Second // the default of member.PartitionerConfig

	// The members are at rest when no item has moved for so long.
	memberRest = 2*memberSettle + 500*time.Millisecond
)

// memberLoads lists what is measured of members that share items.
func memberLoads() []load {
	side := func(server string) contender {
		return contender{
			name: "Turnstile Partitioner", kind: kindPartitioner, server: server, role: subjectRole, config: durable,
		}
	}
	return []load{{
		key: "members-10", title: fmt.Sprintf("%d members share 10,000 items", itemMembers), measure: departures,
		processes: itemMembers, locks: sharedItems, rounds: fewRounds,
		contenders: []contender{side(onZooKeeper), side(onServe)},
	}}
}

// departures lets one of a contender's members leave, and come again, each member in turn.
func departures(ctx context.Context, b *bench, l *load) ([]row, error) {
	there, absent := b.available(l)
	tables := make([][]row, 6)
	for _, c := range there {
		rows, err := b.depart(ctx, l, c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.title(), err)
		}
		for i := range rows {
			tables[i] = append(tables[i], rows[i])
		}
	}
	return append(slices.Concat(tables...), absent...), nil
}

// depart measures one contender.
func (b *bench) depart(ctx context.Context, l *load, c contender) ([]row, error) {
	line := func(title, unit string, l limit) row {
		return row{load: title, contender: c, unit: unit, limit: l, lessIsMore: true}
	}
	rows := []row{
		line(l.title+": one leaves: items that move, of the least possible", "×", limit{atMost, 1.2}),
		line("one leaves: items of the others whose work is ended", "items", limit{exactly, 0}),
		line("one leaves: until all items are owned again", "ms", limit{}),
		line("one comes: items that move, of those that it gets", "×", limit{atMost, 1.2}),
		line("one comes: until all items are owned again", "ms", limit{}),
		line("the first ten come: until all items are owned", "ms", limit{}),
	}
	t, err := b.teamAt(ctx, l, c, b.root(l))
	if err != nil {
		return nil, err
	}
	defer t.workers.Close()
	start := time.Now()
	if _, err := t.workers.Order("join"); err != nil {
		return nil, err
	}
	first, _, err := t.rest(ctx, start)
	if err != nil {
		return nil, err
	}
	add := func(i int, figure float64) { rows[i].figures = append(rows[i].figures, figure) }
	millis := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
	add(5, millis(first))
	for round := range b.rounds(l) {
		leaver := round % itemMembers
		left, err := t.tell(ctx, leaver, "leave")
		if err != nil {
			return nil, err
		}
		came, err := t.tell(ctx, leaver, "join")
		if err != nil {
			return nil, err
		}
		// The leaver's own items end, and nothing else has to.
		least := float64(left.before[leaver].owned())
		ended := left.ended() - least
		add(0, float64(left.gained())/least)
		add(1, ended)
		add(2, millis(left.took))
		add(3, float64(came.gained())/float64(came.after[leaver].owned()))
		add(4, millis(came.took))
		fmt.Fprintf(b.log, "  %-60s one leaves: %d of %.0f items move, %.0f of others ended, %v; one comes: %d, %v\n",
			c.title(), left.gained(), least, ended, left.took, came.gained(), came.took)
	}
	return rows, nil
}

// A tally is how often a member was given an item, and how often one was taken from it.
type tally struct{ gained, lost int64 }

func (t tally) owned() int64 { return t.gained - t.lost }

// A move is what happened after one member was told something.
type move struct {
	before, after []tally // of each member
	took          time.Duration
}

func (m *move) gained() (n int64) {
	for i := range m.after {
		n += m.after[i].gained - m.before[i].gained
	}
	return n
}

func (m *move) ended() (n float64) {
	for i := range m.after {
		n += float64(m.after[i].lost - m.before[i].lost)
	}
	return n
}

// tell gives one member an order, and waits until all are at rest.
func (t *team) tell(ctx context.Context, member int, order string) (*move, error) {
	before, err := t.tally()
	if err != nil {
		return nil, err
	}
	start := time.Now()
	if _, err := t.workers[member].Order(order); err != nil {
		return nil, err
	}
	took, after, err := t.rest(ctx, start)
	return &move{before, after, took}, err
}

// tally asks all members.
func (t *team) tally() ([]tally, error) {
	answers, err := t.workers.Order("tally")
	if err != nil {
		return nil, err
	}
	all := make([]tally, len(answers))
	for i, a := range answers {
		all[i] = tally{a.Figures[0], a.Figures[1]}
	}
	return all, nil
}

// rest waits until no item has moved for a while, and all have an owner. Took is how long after start the last item
// got its owner.
func (t *team) rest(ctx context.Context, start time.Time) (took time.Duration, last []tally, err error) {
	const pause = 5 * time.Millisecond
	moved := time.Now()
	for time.Since(start) < measure.OrderLimit {
		now, err := t.tally()
		if err != nil {
			return 0, nil, err
		}
		if !slices.Equal(now, last) {
			last, moved = now, time.Now()
		}
		if owned(last) == int64(t.plan.locks) && time.Since(moved) > memberRest {
			return moved.Sub(start), last, nil
		}
		if err := wait(ctx, pause); err != nil {
			return 0, nil, err
		}
	}
	return 0, nil, fmt.Errorf("%d of %d items have an owner, and do not come to rest", owned(last), t.plan.locks)
}

func owned(all []tally) (n int64) {
	for _, t := range all {
		n += t.owned()
	}
	return n
}
