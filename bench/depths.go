package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
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

// A depot is a contender's queue, kept at its depth.
type depot struct {
	contender contender
	root      string
	stock     stock
	depth     int
	items     int      // that must be there
	gone      bool     // the contender cannot
	weight    *float64 // of each item, on the server, in bytes; nil if the server does not tell
	growth    *float64 // of one consumer's memory, from before its first item, in bytes; nil as long as it is not known
}

// atDepth fills a queue for every contender and lets them take turns, phase by phase. Then it ends the servers.
func atDepth(ctx context.Context, b *bench, l *load, phases []phase) ([]row, error) {
	there, absent := b.available(l)
	var depots []*depot
	defer func() {
		for _, d := range depots {
			d.stock.close()
		}
		b.servers.end() // there is much on them
	}()
	for _, c := range there {
		d, err := b.depot(ctx, l, c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.title(), err)
		}
		depots = append(depots, d)
	}
	var rows []row
	for i := range phases {
		measured, err := b.phase(ctx, l, &phases[i], depots)
		if err != nil {
			return nil, err
		}
		rows = append(rows, measured...)
		if i == 0 {
			rows = append(rows, absent...)
		}
	}
	if l.depth >= deep {
		rows = append(rows, memoryRows(l, depots)...)
	}
	return rows, nil
}

// depot makes a contender's queue and fills it.
func (b *bench) depot(ctx context.Context, l *load, c contender) (*depot, error) {
	backend, err := b.servers.get(ctx, c.server)
	if err != nil {
		return nil, err
	}
	d := &depot{contender: c, root: b.root(l), depth: cmp.Or(c.depth, l.depth)}
	if d.stock, err = openStock(ctx, c.kind, backend.addr, d.root); err != nil {
		return nil, err
	}
	start := time.Now()
	fill := func() error {
		start = time.Now()
		return d.fill(ctx, d.depth)
	}
	if l.depth < deep || backend.weight == nil {
		err = fill()
	} else {
		err = d.weigh(ctx, backend, fill)
	}
	if err != nil {
		d.stock.close()
		return nil, err
	}
	fmt.Fprintf(b.log, "  %-60s %12s items in %v\n", c.title(), number(float64(d.depth)), time.Since(start).Round(time.Millisecond))
	return d, nil
}

// weigh fills the queue and finds out what that costs the server.
func (d *depot) weigh(ctx context.Context, server *backend, fill func() error) error {
	before, err := server.weight(ctx)
	if err != nil {
		return err
	}
	if err := fill(); err != nil {
		return err
	}
	after, err := server.weight(ctx)
	each := max(0, after-before) / float64(d.depth)
	d.weight = &each
	return err
}

func (d *depot) fill(ctx context.Context, n int) error {
	d.items += n
	return d.stock.fill(ctx, n)
}

// A stand is a team at its depot.
type stand struct {
	*team
	depot  *depot
	row    row
	before need // any item was taken
}

// phase lets the teams of all depots take turns. Who cannot take from a queue so deep, as it turns out, is told of in a row.
func (b *bench) phase(ctx context.Context, l *load, p *phase, depots []*depot) ([]row, error) {
	var stands []*stand // some of them with another team than they began with
	var rows []row
	defer func() {
		for _, s := range stands {
			s.crew.dismiss()
		}
	}()
	var there []*depot
	for _, d := range depots {
		if why := p.skip(&d.contender); why != "" {
			rows = append(rows, row{load: p.title, contender: d.contender, note: why})
		} else if !d.gone {
			there = append(there, d)
		}
	}
	teams, err := b.teamsAt(ctx, l, p, there)
	defer func() { dismiss(teams) }()
	if err != nil {
		return nil, err
	}
	for i, d := range there {
		s, failed, err := b.settle(ctx, l, p, d, teams[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.contender.title(), err)
		}
		rows = append(rows, failed...)
		if s != nil {
			stands = append(stands, s)
		}
	}
	for range b.rounds(l) {
		for _, s := range slices.Clone(stands) {
			rate, err := s.serve(ctx, p, b.options.duration)
			if why, ok := errors.AsType[refusal](err); ok && s.contender.role != subjectRole {
				s.crew.dismiss()
				s.depot.gone = true
				stands = slices.DeleteFunc(stands, func(other *stand) bool { return other == s })
				rows = append(rows, b.cannot(p, s.contender, string(why)))
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.contender.title(), err)
			}
			fmt.Fprintf(b.log, "  %-60s %12s %s, %d at a time\n", s.contender.title(), number(rate), l.rateUnit(), p.workers)
			s.row.figures = append(s.row.figures, rate)
		}
	}
	measured := make([]row, len(stands))
	for i, s := range stands {
		if err := s.leave(ctx, p); err != nil {
			return nil, err
		}
		measured[i] = s.row
	}
	judge(measured, p.limit)
	return slices.Concat(measured, rows), nil
}

// teamsAt starts a team for each depot, all at the same time: none is measured yet.
func (b *bench) teamsAt(ctx context.Context, l *load, p *phase, depots []*depot) ([]*team, error) {
	teams := make([]*team, len(depots))
	errs := make([]error, len(depots))
	var group sync.WaitGroup
	for i, d := range depots {
		group.Go(func() { teams[i], errs[i] = b.hand(ctx, l, p, d) })
	}
	group.Wait()
	return slices.DeleteFunc(teams, func(t *team) bool { return t == nil }), errors.Join(errs...)
}

// hand starts a team for a depot.
func (b *bench) hand(ctx context.Context, l *load, p *phase, d *depot) (*team, error) {
	c := d.contender
	c.lockers = p.workers
	c.required = p.required(l, &c)
	t, err := b.teamAt(ctx, l, c, d.root)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.title(), err)
	}
	t.crew[0].limit = taskLimit
	return t, nil
}

// settle lets a depot's team warm up. A Java client that cannot, where the queue is deep, is given larger packets; a peer that cannot then is left out. The
// rows say why.
func (b *bench) settle(ctx context.Context, l *load, p *phase, d *depot, t *team) (*stand, []row, error) {
	var rows []row
	for {
		s := &stand{team: t, depot: d, row: row{load: p.title, contender: t.contender, unit: l.rateUnit()}}
		err := s.warmUp(ctx, b, p)
		if err == nil {
			return s, rows, nil
		}
		t.crew.dismiss()
		why, ok := errors.AsType[refusal](err)
		if !ok || d.contender.role == subjectRole {
			return nil, nil, err
		}
		note := string(why)
		if nodes, ok := d.stock.(*nodeStock); ok && isCurator(d.contender.kind) {
			note += nodes.tooLong(d.depth, d.contender.packet)
		}
		rows = append(rows, b.cannot(p, d.contender, note))
		if l.depth < deep || !isCurator(d.contender.kind) || d.contender.packet > 0 {
			d.gone = true
			return nil, rows, nil
		}
		d.contender.packet = widePacket
		d.contender.name += fmt.Sprintf(", -Djute.maxbuffer=%d", widePacket)
		if t, err = b.hand(ctx, l, p, d); err != nil {
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

// warmUp lets the team serve for a while. What compiles as it runs must have run: filling has warmed the server.
func (s *stand) warmUp(ctx context.Context, b *bench, p *phase) (err error) {
	if s.before, err = s.memory(ctx); err != nil {
		return err
	}
	d := b.options.duration / 2
	if isCurator(s.contender.kind) {
		d = max(d, time.Second)
	}
	_, err = s.serve(ctx, p, d)
	return err
}

// serve has the team take items for d, and refills the queue when it is half empty and in the end, which is not counted. It returns how many items
// a second that were.
func (s *stand) serve(ctx context.Context, p *phase, d time.Duration) (float64, error) {
	var items int64
	var took time.Duration
	for took < d {
		order := milliseconds(p.order, d-took+time.Millisecond)
		if p.order == "take" {
			order = milliseconds(fmt.Sprintf("take %d", s.depot.depth/2), d-took+time.Millisecond)
		}
		a, err := s.crew[0].order(order)
		if err != nil {
			return 0, err
		}
		if len(a.figures) != 2 || a.figures[1] <= 0 { // no item at all is a figure, too: the rest of d may be short
			return 0, fmt.Errorf("%s: %s: figures %v, want items and a time", s.contender.title(), order, a.figures)
		}
		items += a.figures[0]
		took += time.Duration(a.figures[1])
		if p.order != "take" {
			s.depot.items += p.nodes(&s.contender, a.figures[0])
			continue
		}
		if err := s.depot.stock.fill(ctx, int(a.figures[0])); err != nil {
			return 0, err
		}
	}
	if items == 0 {
		return 0, refusal(fmt.Sprintf("not one item in %v", took.Round(time.Millisecond)))
	}
	return float64(items) / took.Seconds(), nil
}

// leave ends the team, and checks that what it says that it has done was done: nothing more was taken, and nothing less.
func (s *stand) leave(ctx context.Context, p *phase) error {
	if s.depot.growth == nil {
		after, err := s.memory(ctx)
		if err != nil {
			return err
		}
		growth := max(0, after.client-s.before.client)
		s.depot.growth = &growth
	}
	s.crew.dismiss()
	got, err := s.depot.stock.count(ctx)
	if err == nil && got != s.depot.items {
		err = fmt.Errorf("%s: %s: %d items are there, want %d", s.contender.title(), p.title, got, s.depot.items)
	}
	return err
}

// memoryRows tells what an item costs the server, and what the depth costs the consumer.
func memoryRows(l *load, depots []*depot) []row {
	n := number(float64(l.depth))
	var server, client []row
	for _, d := range depots {
		c := d.contender
		c.required = 0
		if d.weight != nil && d.depth == l.depth {
			server = append(server, row{load: "server memory of each of " + n + " items", contender: c, figures: []float64{*d.weight}, unit: "bytes", lessIsMore: true})
		}
		if d.growth != nil {
			client = append(client, row{
				load: "memory of one consumer, more than before its first item, " + n + " items deep", contender: c, figures: []float64{*d.growth / 1e3},
				unit: "kB", lessIsMore: true,
			})
		}
	}
	judge(server, limit{})
	judge(client, limit{})
	return slices.Concat(server, client)
}
