package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// A bench is one run of this program.
type bench struct {
	options options
	servers *servers
	tools   *toolbox
	log     io.Writer
	hired   int // crews; no two have the same root
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
	crew      crew
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
			rows = append(rows, row{load: l.title, contender: c, note: "not measured: not installed: " + m + "; `make peers` installs it"})
			continue
		}
		there = append(there, c)
	}
	return there, rows
}

// root returns a path that nobody has used.
func (b *bench) root(l *load) string {
	b.hired++
	return fmt.Sprintf("/bench-%s-%d", l.key, b.hired)
}

// team starts a contender's workers, at a path of their own.
func (b *bench) team(ctx context.Context, l *load, c contender) (*team, error) {
	return b.teamAt(ctx, l, c, b.root(l))
}

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
	}}
	for i := range max(cmp.Or(c.processes, l.processes), 1) {
		p := t.plan
		if b.options.profile != "" && c.role != peerRole {
			p.profile = fmt.Sprintf("%s.%s.%d", b.options.profile, strings.TrimPrefix(root, "/bench-"), i)
		}
		program, args, err := b.tools.command(ctx, c.kind, &p)
		if err != nil {
			t.crew.dismiss()
			return nil, err
		}
		worker, err := hire(ctx, c.title(), program, args...)
		if err != nil {
			t.crew.dismiss()
			return nil, err
		}
		t.crew = append(t.crew, worker)
	}
	for _, p := range t.crew {
		if err := p.ready(); err != nil {
			t.crew.dismiss()
			return nil, err
		}
	}
	return t, nil
}

// teams starts all contenders and lets them warm up. The caller dismisses them, which come back with an error, too.
func (b *bench) teams(ctx context.Context, l *load) (teams []*team, rows []row, err error) {
	there, rows := b.available(l)
	for _, c := range there {
		t, err := b.team(ctx, l, c)
		if err != nil {
			return teams, nil, err
		}
		teams = append(teams, t)
		if _, err := t.crew.order(milliseconds(cmp.Or(l.order, "run"), c.warmup(b.options.duration))); err != nil {
			return teams, nil, err
		}
	}
	return teams, rows, nil
}

func dismiss(teams []*team) {
	for _, t := range teams {
		t.crew.dismiss()
	}
}

func milliseconds(order string, d time.Duration) string {
	return fmt.Sprintf("%s %d", order, d.Milliseconds())
}

// rates lets the contenders take turns for all rounds, and counts the cycles, or the items.
func rates(ctx context.Context, b *bench, l *load) ([]row, error) {
	teams, rows, err := b.teams(ctx, l)
	defer func() { dismiss(teams) }()
	if err != nil {
		return nil, err
	}
	measured := make([]row, len(teams))
	for range b.rounds(l) {
		for i, t := range teams {
			rate, _, err := t.round(cmp.Or(l.order, "run"), b.options.duration)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(b.log, "  %-60s %12s %s\n", t.contender.title(), number(rate), l.rateUnit())
			measured[i].figures = append(measured[i].figures, rate)
		}
	}
	for i, t := range teams {
		measured[i].load, measured[i].contender, measured[i].unit = l.title, t.contender, l.rateUnit()
	}
	judge(measured, l.limit)
	return slices.Concat(measured, rows), nil
}

// round has a crew cycle for d, and returns how many cycles a second that were, ends included, and the cycles if they are traced.
func (t *team) round(order string, d time.Duration) (float64, []cycle, error) {
	answers, err := t.crew.order(milliseconds(order, d))
	if err != nil {
		return 0, nil, err
	}
	var n, took int64
	var cycles []cycle
	for _, a := range answers {
		if len(a.figures) != 2 {
			return 0, nil, fmt.Errorf("%s: %s: figures %v, want two", t.contender.title(), order, a.figures)
		}
		n += a.figures[0]
		took = max(took, a.figures[1])
		cycles = append(cycles, a.cycles...)
	}
	return float64(n) / time.Duration(took).Seconds(), cycles, nil
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
			ratio := median(s.figures) / median(r.figures)
			if r.lessIsMore {
				ratio = 1 / ratio
			}
			r.ratios = append(r.ratios, comparison{strings.TrimPrefix(s.contender.server, "the "), ratio})
		}
	}
}

func median(figures []float64) float64 {
	sorted := slices.Sorted(slices.Values(figures))
	switch n := len(sorted); {
	case n == 0:
		return 0
	case n%2 == 1:
		return sorted[n/2]
	default:
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
}

// percentile returns the smallest figure that so many percent do not exceed. There must be one.
func percentile(sorted []float64, percent int) float64 {
	return sorted[(len(sorted)*percent+99)/100-1]
}
