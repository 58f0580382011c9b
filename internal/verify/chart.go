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

const (
	recent = 60 // operations of the last round that are drawn, at most
	near   = 20 // calls that are shown with a refused one, which is the last of them
)

// frame is the size of a drawing, in its own units. What it shows begins at Left, behind the names of its rows.
type frame struct {
	Wide, Left int
	High       float64
	FootY      float64 // of the text below
}

const (
	wide = 960
	left = 84
)

// A bar is an operation of a timeline.
type bar struct {
	client   int
	from, to int64 // to is math.MaxInt64 if it has not returned

	Class, Title        string
	X, Y, Width, Height float64
}

// barsOf returns calls and holds as bars. One of the calls, and all of the holds of a refusal, are marked.
func barsOf(calls []lincheck.CounterCall, holds []lincheck.Hold, culprit int) []bar {
	var list []bar
	add := func(client int, from, to int64, class, title string, marked bool) {
		if marked {
			class += " culprit"
		}
		list = append(list, bar{
			client: client, from: from, to: cmp.Or(to, math.MaxInt64), Class: class, Title: title + ", " + clock(from),
		})
	}
	for i, c := range calls {
		add(c.Client, c.Asked, c.Done, c.Op, callText(c), i == culprit)
	}
	for _, h := range holds {
		add(h.Client, h.Got, h.Ended, "lock", fmt.Sprint("hold with token ", h.Token), len(calls) == 0)
	}
	slices.SortStableFunc(list, func(a, b bar) int { return cmp.Compare(a.from, b.from) })
	return list
}

// A timeline draws operations, a row for each client.
type timeline struct {
	frame

	Rows     []row
	Bars     []bar
	From, To int64
}

type row struct {
	Client   int
	Y, TextY float64
}

// timelineOf returns the timeline of bars in the order of their beginnings, nil if there are none.
func timelineOf(bars []bar) *timeline {
	const high, tall, low = 30.0, 22.0, 16.0 // of a row, a hold, and a call
	if len(bars) == 0 {
		return nil
	}
	l := &timeline{Bars: bars, From: bars[0].from}
	var clients []int
	for _, b := range bars {
		clients = append(clients, b.client)
		l.To = max(l.To, b.from+1)
		if b.to != math.MaxInt64 {
			l.To = max(l.To, b.to)
		}
	}
	l.To += (l.To - l.From) / 50 // so that the last one has room
	slices.Sort(clients)
	clients = slices.Compact(clients)
	for i, c := range clients {
		y := high*float64(i) + high/2
		l.Rows = append(l.Rows, row{c, y, y + 4})
	}
	l.frame = frame{Wide: wide, Left: left, High: high*float64(len(clients)) + 24}
	l.FootY = l.High - 4
	x := func(at int64) float64 { return left + (wide-left)*float64(min(at, l.To)-l.From)/float64(l.To-l.From) }
	for i := range bars {
		b := &bars[i]
		b.X, b.Height = x(b.from), low
		b.Width = max(3, x(b.to)-b.X)
		if strings.HasPrefix(b.Class, "lock") {
			b.Height = tall
		}
		b.Y = high*float64(slices.Index(clients, b.client)) + (high-b.Height)/2
	}
	return l
}

// latest is the timeline of the last operations.
func latest(r *Report) *timeline {
	bars := barsOf(r.lastCalls, r.lastHolds, -1)
	for i := range bars {
		bars[i].Class = strings.TrimSuffix(bars[i].Class, " culprit")
	}
	return timelineOf(bars[max(0, len(bars)-recent):])
}

// A curve draws the mean and the longest time over the run, with a logarithmic scale.
type curve struct {
	frame

	Grid   []gridLine
	Pieces []curvePiece
}

type gridLine struct {
	Y, TextY float64
	Text     time.Duration
}

type curvePiece struct{ X, Mean, Most float64 }

// curveOf returns the curve of a run, nil if nothing but the lock was used.
func curveOf(r *Report) *curve {
	const high, bottom = 220.0, 24.0
	mean := func(p piece) float64 { return float64(p.sum) / float64(p.count) }
	least, most, end := math.Inf(1), 0.0, 1
	for i, p := range r.pieces {
		if p.count > 0 { // a call may take less than the clock shows
			least, most, end = min(least, max(1, mean(p))), max(most, float64(p.most)), i+1
		}
	}
	if most == 0 {
		return nil
	}
	low, top := math.Floor(math.Log10(least)), math.Ceil(math.Log10(most))
	top = max(top, low+1)
	y := func(v float64) float64 { return (high - bottom) * (1 - (math.Log10(max(v, 1))-low)/(top-low)) }
	c := &curve{frame: frame{Wide: wide, Left: left, High: high + 8, FootY: high - 4}}
	for power := low; power <= top; power++ {
		v := math.Pow(10, power)
		c.Grid = append(c.Grid, gridLine{y(v), y(v) + 4, time.Duration(v)})
	}
	for i, p := range r.pieces {
		if p.count > 0 {
			x := left + (wide-left)*(float64(i)+0.5)/float64(end)
			c.Pieces = append(c.Pieces, curvePiece{x, y(mean(p)), y(float64(p.most))})
		}
	}
	return c
}
