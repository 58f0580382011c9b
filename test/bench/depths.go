package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/internal/measure"
)

// A phase is one table about queues that are filled already.
type phase struct {
	order   string
	workers int
	title   string
	limit   limit
}

// taskLimit bounds what a worker may take for one order about a queue.
const taskLimit = 30 * time.Second

// widePacket is what a client accepts that could not read the list with its default.
const widePacket = 64 << 20

// A filledQueue is a contender's queue, kept at its depth.
type filledQueue struct {
	contender contender
	root      string
	filler    filler
	depth     int
	items     int      // that must be there
	gone      bool     // the contender cannot take from it
	weight    *float64 // bytes of each item on the server; nil if the server does not tell
	growth    *float64 // bytes by which one consumer's memory grew since before its first item; nil until it is known
}

// atDepth fills a queue for each contender and lets them take turns, phase by phase. Then it ends the servers.
func atDepth(ctx context.Context, b *bench, l *load, phases []phase) ([]row, error) {
	there, absent := b.available(l)
	var queues []*filledQueue
	defer func() {
		for _, q := range queues {
			q.filler.close()
		}
		b.servers.end() // there is much on them
	}()
	for _, c := range there {
		q, err := b.openQueue(ctx, l, c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.title(), err)
		}
		queues = append(queues, q)
		if err := b.fillFirst(ctx, l, q); err != nil {
			return nil, fmt.Errorf("%s: %w", c.title(), err)
		}
	}
	var rows []row
	for i := range phases {
		measured, err := b.phase(ctx, l, &phases[i], queues)
		if err != nil {
			return nil, err
		}
		rows = append(rows, measured...)
		if i == 0 {
			rows = append(rows, absent...)
		}
	}
	if l.depth >= deep {
		rows = append(rows, memoryRows(l, queues)...)
	}
	return rows, nil
}

// openQueue makes a contender's queue, which is empty.
func (b *bench) openQueue(ctx context.Context, l *load, c contender) (*filledQueue, error) {
	backend, err := b.servers.get(ctx, c.server)
	if err != nil {
		return nil, err
	}
	q := &filledQueue{contender: c, root: b.root(l), depth: cmp.Or(c.depth, l.depth)}
	q.filler, err = openFiller(ctx, c.kind, backend.addr, q.root)
	return q, err
}

// fillFirst fills a queue, and for deep ones finds out how much memory of the server each item takes.
func (b *bench) fillFirst(ctx context.Context, l *load, q *filledQueue) error {
	backend, err := b.servers.get(ctx, q.contender.server)
	if err != nil {
		return err
	}
	weigh := backend.weight
	if l.depth < deep || weigh == nil {
		weigh = func(context.Context) (float64, error) { return 0, nil }
	} else {
		q.weight = new(float64)
	}
	before, err := weigh(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := q.fill(ctx, q.depth); err != nil {
		return err
	}
	took := time.Since(start).Round(time.Millisecond)
	after, err := weigh(ctx)
	if q.weight != nil {
		*q.weight = max(0, after-before) / float64(q.depth)
	}
	fmt.Fprintf(b.log, "  %-60s %12s items in %v\n", q.contender.title(), number(float64(q.depth)), took)
	return err
}

func (q *filledQueue) fill(ctx context.Context, n int) error {
	q.items += n
	return q.filler.fill(ctx, n)
}

// A queueTeam is a team at its queue.
type queueTeam struct {
	*team
	queue  *filledQueue
	row    row
	before need // any item was taken
}

// phase lets the teams of all queues take turns. A peer that turns out to be unable to take from a queue so deep gets a
// row that says so.
func (b *bench) phase(ctx context.Context, l *load, p *phase, queues []*filledQueue) ([]row, error) {
	var teams []*queueTeam // some of them with other workers than they began with
	var rows []row
	defer func() {
		for _, t := range teams {
			t.workers.Close()
		}
	}()
	var there []*filledQueue
	for _, q := range queues {
		if why := p.skip(&q.contender); why != "" {
			rows = append(rows, row{load: p.title, contender: q.contender, note: why})
		} else if !q.gone {
			there = append(there, q)
		}
	}
	started, err := b.startTeams(ctx, l, p, there)
	defer func() { closeAll(started) }()
	if err != nil {
		return nil, err
	}
	for i, q := range there {
		t, failed, err := b.warmUp(ctx, l, p, q, started[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", q.contender.title(), err)
		}
		rows = append(rows, failed...)
		if t != nil {
			teams = append(teams, t)
		}
	}
	for range b.rounds(l) {
		for _, t := range slices.Clone(teams) {
			rate, err := t.serve(ctx, p, b.options.duration)
			if why, ok := errors.AsType[measure.RefusalError](err); ok && t.contender.role != subjectRole {
				t.workers.Close()
				t.queue.gone = true
				teams = slices.DeleteFunc(teams, func(other *queueTeam) bool { return other == t })
				rows = append(rows, b.cannot(p, t.contender, string(why)))
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.contender.title(), err)
			}
			fmt.Fprintf(b.log, "  %-60s %12s %s, %d at a time\n",
				t.contender.title(), number(rate), l.rateUnit(), p.workers)
			t.row.figures = append(t.row.figures, rate)
		}
	}
	measured := make([]row, len(teams))
	for i, t := range teams {
		if err := t.end(ctx, p); err != nil {
			return nil, err
		}
		measured[i] = t.row
	}
	judge(measured, p.limit)
	return slices.Concat(measured, rows), nil
}

// startTeams starts a team for each queue, all at the same time: none is measured yet.
func (b *bench) startTeams(ctx context.Context, l *load, p *phase, queues []*filledQueue) ([]*team, error) {
	teams := make([]*team, len(queues))
	err := together(ctx, len(queues), func(_ context.Context, i int) (err error) {
		teams[i], err = b.startTeam(ctx, l, p, queues[i])
		return err
	})
	return slices.DeleteFunc(teams, func(t *team) bool { return t == nil }), err
}

// startTeam starts a team for a queue.
func (b *bench) startTeam(ctx context.Context, l *load, p *phase, q *filledQueue) (*team, error) {
	c := q.contender
	c.lockers = p.workers
	c.required = p.required(l, &c)
	t, err := b.teamAt(ctx, l, c, q.root)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.title(), err)
	}
	t.workers[0].Limit = taskLimit
	return t, nil
}

// warmUp lets a team serve its queue for a while, so that what compiles as it runs has run. A Java client that cannot
// serve a deep queue is tried again with larger packets; a peer that still cannot is left out. The rows say why.
func (b *bench) warmUp(ctx context.Context, l *load, p *phase, q *filledQueue, t *team) (*queueTeam, []row, error) {
	var rows []row
	for {
		qt := &queueTeam{team: t, queue: q, row: row{load: p.title, contender: t.contender, unit: l.rateUnit()}}
		err := qt.warmUp(ctx, b, p)
		if err == nil {
			return qt, rows, nil
		}
		t.workers.Close()
		why, ok := errors.AsType[measure.RefusalError](err)
		if !ok || q.contender.role == subjectRole {
			return nil, nil, err
		}
		note := string(why)
		if nodes, ok := q.filler.(*nodeFiller); ok && isCurator(q.contender.kind) {
			note += nodes.tooLong(q.depth, q.contender.packet)
		}
		rows = append(rows, b.cannot(p, q.contender, note))
		if l.depth < deep || !isCurator(q.contender.kind) || q.contender.packet > 0 {
			q.gone = true
			return nil, rows, nil
		}
		q.contender.packet = widePacket
		q.contender.name += fmt.Sprintf(", -Djute.maxbuffer=%d", widePacket)
		if t, err = b.startTeam(ctx, l, p, q); err != nil {
			return nil, nil, err
		}
	}
}

// cannot returns the row of a peer that cannot go on.
func (b *bench) cannot(p *phase, c contender, why string) row {
	r := row{load: p.title, contender: c, note: "cannot: " + why}
	fmt.Fprintf(b.log, "  %-60s %s\n", c.title(), r.note)
	return r
}

func (t *queueTeam) warmUp(ctx context.Context, b *bench, p *phase) (err error) {
	if t.before, err = t.memory(ctx); err != nil {
		return err
	}
	d := b.options.duration / 2
	if isCurator(t.contender.kind) {
		d = max(d, time.Second)
	}
	_, err = t.serve(ctx, p, d)
	return err
}

// serve takes or puts items for d. A queue that items are taken from is refilled when it is half empty and at the end,
// which is not counted. It returns how many items a second that were.
func (t *queueTeam) serve(ctx context.Context, p *phase, d time.Duration) (float64, error) {
	var items int64
	var took time.Duration
	order := p.order
	if p.order == "take" {
		order = fmt.Sprintf("take %d", t.queue.depth/2)
	}
	for took < d {
		n, passed, _, err := t.workers.Run(measure.Millis(order, d-took+time.Millisecond))
		if err != nil {
			return 0, err
		}
		items += n
		took += passed
		if p.order != "take" {
			t.queue.items += p.nodes(&t.contender, n)
		} else if err := t.queue.filler.fill(ctx, int(n)); err != nil {
			return 0, err
		}
	}
	if items == 0 {
		return 0, measure.RefusalError(fmt.Sprintf("not one item in %v", took.Round(time.Millisecond)))
	}
	return float64(items) / took.Seconds(), nil
}

// end ends the team, and checks that what it says that it has done was done: that no more was taken, and no less.
func (t *queueTeam) end(ctx context.Context, p *phase) error {
	if t.queue.growth == nil {
		after, err := t.memory(ctx)
		if err != nil {
			return err
		}
		growth := max(0, after.client-t.before.client)
		t.queue.growth = &growth
	}
	t.workers.Close()
	got, err := t.queue.filler.count(ctx)
	if err == nil && got != t.queue.items {
		err = fmt.Errorf("%s: %s: %d items are there, want %d", t.contender.title(), p.title, got, t.queue.items)
	}
	return err
}

// memoryRows tells what an item costs the server, and what the depth costs the consumer.
func memoryRows(l *load, queues []*filledQueue) []row {
	n := number(float64(l.depth))
	var server, client []row
	for _, q := range queues {
		c := q.contender
		c.required = 0
		r := row{contender: c, lessIsMore: true}
		if q.weight != nil && q.depth == l.depth {
			r.load, r.figures, r.unit = "server memory of each of "+n+" items", []float64{*q.weight}, "bytes"
			server = append(server, r)
		}
		if q.growth != nil {
			r.load = "memory of one consumer, more than before its first item, " + n + " items deep"
			r.figures, r.unit = []float64{*q.growth / 1e3}, "kB"
			client = append(client, r)
		}
	}
	judge(server, limit{})
	judge(client, limit{})
	return slices.Concat(server, client)
}
