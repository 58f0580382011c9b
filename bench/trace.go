package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// handOvers is rates with a second table: how long it takes from one's unlock until the next has the lock.
func handOvers(ctx context.Context, b *bench, l *load) ([]row, error) {
	title := fmt.Sprintf("%d processes, strict FIFO: from an unlock to the next one's lock: p50", l.processes)
	return traces(ctx, b, l, func(r *roundTrace) []sample {
		return []sample{{title: l.title, unit: "cycles/s", figure: r.rate}, spread(title, gaps(r.cycles))}
	})
}

// latencies is how long acquiring takes.
func latencies(ctx context.Context, b *bench, l *load) ([]row, error) {
	return traces(ctx, b, l, func(r *roundTrace) []sample {
		return []sample{spread(l.title, waits(r.cycles))}
	})
}

// A roundTrace is all cycles of one round, in the order in which the lock was had.
type roundTrace struct {
	rate   float64
	cycles []cycle
}

// A sample is what one round says for one table.
type sample struct {
	title, unit string
	figure      float64
	lessIsMore  bool
	also        []namedFigure
}

type namedFigure struct {
	name   string
	figure float64
}

// traces lets the contenders take turns for all rounds with every cycle written down.
func traces(ctx context.Context, b *bench, l *load, read func(*roundTrace) []sample) ([]row, error) {
	teams, absent, err := b.teams(ctx, l)
	defer func() { dismiss(teams) }()
	if err != nil {
		return nil, err
	}
	var tables [][]row
	for range b.rounds(l) {
		for i, t := range teams {
			rate, cycles, err := t.round(cmp.Or(l.order, "trace"), b.options.duration)
			if err != nil {
				return nil, err
			}
			if err := exclusive(cycles); err != nil {
				return nil, fmt.Errorf("%s: %w", t.contender.title(), err)
			}
			samples := read(&roundTrace{rate, cycles})
			tables = collect(tables, samples, len(teams), i, t.contender)
			fmt.Fprintf(b.log, "  %-60s %12s %s, %s\n", t.contender.title(), number(rate), l.rateUnit(), samples[len(samples)-1].text())
		}
	}
	var rows []row
	for i, table := range tables {
		if i > 0 { // the first one's title alone has a promise against peers
			for j := range table {
				table[j].contender.required = 0
			}
		}
		judge(table, l.limit)
		rows = append(rows, table...)
		if i == 0 {
			rows = append(rows, absent...)
		}
	}
	return rows, nil
}

// collect adds a round's samples of contender i of n to the tables, one table for each sample.
func collect(tables [][]row, samples []sample, n, i int, c contender) [][]row {
	for len(tables) < len(samples) {
		tables = append(tables, make([]row, n))
	}
	for k, s := range samples {
		r := &tables[k][i]
		r.load, r.contender, r.unit, r.lessIsMore = s.title, c, s.unit, s.lessIsMore
		r.figures = append(r.figures, s.figure)
		for j, a := range s.also {
			if len(r.also) <= j {
				r.also = append(r.also, series{name: a.name})
			}
			r.also[j].figures = append(r.also[j].figures, a.figure)
		}
	}
	return tables
}

// spread is the median of figures in nanoseconds, and what lies beyond it.
func spread(title string, figures []float64) sample {
	s := sample{title: title, unit: "µs", lessIsMore: true}
	if len(figures) == 0 {
		return s
	}
	slices.Sort(figures)
	s.figure = percentile(figures, 50) / 1e3
	s.also = []namedFigure{{"p99", percentile(figures, 99) / 1e3}, {"max", figures[len(figures)-1] / 1e3}}
	return s
}

func (s *sample) text() string {
	parts := []string{number(s.figure) + " " + s.unit}
	for _, a := range s.also {
		parts = append(parts, a.name+" "+number(a.figure))
	}
	return strings.Join(parts, ", ")
}

// exclusive sorts the cycles as the lock was had, and returns an error if two had it at once: the clock is one for all processes.
func exclusive(cycles []cycle) error {
	slices.SortFunc(cycles, func(a, b cycle) int { return cmp.Compare(a.locked, b.locked) })
	for i := 1; i < len(cycles); i++ {
		if early := cycles[i-1].unlocked - cycles[i].locked; early > 0 {
			return fmt.Errorf("two had the lock at once, for %d ns: this is no lock", early)
		}
	}
	return nil
}

// gaps is how long the lock was nobody's between two cycles, in nanoseconds. The cycles are sorted.
func gaps(cycles []cycle) []float64 {
	var all []float64
	for i := 1; i < len(cycles); i++ {
		all = append(all, float64(cycles[i].locked-cycles[i-1].unlocked))
	}
	return all
}

// waits is how long each cycle waited for the lock, in nanoseconds.
func waits(cycles []cycle) []float64 {
	all := make([]float64, len(cycles))
	for i, c := range cycles {
		all[i] = float64(c.locked - c.began)
	}
	return all
}
