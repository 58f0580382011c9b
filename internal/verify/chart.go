package verify

// Drawings of a page: SVG, without scripts.

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/internal/lincheck"
)

// shown is how many operations a timeline has at most.
const shown = 60

// near is how many calls before a refused one are shown.
const near = 20

// A bar is an operation of a timeline.
type bar struct {
	client int
	from   int64
	to     int64 // math.MaxInt64 if it has not returned
	class  string
	title  string
}

// barsOf returns calls and holds as bars. One of the calls, and all of the holds of a refusal, are marked.
func barsOf(calls []lincheck.CounterCall, holds []lincheck.Hold, culprit int) []bar {
	var list []bar
	for i, c := range calls {
		b := bar{c.Client, c.Asked, cmp.Or(c.Done, math.MaxInt64), c.Op, callText(c)}
		if i == culprit {
			b.class += " culprit"
		}
		list = append(list, b)
	}
	for _, h := range holds {
		b := bar{h.Client, h.Got, cmp.Or(h.Ended, math.MaxInt64), "lock", fmt.Sprint("hold with token ", h.Token)}
		if len(calls) == 0 {
			b.class += " culprit"
		}
		list = append(list, b)
	}
	return list
}

// timeline draws operations, a row for each client.
func (p page) timeline(bars []bar) {
	const wide, left, row = 960.0, 84.0, 30.0
	if len(bars) == 0 {
		return
	}
	slices.SortStableFunc(bars, func(a, b bar) int { return cmp.Compare(a.from, b.from) })
	from, to := bars[0].from, int64(0)
	var clients []int
	for _, b := range bars {
		clients = append(clients, b.client)
		to = max(to, b.from+1)
		if b.to != math.MaxInt64 {
			to = max(to, b.to)
		}
	}
	to += (to - from) / 50 // so that the last one has room
	slices.Sort(clients)
	clients = slices.Compact(clients)
	x := func(at int64) float64 { return left + (wide-left)*float64(min(at, to)-from)/float64(to-from) }
	high := row*float64(len(clients)) + 24
	p.put("<svg class=\"timeline\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" "+
		"aria-label=\"%d operations of %d clients\">\n", wide, high, len(bars), len(clients))
	for i, c := range clients {
		y := row * float64(i)
		p.put("<line x1=\"%.0f\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\" class=\"grid\"/>"+
			"<text x=\"0\" y=\"%.1f\">client %d</text>\n", left, wide, y+row/2, y+row/2, y+row/2+4, c)
	}
	for _, b := range bars {
		y := row * float64(slices.Index(clients, b.client))
		tall := 16.0
		if strings.HasPrefix(b.class, "lock") {
			tall = 22
		}
		p.put("<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.0f\" rx=\"2\" class=\"%s\">"+
			"<title>%s, %s</title></rect>\n",
			x(b.from), y+(row-tall)/2, max(3, x(b.to)-x(b.from)), tall, b.class, text(b.title), clock(b.from))
	}
	p.put("<text x=\"%.0f\" y=\"%.0f\">%s</text><text x=\"%.0f\" y=\"%.0f\" text-anchor=\"end\">%s</text></svg>\n",
		left, high-4, clock(from), wide, high-4, clock(to))
}

// latency writes how long calls took.
func (p page) latency(r *Report) {
	if len(r.Kinds) == 0 {
		return
	}
	p.put("<section><h2>How long calls took</h2>\n")
	p.curve(r)
	p.put("<div class=\"scroll\"><table><thead><tr><th>Call<th class=\"n\">Count<th class=\"n\">Half within" +
		"<th class=\"n\">99 %% within<th class=\"n\">Longest</thead><tbody>\n")
	for _, k := range r.Kinds {
		p.put("<tr><td>%s<td class=\"n\">%d<td class=\"n\">%s<td class=\"n\">%s<td class=\"n\">%s\n", text(k.Name),
			k.Count,
			millis(k.Quantile(0.5)), millis(k.Quantile(0.99)), millis(k.Most))
	}
	p.put("</tbody></table></div>\n<p class=\"small\">To acquire the lock, a client also waits for the others that " +
		"hold " +
		"it. The values in the middle are exact to 5 %%.</p></section>\n")
}

// curve draws the mean and the longest time over the run, with a logarithmic scale.
func (p page) curve(r *Report) {
	const wide, left, high, bottom = 960.0, 84.0, 220.0, 24.0
	least, most := math.Inf(1), 0.0
	for _, at := range r.pieces {
		if at.count > 0 {
			least = min(least, float64(at.sum)/float64(at.count))
			most = max(most, float64(at.most))
		}
	}
	if most == 0 { // there is nothing but the lock
		return
	}
	low, top := math.Floor(math.Log10(least)), math.Ceil(math.Log10(most))
	top = max(top, low+1)
	y := func(v float64) float64 { return (high - bottom) * (1 - (math.Log10(max(v, 1))-low)/(top-low)) }
	end := 1
	for i, at := range r.pieces {
		if at.count > 0 {
			end = i + 1
		}
	}
	x := func(i int) float64 { return left + (wide-left)*(float64(i)+0.5)/float64(end) }
	p.put("<svg viewBox=\"0 -8 %.0f %.0f\" role=\"img\" aria-label=\"mean and longest time of calls over the "+
		"run\">\n", wide,
		high+8)
	for power := low; power <= top; power++ {
		v := math.Pow(10, power)
		p.put("<line x1=\"%.0f\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\" class=\"grid\"/><text x=\"0\" "+
			"y=\"%.1f\">%s</text>\n",
			left, wide, y(v), y(v), y(v)+4, time.Duration(v))
	}
	var mean strings.Builder
	for i, at := range r.pieces {
		if at.count == 0 {
			continue
		}
		m := float64(at.sum) / float64(at.count)
		fmt.Fprintf(&mean, "%.1f,%.1f ", x(i), y(m))
		p.put("<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" class=\"range\"/>"+
			"<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" class=\"most\"/>\n", x(i), x(i), y(m), y(float64(at.most)), x(i),
			y(float64(at.most)))
	}
	p.put("<polyline points=\"%s\" class=\"mean\"/><text x=\"%.0f\" y=\"%.0f\">0 s</text>"+
		"<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"end\">%s</text></svg>\n", strings.TrimSpace(mean.String()), left,
		high-4,
		wide, high-4, r.Ran.Round(time.Second/10))
	p.put("<p class=\"legend\"><span class=\"mean\">mean, without the lock</span><span " +
		"class=\"most\">longest</span></p>\n")
}

// history writes the rounds, and the last operations.
func (p page) history(r *Report) {
	bars := barsOf(r.lastCalls, r.lastHolds, -1)
	for i := range bars {
		bars[i].class = strings.TrimSuffix(bars[i].class, " culprit")
	}
	slices.SortStableFunc(bars, func(a, b bar) int { return cmp.Compare(a.from, b.from) })
	bars = bars[max(0, len(bars)-shown):]
	p.put("<section><h2>History</h2>\n")
	if len(bars) > 0 {
		p.put("<p>The last %d operations of the last round. A hold of the lock is as wide as it lasted.</p>\n",
			len(bars))
		p.timeline(bars)
		p.put("<p class=\"legend\"><span class=\"lock\">hold of the lock</span><span class=\"add\">add</span>" +
			"<span class=\"get\">get</span><span class=\"compare\">compare and set</span></p>\n")
	}
	p.put("<div class=\"scroll\"><table><thead><tr><th class=\"n\">Round<th class=\"n\">Began<th class=\"n\">Ended" +
		"<th class=\"n\">Counter calls<th>Counter<th class=\"n\">Holds<th>Lock</thead><tbody>\n")
	const most = 40
	left := 0
	for i, d := range r.Rounds {
		if i >= most && d.Counter == lincheck.Accepted && d.Lock == lincheck.Accepted {
			left++
			continue
		}
		p.put("<tr><td class=\"n\">%d<td class=\"n\">%.1f s<td class=\"n\">%.1f s<td class=\"n\">%d<td class=\"%s\">%s"+
			"<td class=\"n\">%d<td class=\"%s\">%s\n", d.Number, d.Began.Seconds(), d.Ended.Seconds(), d.Calls,
			d.Counter,
			d.Counter, d.Holds, d.Lock, d.Lock)
	}
	p.put("</tbody></table></div>\n")
	if left > 0 {
		p.put("<p class=\"small\">%d more rounds were accepted.</p>\n", left)
	}
	p.put("<p class=\"small\">Each round has a counter of its own, and all have the same lock.</p></section>\n")
}
