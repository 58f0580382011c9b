package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
)

// writeTable prints all rows as one Markdown table.
func writeTable(w io.Writer, rows []row) {
	fmt.Fprintln(w, "| load | contender | median | lowest – highest | Turnstile against the peer | must be |")
	fmt.Fprintln(w, "| --- | --- | ---: | ---: | ---: | ---: |")
	last := ""
	for _, r := range rows {
		title := r.load
		if title == last {
			title = ""
		}
		last = r.load
		ratio, required := "", ""
		if r.ratio > 0 {
			ratio = fmt.Sprintf("%.2f ×", r.ratio)
		}
		switch {
		case r.required > 0:
			required = fmt.Sprintf("≥ %.1f × %s", r.required, verdict(r.ratio >= r.required))
		case r.limit > 0 && r.lessIsMore:
			required = fmt.Sprintf("≤ %.0f %s %s", r.limit, r.unit, verdict(median(r.figures) <= r.limit))
		}
		fmt.Fprintf(w, "| %s | %s | %s %s | %s – %s | %s | %s |\n", title, r.name,
			number(median(r.figures)), r.unit, number(slices.Min(r.figures)), number(slices.Max(r.figures)), ratio, required)
	}
}

func verdict(reached bool) string {
	if reached {
		return "✓"
	}
	return "✗"
}

// number writes a figure with thousands apart.
func number(v float64) string {
	digits := strconv.FormatInt(int64(math.Round(v)), 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// writeReport writes the page docs/benchmarks.md: the machine, who was measured and how, and the table.
func writeReport(w io.Writer, m machine, s *servers, o options, table string) {
	fmt.Fprintln(w, "# Benchmarks")
	fmt.Fprintln(w)
	fmt.Fprintf(w, "Written by `make bench` on %s. All contenders of a load ran in the same run and took turns, round by round:\n", m.date)
	fmt.Fprintf(w, "%d rounds of %v each, after a warm-up; the figure is the median. The clients run on the same machine as the servers.\n", o.rounds, o.duration)
	fmt.Fprintln(w)
	fmt.Fprint(w, table)
	fmt.Fprintln(w)
	fmt.Fprintln(w, "## The machine")
	fmt.Fprintln(w)
	for _, f := range m.facts {
		fmt.Fprintf(w, "- %s: %s\n", f.name, f.value)
	}
	fmt.Fprintln(w)
	fmt.Fprintln(w, "## The contenders")
	fmt.Fprintln(w)
	for _, f := range s.facts() {
		fmt.Fprintf(w, "- **%s**: %s\n", f.name, f.value)
	}
	fmt.Fprintln(w)
	fmt.Fprintln(w, "## Repeat it")
	fmt.Fprintln(w)
	fmt.Fprintln(w, "`make peers` installs the peers on Debian and Ubuntu, `make bench` runs all of it, `make bench BENCHFLAGS='-only lock -duration 2s'` a part.")
	fmt.Fprintln(w, "`turnstile bench lock --goroutines G --locks L --duration D --connect HOST:PORT` measures one configuration on your own ensemble.")
}
