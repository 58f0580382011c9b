package dashboard

// Drawings: numbers over time, who held a lock when, and rings of deadlocks.

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/seed-a3166700/turnstile/lock"
)

// A spark is a number over time, in a box of sparkWidth x sparkHeight.
type spark struct {
	Line, Area string // paths; empty if nothing is known
	Label      string
	Max        string
}

const (
	sparkWidth, sparkHeight = 480, 64
	sparkSteps              = 60
)

// newSpark draws values, the latest last. It draws the same for what is the same, wherever it is in the box.
func newSpark(label string, values []uint32, text func(uint32) string) spark {
	top := uint32(1)
	known := false
	for _, v := range values {
		if v != none {
			top, known = max(top, v), true
		}
	}
	s := spark{Label: label}
	if !known {
		s.Label += ": nothing is known yet"
		return s
	}
	s.Max = text(top)
	s.Label += ": at most " + s.Max
	if top == 1 {
		top = 2 // one thing is not the most that there can be
	}
	var line, area strings.Builder
	step := float64(sparkWidth) / float64(len(values))
	y := func(v uint32) int { return 2 + int(float64(sparkHeight-4)*(1-float64(v)/float64(top))+0.5) }
	for i := 0; i < len(values); {
		if values[i] == none {
			i++
			continue
		}
		begin := int(float64(i)*step + 0.5)
		fmt.Fprintf(&line, "M%d %d", begin, y(values[i]))
		fmt.Fprintf(&area, "M%d %dV%d", begin, sparkHeight, y(values[i]))
		for i < len(values) && values[i] != none {
			v := values[i]
			for i < len(values) && values[i] == v {
				i++
			}
			fmt.Fprintf(&line, "H%d", int(float64(i)*step+0.5))
			fmt.Fprintf(&area, "H%d", int(float64(i)*step+0.5))
			if i < len(values) && values[i] != none {
				fmt.Fprintf(&line, "V%d", y(values[i]))
				fmt.Fprintf(&area, "V%d", y(values[i]))
			}
		}
		fmt.Fprintf(&area, "V%dZ", sparkHeight)
	}
	s.Line, s.Area = line.String(), area.String()
	return s
}

// seconds32 writes a number of seconds.
func seconds32(n uint32) string { return ensemble.Ago(time.Duration(n) * time.Second) }

func plain32(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// A strip shows who held a lock when, in the last ten minutes.
type strip struct {
	Label string
	Parts []stripPart
}

type stripPart struct {
	X, Width int // of stripWidth
	Look     string
	Title    string
}

const (
	stripWidth = 600
	stripTime  = 10 * time.Minute
	stripStep  = 5 * time.Second // so it changes no more often than that
)

// newStrip draws the changes of a lock's holder; there was none before start that is known.
func newStrip(past *ensemble.Past, holder string, start, now time.Time) strip {
	now = now.Truncate(stripStep).Add(stripStep)
	left := now.Add(-stripTime)
	at := func(t time.Time) int {
		return int(min(max(t.Sub(left).Seconds()/stripTime.Seconds(), 0), 1)*stripWidth + 0.5)
	}
	var changes []ensemble.Change
	if past != nil {
		changes = past.Last
		if past.Changes > len(past.Last) {
			start = later(start, past.Last[0].At)
		}
	}
	s := strip{Label: "who has held it in the last ten minutes"}
	begin, who, odd := start, holder, false
	if len(changes) > 0 {
		who = changes[0].From
	}
	add := func(end time.Time) {
		p := stripPart{X: at(begin), Look: "free", Title: "nobody"}
		p.Width = at(end) - p.X
		if who != "" {
			p.Look, p.Title = "one", clean(who)
			if odd = !odd; odd {
				p.Look = "two"
			}
		}
		if p.Width > 0 {
			s.Parts = append(s.Parts, p)
		}
	}
	for _, c := range changes {
		add(c.At)
		begin, who = c.At, c.To
	}
	add(now)
	return s
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// A circle is a deadlock: each waits for the next one.
type circle struct {
	Confirmed bool
	Label     string
	Steps     []circleStep
	More      int // that are not drawn
	Arcs      []string
}

type circleStep struct {
	N    int
	X, Y int
	Who  string
	Lock link
	For  when

	Short          string // what it waits for, beside the arrow; empty if there is no room
	ShortX, ShortY int
}

const (
	maxCircle    = 12 // so many are drawn
	circleMiddle = 130
	circleRadius = 96
	circleDot    = 20
)

// newCircle draws a deadlock.
func (p *page) newCircle(d lock.FoundDeadlock) circle {
	c := circle{Confirmed: d.Confirmed}
	n := min(len(d.Steps), maxCircle)
	c.More = len(d.Steps) - n
	point := func(angle, radius float64) (int, int) {
		return circleMiddle + int(math.Round(radius*math.Sin(angle))),
			circleMiddle - int(math.Round(radius*math.Cos(angle)))
	}
	for i, s := range d.Steps[:n] {
		angle := 2 * math.Pi * float64(i) / float64(n)
		x, y := point(angle, circleRadius)
		step := circleStep{
			N: i + 1, X: x, Y: y, Who: p.who(lock.Contender{Owner: s.Owner, Known: true}),
			Lock: p.lockLink(s.Path), For: p.ago(s.Since),
		}
		if n > 1 && n <= 4 {
			step.Short = command.Cut(clean(lastPart(s.Path)), 9)
			step.ShortX, step.ShortY = point(angle+math.Pi/float64(n), circleRadius*0.55)
		}
		c.Steps = append(c.Steps, step)
		// From the edge of one dot to the edge of the next one, with room for the head of the arrow.
		gap := float64(circleDot) / circleRadius
		x1, y1 := point(angle+gap*1.15, circleRadius)
		x2, y2 := point(angle+2*math.Pi/float64(n)-gap*1.6, circleRadius)
		large := 0
		if 2*math.Pi/float64(n)-gap*2.75 > math.Pi {
			large = 1
		}
		c.Arcs = append(c.Arcs,
			fmt.Sprintf("M%d %dA%d %d 0 %d 1 %d %d", x1, y1, circleRadius, circleRadius, large, x2, y2))
	}
	c.Label = "Each waits for what the next one holds: " + command.Plural(len(d.Steps), "program")
	return c
}
