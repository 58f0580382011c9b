package main

// The plot of the figures.

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// The plot's area, in pixels, and the colours of the locks. Both axes are logarithmic.
const (
	width, height            = 720, 440
	left, right, top, bottom = 80, 30, 60, 60
)

var colours = map[string]string{simple: "#c0392b", line: "#1f6fb2"}

// plot draws the figures as an SVG: a colour for each lock, filled dots for one server and rings for the other.
func plot(figures []figure) []byte {
	highest, widest := 10.0, 10
	for _, f := range figures {
		highest, widest = max(highest, f.events), max(widest, f.waiters)
	}
	x := func(n int) float64 {
		return left + (width-left-right)*math.Log10(float64(n))/math.Log10(float64(widest))
	}
	y := func(n float64) float64 {
		return height - bottom - (height-top-bottom)*math.Log10(max(n, 1))/math.Log10(highest)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d"`, width, height)
	b.WriteString(` font-family="sans-serif" font-size="13">` + "\n")
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	text(&b, width/2, 28, "middle", "Watch events for one release")
	text(&b, width/2, height-16, "middle", "processes that wait")
	for n := 1; n <= widest; n *= 10 {
		stroke(&b, x(n), top, x(n), height-bottom, "#dddddd", 1)
		text(&b, x(n), height-bottom+20, "middle", strconv.Itoa(n))
	}
	for n := 1.0; n <= highest; n *= 10 {
		stroke(&b, left, y(n), width-right, y(n), "#dddddd", 1)
		text(&b, left-10, y(n)+4, "end", fmt.Sprint(n))
	}
	for _, l := range locks {
		colour := colours[l.name]
		mine := slices.DeleteFunc(slices.Clone(figures), func(f figure) bool { return f.lock != l.name })
		for i, f := range mine {
			if i > 0 && mine[i-1].server == f.server {
				stroke(&b, x(mine[i-1].waiters), y(mine[i-1].events), x(f.waiters), y(f.events), colour, 2)
			}
		}
		for _, f := range mine {
			dot(&b, x(f.waiters), y(f.events), colour, f.server)
		}
	}
	at := float64(top + 6)
	for _, l := range locks {
		for _, server := range []string{ours, theirs} {
			dot(&b, left+20, at, colours[l.name], server)
			text(&b, left+36, at+4, "start", l.name+", "+server)
			at += 20
		}
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func text(b *bytes.Buffer, x, y float64, anchor, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="#333333">%s</text>`+"\n", x, y, anchor, s)
}

func stroke(b *bytes.Buffer, x1, y1, x2, y2 float64, colour string, wide int) {
	fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%d"/>`+"\n",
		x1, y1, x2, y2, colour, wide)
}

// dot marks a figure: filled and small for our server, a ring around it for ZooKeeper.
func dot(b *bytes.Buffer, x, y float64, colour, server string) {
	radius, fill := 4, colour
	if server == theirs {
		radius, fill = 7, "none"
	}
	fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="%d" fill="%s" stroke="%s" stroke-width="2"/>`+"\n",
		x, y, radius, fill, colour)
}
