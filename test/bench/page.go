package main

import (
	"bytes"
	"embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed text
var texts embed.FS

// text returns a file of the folder text, which must exist.
func text(name string) string {
	b, err := texts.ReadFile("text/" + name + ".md")
	if err != nil {
		panic(err)
	}
	return string(b)
}

// A part is a half of what is measured, with a section of its own in figures.md. It can be measured and
// written without the other. Files of the folder text begin with its name.
type part struct {
	name    string
	title   string
	loads   func() []load
	few     string // what has fewer rounds
	summary string // what the figures say in general; may be empty
}

var parts = []part{
	{name: "locks", title: "Locks", loads: lockLoads, few: "latencies and lines of waiters"},
	{name: "queues", title: "Queues", loads: queueLoads, few: "all but puts", summary: text("queues-summary") + "\n"},
	{name: "caches", title: "Caches", loads: cacheLoads, few: "all"},
	{name: "barriers", title: "Barriers", loads: barrierLoads, few: "none"},
	{name: "counters", title: "Counters", loads: counterLoads, few: "none"},
	{name: "members", title: "Members", loads: memberLoads, few: "all"},
	{name: "seeing", title: "Seeing", loads: seeingLoads, few: "idle viewers"},
}

// partNames lists the parts, for people.
func partNames() string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.name
	}
	return strings.Join(names, ", ")
}

// A section is what stands below a heading of a page, to the next one of its kind.
type section struct{ title, text string }

const heading = "## "

// repeatTitle is the last section's.
const repeatTitle = "Repeat it"

// page returns figures.md: the new sections, and the old page's sections about other parts.
func page(old string, written []section) []byte {
	var b bytes.Buffer
	b.WriteString(text("all-head"))
	kept := sections(old)
	for _, p := range parts {
		all := slices.Concat(written, kept)
		if i := slices.IndexFunc(all, func(s section) bool { return s.title == p.title }); i >= 0 {
			fmt.Fprintf(&b, "\n%s%s\n\n%s\n", heading, p.title, all[i].text)
		}
	}
	fmt.Fprintf(&b, "\n%s%s\n\n%s\n", heading, repeatTitle, strings.TrimSpace(text("all-foot")))
	return b.Bytes()
}

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

// report is the section of a part: when and where it was measured, the results, and what was measured how.
func report(p *part, m *machine, o options, command, results string) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Measured by `%s` on %s, in %v:\n%d rounds of %v each, after a warm-up (%d for %s).\n\n",
		command, m.date, m.took, o.rounds, o.duration, min(o.rounds, fewRounds), p.few)
	b.WriteString(p.summary)
	b.WriteString(results)
	for _, s := range []section{
		{"the machine", list(m.facts)},
		{"versions", list(m.versions)},
		{"the contenders", text("servers") + text(p.name+"-contenders")},
		{"what is measured", text(p.name + "-measured")},
	} {
		fmt.Fprintf(&b, "\n### %s: %s\n\n%s", p.title, s.title, s.text)
	}
	return strings.TrimSpace(b.String())
}

func list(facts []fact) string {
	var b strings.Builder
	for _, f := range facts {
		fmt.Fprintf(&b, "- **%s**: %s\n", f.name, f.value)
	}
	return b.String()
}
