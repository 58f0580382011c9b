package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-a3166700/turnstile/internal/measure"
)

// A row is a contender's result under one load.
type row struct {
	load       string
	contender  contender
	note       string    // why there are no figures
	figures    []float64 // one a round
	also       []series
	unit       string
	lessIsMore bool
	paired     bool         // each figure is a difference within one round
	ratios     []comparison // with the subjects
	limit      limit
}

// A series is a second figure of each round.
type series struct {
	name    string
	figures []float64
}

// A comparison is how many times as good as the row's the figure of the subject on a server is.
type comparison struct {
	server string
	ratio  float64
}

// A limit is what a figure must reach by itself.
type limit struct {
	sense sense
	value float64
}

type sense int

const (
	unlimited sense = iota
	atLeast
	atMost
	exactly
)

func (l limit) sign() string { return [...]string{"", "≥", "≤", "="}[l.sense] }

func (l limit) holds(figure float64) bool {
	switch l.sense {
	case atLeast:
		return figure >= l.value
	case atMost:
		return figure <= l.value
	case exactly:
		return figure == l.value
	default:
		return true
	}
}

// promised reports whether the row is about something that is promised, and whether it is kept.
func (r *row) promised() (promised, kept bool) {
	switch {
	case len(r.figures) == 0:
		return false, false
	case r.paired && r.limit.sense != unlimited:
		low, high, ok := medianBounds(r.figures)
		kept = ok && r.limit.holds(high)
		return kept || ok && !r.limit.holds(low), kept
	case r.limit.sense != unlimited:
		return true, r.limit.holds(measure.Median(r.figures))
	case r.contender.required > 0 && len(r.ratios) > 0:
		return true, !slices.ContainsFunc(r.ratios, func(c comparison) bool { return c.ratio < r.contender.required })
	default:
		return false, false
	}
}

// writeTable prints all rows as one Markdown table.
func writeTable(w io.Writer, rows []row) {
	fmt.Fprintln(w, "| load | contender | configuration | median | lowest – highest | Turnstile against it | target |")
	fmt.Fprintln(w, "| --- | --- | --- | ---: | ---: | ---: | ---: |")
	last := ""
	for _, r := range rows {
		title := r.load
		if title == last {
			title = ""
		}
		last = r.load
		if r.note != "" {
			fmt.Fprintf(w, "| %s | %s | %s | %s | | | |\n", title, r.contender.title(), r.contender.config, r.note)
			continue
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s – %s | %s | %s |\n", title, r.contender.title(), r.contender.config,
			r.value(), number(slices.Min(r.figures)), number(slices.Max(r.figures)), r.against(), r.target())
	}
}

// value is the median, with the medians of what was measured besides.
func (r *row) value() string {
	parts := []string{strings.TrimSpace(number(measure.Median(r.figures)) + " " + r.unit)}
	for _, s := range r.also {
		parts = append(parts, s.name+" "+number(measure.Median(s.figures)))
	}
	if r.paired {
		parts = append(parts, certainty(r.figures))
	}
	return strings.Join(parts, ", ")
}

// certainty says how sure the median of differences is.
func certainty(figures []float64) string {
	low, high, ok := medianBounds(figures)
	if !ok {
		return "too few rounds to tell"
	}
	text := fmt.Sprintf("95 %% sure: %s to %s", number(low), number(high))
	if low <= 0 && high >= 0 {
		text += ", within noise"
	}
	return text
}

// medianBounds returns between which of the figures the median of all that could be measured lies, with a certainty of
// 95 %, whatever their distribution: each figure is above it as likely as below it. It needs six figures.
func medianBounds(figures []float64) (low, high float64, ok bool) {
	const doubt = 0.05
	n := len(figures)
	rank, beyond := 0, 0.0 // that so many figures or fewer are on one side
	for p := math.Pow(0.5, float64(n)); 2*(beyond+p) <= doubt; rank++ {
		beyond += p
		p *= float64(n-rank) / float64(rank+1)
	}
	if rank == 0 {
		return 0, 0, false
	}
	sorted := slices.Sorted(slices.Values(figures))
	return sorted[rank-1], sorted[n-rank], true
}

// against tells how the subjects compare with the row.
func (r *row) against() string {
	if len(r.ratios) == 1 {
		return ratio(r.ratios[0].ratio)
	}
	var parts []string
	for _, c := range r.ratios {
		parts = append(parts, ratio(c.ratio)+" ("+c.server+")")
	}
	return strings.Join(parts, ", ")
}

func ratio(v float64) string {
	switch {
	case math.IsInf(v, 0) || math.IsNaN(v):
		return "–"
	case v >= 100:
		return number(v) + " ×"
	case v < 0.1:
		return fmt.Sprintf("%.1g ×", v)
	default:
		return fmt.Sprintf("%.2f ×", v)
	}
}

func (r *row) target() string {
	promised, kept := r.promised()
	if r.paired && !promised && r.limit.sense != unlimited {
		return strings.TrimSpace(r.limit.sign()+" "+number(r.limit.value)+" "+r.unit) + " not certain"
	}
	if !promised {
		return ""
	}
	verdict := "**met**"
	if !kept {
		verdict = "**NOT met**"
	}
	if r.limit.sense != unlimited {
		return strings.TrimSpace(r.limit.sign()+" "+number(r.limit.value)+" "+r.unit) + " " + verdict
	}
	return fmt.Sprintf("≥ %s × %s", strconv.FormatFloat(r.contender.required, 'f', -1, 64), verdict)
}

// writeVerdict says how many targets were met, and names the others.
func writeVerdict(w io.Writer, rows []row) {
	all, met := 0, 0
	var not []string
	for _, r := range rows {
		switch promised, kept := r.promised(); {
		case kept:
			all++
			met++
		case promised:
			all++
			target := strings.TrimSuffix(r.target(), " **NOT met**")
			not = append(not, fmt.Sprintf("- %s, %s: target %s", r.load, r.contender.title(), target))
		}
	}
	fmt.Fprintf(w, "Targets met: %d of %d.\n", met, all)
	if len(not) > 0 {
		fmt.Fprintf(w, "\nNOT met:\n\n%s\n", strings.Join(not, "\n"))
	}
}

// number writes a figure with thousands apart, and with digits behind the point where there is little before it.
func number(v float64) string {
	if v != math.Trunc(v) && math.Abs(v) < 10 {
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	digits := strconv.FormatInt(int64(math.Round(v)), 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
