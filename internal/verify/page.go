package verify

// The page that shows a run: one file without scripts, for light and dark screens.

import (
	"bufio"
	_ "embed" // the page's style
	"fmt"
	"html"
	"io"
	"strconv"
	"time"

	"github.com/seed-a3166700/turnstile/internal/lincheck"
)

//go:embed page.css
var style string

// page writes HTML. What others have written goes through text.
type page struct{ *bufio.Writer }

// put writes HTML. The writer keeps an error until it is flushed.
func (p page) put(format string, args ...any) { _, _ = fmt.Fprintf(p, format, args...) }

func text(s string) string { return html.EscapeString(s) }

// WritePage writes the page of a run.
func WritePage(w io.Writer, r *Report) error {
	p := page{bufio.NewWriter(w)}
	p.put("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n" +
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n" +
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n" +
		"<meta name=\"color-scheme\" content=\"light dark\">\n")
	p.put("<title>%s: turnstile verify %s</title>\n<style>%s</style></head>\n<body><main>\n", text(headline(r)),
		text(r.Path), style)
	p.put("<header><p class=\"eyebrow\">turnstile verify</p><h1 class=\"%s\">%s</h1>\n<p "+
		"class=\"lead\">%s</p></header>\n",
		r.Verdict(), text(headline(r)), text(lead(r)))
	p.facts(r)
	for _, refusal := range r.Refusals {
		p.refusal(refusal)
	}
	p.latency(r)
	p.history(r)
	p.rest(r)
	p.put("</main></body></html>\n")
	return p.Flush()
}

// headline is the verdict in a few words.
func headline(r *Report) string {
	switch {
	case r.Verdict() == lincheck.Refused:
		return "Not linearizable"
	case r.Verdict() == lincheck.Undecided:
		return "Undecided"
	case r.Calls+r.Holds == 0:
		return "Nothing was done"
	default:
		return "Linearizable"
	}
}

// lead says what the headline means.
func lead(r *Report) string {
	switch {
	case r.Verdict() == lincheck.Refused:
		return "What clients were told contradicts itself. The calls that show it are below."
	case r.Verdict() == lincheck.Undecided:
		return "There was no time to find out for a part of the history whether it contradicts itself."
	case r.Calls+r.Holds == 0:
		return "No call has succeeded, so there is nothing to judge."
	default:
		return "Every call took effect at one instant between its beginning and its end, no two clients held the " +
			"lock " +
			"at once, and its tokens grew."
	}
}

func (p page) facts(r *Report) {
	p.put("<dl class=\"facts\">")
	fact := func(name, value string) { p.put("<div><dt>%s</dt><dd>%s</dd></div>", name, text(value)) }
	fact("Counter calls", strconv.Itoa(r.Calls))
	fact("Holds of the lock", strconv.Itoa(r.Holds))
	fact("Histories", strconv.Itoa(2*len(r.Rounds)))
	fact("Clients", strconv.Itoa(r.Clients))
	fact("Rate", fmt.Sprintf("%g/s", r.Rate))
	fact("Time", r.Ran.Round(time.Second/10).String())
	p.put("</dl>\n")
	if r.Stopped != nil {
		p.put("<p class=\"note\">Stopped before %v were over: %s</p>\n", r.For, text(r.Stopped.Error()))
	}
	if r.Left != nil {
		p.put("<p class=\"note\">Nodes may be left at %s: %s</p>\n", text(r.Path), text(r.Left.Error()))
	}
}

// refusal shows the calls that contradict each other.
func (p page) refusal(f Refusal) {
	if len(f.Calls) > 0 {
		last := f.Calls[len(f.Calls)-1]
		p.put("<section class=\"bad\"><h2>Round %d: the counter</h2>\n<p>Client %d was told this by its call at %s: "+
			"<strong>%s</strong>. No order of the calls before it gives that.</p>\n", f.Round, last.Client,
			clock(last.Asked), text(callText(last)))
		part := f.Calls[max(0, len(f.Calls)-near):]
		p.timeline(barsOf(part, nil, len(part)-1))
		p.put("<div class=\"scroll\"><table><thead><tr><th>Client<th>Call<th class=\"n\">Began<th " +
			"class=\"n\">Returned" +
			"</thead><tbody>\n")
		for i, c := range part {
			class, done := "", "unknown"
			if i == len(part)-1 {
				class = " class=\"culprit\""
			}
			if c.Done != 0 {
				done = clock(c.Done)
			}
			p.put("<tr%s><td>%d<td>%s<td class=\"n\">%s<td class=\"n\">%s\n", class, c.Client, text(callText(c)),
				clock(c.Asked), done)
		}
		p.put("</tbody></table></div></section>\n")
	}
	if len(f.Holds) > 0 {
		p.put("<section class=\"bad\"><h2>Round %d: the lock</h2>\n<p>%s</p>\n", f.Round, text(holdsText(f.Holds)))
		p.timeline(barsOf(nil, f.Holds, -1))
		p.put("<div class=\"scroll\"><table><thead><tr><th>Client<th>Session<th class=\"n\">Token<th " +
			"class=\"n\">Acquired" +
			"<th class=\"n\">Held at least until<th class=\"n\">Over</thead><tbody>\n")
		for _, h := range f.Holds {
			p.put("<tr class=\"culprit\"><td>%d<td>0x%x<td class=\"n\">%d<td class=\"n\">%s<td class=\"n\">%s"+
				"<td class=\"n\">%s\n", h.Client, uint64(h.Session), h.Token, clock(h.Got), clock(h.Alive),
				clock(h.Ended))
		}
		p.put("</tbody></table></div></section>\n")
	}
}

// holdsText says what is wrong with holds.
func holdsText(holds []lincheck.Hold) string {
	first, last := holds[0], holds[len(holds)-1]
	switch {
	case last.Got < first.Alive:
		return fmt.Sprintf("Client %d acquired the lock at %s, and client %d held it until %s: two held it at once.",
			last.Client, clock(last.Got), first.Client, clock(first.Alive))
	case last.Token <= first.Token:
		return fmt.Sprintf("The token of a later hold, %d, is not larger than that of an earlier one, %d.", last.Token,
			first.Token)
	default:
		return "These holds cannot be those of one lock."
	}
}

// callText is a call and its result.
func callText(c lincheck.CounterCall) string {
	var call, result string
	switch c.Op {
	case lincheck.CounterAdd:
		call, result = fmt.Sprintf("add %d", c.N), strconv.FormatInt(c.Value, 10)
	case lincheck.CounterCompare:
		call, result = fmt.Sprintf("set %d if it is %d", c.N, c.Other), map[bool]string{
			true:  "done",
			false: "refused",
		}[c.OK]
	default:
		call, result = c.Op, strconv.FormatInt(c.Value, 10)
	}
	if c.Done == 0 {
		result = "?"
	}
	return call + " → " + result
}

// clock is a time since the beginning of the run.
func clock(at int64) string { return fmt.Sprintf("%.4f s", time.Duration(at).Seconds()) }

func millis(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}

// rest writes the rounds, the failures and the versions.
func (p page) rest(r *Report) {
	if len(r.Failures) > 0 {
		p.put("<section><h2>Calls that failed</h2><p>They promise nothing, and are judged as done or not done.</p>" +
			"<div class=\"scroll\"><table><thead><tr><th>Call<th class=\"n\">Times<th>The first error</thead><tbody>\n")
		for _, f := range r.Failures {
			p.put("<tr><td>%s<td class=\"n\">%d<td>%s\n", text(f.What), f.Count, text(f.First))
		}
		p.put("</tbody></table></div></section>\n")
	}
	p.put("<section><h2>Versions</h2><div class=\"scroll\"><table><tbody>\n")
	for _, v := range r.Versions {
		p.put("<tr><th scope=\"row\">%s<td>%s\n", text(v.Of), text(v.Version))
	}
	p.put("</tbody></table></div></section>\n<footer>%s, begun %s</footer>\n", text(r.Path),
		r.Began.UTC().Format(time.RFC3339))
}

// Contradictions says what is wrong, a line for each refused history that was kept.
func Contradictions(r *Report) []string {
	var list []string
	for _, f := range r.Refusals {
		if len(f.Calls) > 0 {
			last := f.Calls[len(f.Calls)-1]
			list = append(list, fmt.Sprintf("round %d: client %d was told by its call at %s what contradicts the "+
				"calls "+
				"before it: %s", f.Round, last.Client, clock(last.Asked), callText(last)))
		}
		if len(f.Holds) > 0 {
			list = append(list, fmt.Sprintf("round %d: %s", f.Round, holdsText(f.Holds)))
		}
	}
	return list
}
