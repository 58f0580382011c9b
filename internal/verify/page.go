package verify

// The page that shows a run: one file without scripts, for light and dark screens.

import (
	"bufio"
	"cmp"
	_ "embed" // the page and its style
	"fmt"
	"html/template"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/lincheck"
)

//go:embed page.html
var pageText string

//go:embed page.css
var style string

// pageTemplate returns the page's template, which is read when the first page is written.
var pageTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page").Funcs(template.FuncMap{
		"clock": clock, "callText": callText, "holdsText": holdsText, "millis": millis,
		"n":       func(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) },
		"round":   func(d time.Duration) time.Duration { return d.Round(time.Second / 10) },
		"seconds": func(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) },
		"session": func(id int64) string { return fmt.Sprintf("0x%x", uint64(id)) },
	}).Parse(pageText))
})

// WritePage writes the page of a run.
func WritePage(w io.Writer, r *Report) error {
	p := page{
		Report: r, Style: template.CSS(style), Histories: 2 * len(r.Rounds), Begun: r.Began.UTC().Format(time.RFC3339),
		Curve: curveOf(r), Latest: latest(r),
	}
	p.Headline, p.Lead = headline(r)
	for _, f := range r.Refusals {
		p.Refused = append(p.Refused, refusalsOf(f)...)
	}
	const most = 40
	for i, d := range r.Rounds {
		if i >= most && d.Counter == lincheck.Accepted && d.Lock == lincheck.Accepted {
			p.More++
			continue
		}
		p.Shown = append(p.Shown, d)
	}
	b := bufio.NewWriter(w)
	return cmp.Or(pageTemplate().Execute(b, p), b.Flush())
}

// page is a report with what the page shows besides.
type page struct {
	*Report

	Headline, Lead string
	Style          template.CSS
	Histories      int
	Begun          string
	Refused        []refused
	Curve          *curve    // nil if there were only acquisitions
	Latest         *timeline // nil if nothing was done in the last round
	Shown          []Round
	More           int // rounds that were accepted
}

// headline is the verdict in a few words, and what they mean.
func headline(r *Report) (verdict, lead string) {
	switch {
	case r.Verdict() == lincheck.Refused:
		return "Not linearizable",
			"What clients were told contradicts itself. The calls that show it are below."
	case r.Verdict() == lincheck.Undecided:
		return "Undecided",
			"There was no time to find out for a part of the history whether it contradicts itself."
	case r.Calls+r.Holds == 0:
		return "Nothing was done",
			"No call has succeeded, so there is nothing to judge."
	default:
		return "Linearizable", "Every call took effect at one instant between its beginning and its end, " +
			"no two clients held the lock at once, and its tokens grew."
	}
}

// refused is the part of a history that contradicts itself: calls of a counter or holds of the lock.
type refused struct {
	Round    int
	Timeline *timeline
	Near     []nearCall
	Last     lincheck.CounterCall // of them, which cannot be
	Holds    []lincheck.Hold
}

// nearCall is a call that is shown.
type nearCall struct {
	lincheck.CounterCall

	Culprit bool
}

func refusalsOf(f Refusal) (list []refused) {
	if len(f.Calls) > 0 {
		calls := f.Calls[max(0, len(f.Calls)-near):]
		last := len(calls) - 1
		r := refused{Round: f.Round, Timeline: timelineOf(barsOf(calls, nil, last)), Last: calls[last]}
		for i, c := range calls {
			r.Near = append(r.Near, nearCall{c, i == last})
		}
		list = append(list, r)
	}
	if len(f.Holds) > 0 {
		list = append(list, refused{Round: f.Round, Timeline: timelineOf(barsOf(nil, f.Holds, -1)), Holds: f.Holds})
	}
	return list
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
		call, result = fmt.Sprintf("set %d if it is %d", c.N, c.Other), "refused"
		if c.OK {
			result = "done"
		}
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

// Contradictions says what is wrong, a line for each refused history that was kept.
func Contradictions(r *Report) []string {
	var list []string
	for _, f := range r.Refusals {
		if len(f.Calls) > 0 {
			last := f.Calls[len(f.Calls)-1]
			list = append(list, fmt.Sprintf(
				"round %d: client %d was told by its call at %s what contradicts the calls before it: %s",
				f.Round, last.Client, clock(last.Asked), callText(last)))
		}
		if len(f.Holds) > 0 {
			list = append(list, fmt.Sprintf("round %d: %s", f.Round, holdsText(f.Holds)))
		}
	}
	return list
}
