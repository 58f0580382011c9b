package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-a3166700/turnstile/internal/measure"
)

// handOvers is rates with a second table: how long it takes from an unlock until the next one has the lock.
func handOvers(ctx context.Context, b *bench, l *load) ([]row, error) {
	title := fmt.Sprintf("%d processes, strict FIFO: from an unlock to the next one's lock: p50", l.processes)
	return rounds(ctx, b, l, "trace", func(r *round) ([]sample, error) {
		err := exclusive(r.cycles)
		return []sample{{title: l.title, unit: "cycles/s", figure: r.rate}, spread(title, gaps(r.cycles))}, err
	})
}

// latencies is how long acquiring takes.
func latencies(ctx context.Context, b *bench, l *load) ([]row, error) {
	return rounds(ctx, b, l, "trace", func(r *round) ([]sample, error) {
		err := exclusive(r.cycles)
		return []sample{spread(l.title, measure.Waits(r.cycles))}, err
	})
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
	s.figure = measure.Percentile(figures, 50) / 1e3
	s.also = []namedFigure{{"p99", measure.Percentile(figures, 99) / 1e3}, {"max", figures[len(figures)-1] / 1e3}}
	return s
}

func (s *sample) text() string {
	parts := []string{number(s.figure) + " " + s.unit}
	for _, a := range s.also {
		parts = append(parts, a.name+" "+number(a.figure))
	}
	return strings.Join(parts, ", ")
}

// exclusive sorts the cycles by when the lock was acquired, and returns an error if two had it at once: all processes
// have the same clock.
func exclusive(cycles []measure.Cycle) error {
	slices.SortFunc(cycles, func(a, b measure.Cycle) int { return cmp.Compare(a.Locked, b.Locked) })
	for i := 1; i < len(cycles); i++ {
		if early := cycles[i-1].Unlocked - cycles[i].Locked; early > 0 {
			return fmt.Errorf("two had the lock at once, for %d ns: this is no lock", early)
		}
	}
	return nil
}

// gaps is how long the lock was free between two cycles, in nanoseconds. The cycles are sorted.
func gaps(cycles []measure.Cycle) []float64 {
	var all []float64
	for i := 1; i < len(cycles); i++ {
		all = append(all, float64(cycles[i].Locked-cycles[i-1].Unlocked))
	}
	return all
}
