package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// A part is a half of what is measured, with a section of its own in docs/benchmarks-all.md. It can be measured and
// written without the other.
type part struct {
	name           string
	title          string
	loads          func() []load
	few            string // what has fewer rounds
	summary        string // what the figures say in general; may be empty
	configurations []fact // how everybody was configured
	methods        []fact // what figures mean that do not explain themselves
}

var parts = []part{
	{name: "locks", title: "Locks", loads: lockLoads, few: "latencies and crowds of waiters", configurations: slices.Concat(serverConfigurations, lockConfigurations), methods: lockMethods},
	{
		name: "queues", title: "Queues", loads: queueLoads, few: "all but puts", summary: queueSummary,
		configurations: slices.Concat(serverConfigurations, queueConfigurations), methods: queueMethods,
	},
}

// A section is what stands below a heading of a page, to the next one of its kind.
type section struct{ title, text string }

const heading = "## "

// repeatTitle is the last section's.
const repeatTitle = "Repeat it"

// page returns the page docs/benchmarks-all.md: the sections that were written now, and those of the old page about other
// parts.
func page(old string, written []section) []byte {
	var b bytes.Buffer
	b.WriteString(pageHead)
	kept := sections(old)
	for _, p := range parts {
		all := slices.Concat(written, kept)
		if i := slices.IndexFunc(all, func(s section) bool { return s.title == p.title }); i >= 0 {
			fmt.Fprintf(&b, "\n%s%s\n\n%s\n", heading, p.title, all[i].text)
		}
	}
	fmt.Fprintf(&b, "\n%s%s\n\n%s\n", heading, repeatTitle, repetition)
	return b.Bytes()
}

const pageHead = `# Benchmarks: all figures

Turnstile beside other projects, written by ` + "`make bench`" + `; [the summary](benchmarks.md) has the main figures.
The clients run on the same machine as the servers. All contenders of a load ran in the same run, each in processes of
its own, and took turns, round by round; the figure is the median of the rounds. A ratio above 1 means that Turnstile is
that many times as good, on the server in brackets. Each part says when and on which machine it was measured.
`

const repetition = "`make peers` installs the peers on Debian and Ubuntu, `make bench` runs all of it, `make bench BENCHFLAGS='-part queues'` one part, which leaves the other one on this page alone, and\n" +
	"`make bench BENCHFLAGS='-only hot -duration 2s'` some loads, of which it prints the figures and does not touch this page.\n" +
	"`turnstile bench lock --processes P --goroutines G --locks L --duration D --connect HOST:PORT` measures one configuration on your own ensemble."

// sections cuts a page at its headings.
func sections(page string) []section {
	var all []section
	for line := range strings.Lines(page) {
		if title, ok := strings.CutPrefix(line, heading); ok {
			all = append(all, section{title: strings.TrimSpace(title)})
		} else if len(all) > 0 {
			all[len(all)-1].text += line
		}
	}
	for i := range all {
		all[i].text = strings.TrimSpace(all[i].text)
	}
	return all
}

// report is the section of a part: when and where it was measured, the results, who was measured and how.
func report(p *part, m *machine, o options, command, results string) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Measured by `%s` on %s, in %v: %d rounds of %v each, after a warm-up (%d for %s).\n\n",
		command, m.date, m.took, o.rounds, o.duration, min(o.rounds, fewRounds), p.few)
	if p.summary != "" {
		fmt.Fprintf(&b, "%s\n\n", p.summary)
	}
	b.WriteString(results)
	for _, s := range []struct {
		title string
		facts []fact
	}{
		{"The machine", m.facts},
		{"Versions", m.versions},
		{"The contenders", p.configurations},
		{"What is measured", p.methods},
	} {
		fmt.Fprintf(&b, "\n### %s: %s\n\n", p.title, strings.ToLower(s.title))
		for _, f := range s.facts {
			fmt.Fprintf(&b, "- **%s**: %s\n", f.name, f.value)
		}
	}
	return strings.TrimSpace(b.String())
}
