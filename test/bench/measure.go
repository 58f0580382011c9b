package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seed-a3166700/turnstile/internal/measure"
)

// A bench is one run of this program.
type bench struct {
	options options
	servers *servers
	tools   *toolbox
	log     io.Writer
	roots   int // that were made; no two contenders have the same
}

// rounds is how often each contender of the load has its turn.
func (b *bench) rounds(l *load) int {
	if l.rounds > 0 {
		return min(b.options.rounds, l.rounds)
	}
	return b.options.rounds
}

// A team is a contender that is connected and ready.
type team struct {
	contender contender
	workers   measure.Processes
	backend   *backend
	plan      plan
}

// available returns the load's contenders that can be measured here, and rows that say why the others cannot.
func (b *bench) available(l *load) (there []contender, rows []row) {
	for _, c := range l.contenders {
		if !b.options.who.MatchString(c.title()) {
			continue
		}
		if c.skip != "" {
			rows = append(rows, row{load: l.title, contender: c, note: c.skip})
			continue
		}
		if m := c.unavailable(); m != "" {
			note := "not measured: not installed: " + m + "; `make peers` installs it"
			rows = append(rows, row{load: l.title, contender: c, note: note})
			continue
		}
		there = append(there, c)
	}
	return there, rows
}

// root returns a path that was not used before.
func (b *bench) root(l *load) string {
	b.roots++
	return fmt.Sprintf("/bench-%s-%d", l.key, b.roots)
}

// teamAt starts a contender's workers at a path.
func (b *bench) teamAt(ctx context.Context, l *load, c contender, root string) (*team, error) {
	backend, err := b.servers.get(ctx, c.server)
	if err != nil {
		return nil, err
	}
	t := &team{contender: c, backend: backend, plan: plan{
		addr:    backend.addr,
		root:    root,
		clients: max(cmp.Or(c.clients, l.clients), 1),
		lockers: cmp.Or(c.lockers, l.lockers),
		locks:   max(l.locks, 1),
		strict:  c.strict,
		retain:  c.retain,
		packet:  c.packet,
		hooks:   c.hooks,
	}}
	for i := range max(cmp.Or(c.processes, l.processes), 1) {
		p := t.plan
		if b.options.profile != "" && c.role != peerRole {
			p.profile = fmt.Sprintf("%s.%s.%d", b.options.profile, strings.TrimPrefix(root, "/bench-"), i)
		}
		cmd, err := b.tools.command(ctx, c.kind, &p)
		if err != nil {
			t.workers.Close()
			return nil, err
		}
		worker, err := measure.Start(c.title(), cmd)
		if err != nil {
			t.workers.Close()
			return nil, err
		}
		t.workers = append(t.workers, worker)
	}
	if err := t.workers.Ready(); err != nil {
		t.workers.Close()
		return nil, err
	}
	return t, nil
}

// teams starts all contenders and lets them warm up. The caller ends them with closeAll, also after an error.
func (b *bench) teams(ctx context.Context, l *load) (teams []*team, rows []row, err error) {
	there, rows := b.available(l)
	for _, c := range there {
		t, err := b.teamAt(ctx, l, c, b.root(l))
		if err != nil {
			return teams, nil, err
		}
		teams = append(teams, t)
		if _, err := t.workers.Order(measure.Millis(cmp.Or(l.order, "run"), c.warmup(b.options.duration))); err != nil {
			return teams, nil, err
		}
	}
	return teams, rows, nil
}

func closeAll(teams []*team) {
	for _, t := range teams {
		t.workers.Close()
	}
}

// rates lets the contenders take turns for all rounds, and counts the cycles, or the items.
func rates(ctx context.Context, b *bench, l *load) ([]row, error) {
	return rounds(ctx, b, l, "run", func(r *round) ([]sample, error) {
		return []sample{{title: l.title, unit: l.rateUnit(), figure: r.rate}}, nil
	})
}

// A round is what a contender has done in one round.
type round struct {
	rate   float64 // cycles or items a second, ends included
	cycles []measure.Cycle
}

// rounds lets the contenders take turns for all rounds, and collects the samples that read makes of them.
func rounds(ctx context.Context, b *bench, l *load, order string, read func(*round) ([]sample, error)) ([]row, error) {
	teams, absent, err := b.teams(ctx, l)
	defer func() { closeAll(teams) }()
	if err != nil {
		return nil, err
	}
	var tables [][]row
	for range b.rounds(l) {
		for i, t := range teams {
			n, took, cycles, err := t.workers.Run(measure.Millis(cmp.Or(l.order, order), b.options.duration))
			if err != nil {
				return nil, err
			}
			r := &round{float64(n) / took.Seconds(), cycles}
			samples, err := read(r)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.contender.title(), err)
			}
			tables = collect(tables, samples, len(teams), i, t.contender)
			fmt.Fprintf(b.log, "  %-60s %12s %s", t.contender.title(), number(r.rate), l.rateUnit())
			if last := samples[len(samples)-1]; len(last.also) > 0 {
				fmt.Fprintf(b.log, ", %s", last.text())
			}
			fmt.Fprintln(b.log)
		}
	}
	var more []row
	for i, table := range tables {
		if i > 0 { // the first table alone has a promise against peers
			for j := range table {
				table[j].contender.required = 0
			}
			more = slices.Concat(more, table)
		}
		judge(table, l.limit)
	}
	if len(tables) == 0 {
		return absent, nil
	}
	return slices.Concat(tables[0], absent, more), nil
}

// judge compares the subjects with the peers of one load, and with the limit.
func judge(rows []row, subjects limit) {
	for i := range rows {
		r := &rows[i]
		if r.contender.role == subjectRole {
			r.limit = subjects
		}
		for j := range rows {
			s := &rows[j]
			if !s.contender.meets(&r.contender) || len(s.figures) == 0 || len(r.figures) == 0 {
				continue
			}
			ratio := measure.Median(s.figures) / measure.Median(r.figures)
			if r.lessIsMore {
				ratio = 1 / ratio
			}
			r.ratios = append(r.ratios, comparison{strings.TrimPrefix(s.contender.server, "the "), ratio})
		}
	}
}
