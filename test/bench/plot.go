package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// The plot, in pixels.
const (
	plotWidth          = 900
	plotLeft, plotTop  = 330, 96 // of the dots' area; the names of the rows stand to the left
	plotRight, rowHigh = 40, 32
)

var columnColours = [columns]string{"#1f6fb2", "#63b3ed", "#c0392b", "#2e8b57", "#8d6e63"}

// plot draws the main figures as an SVG: a row for each, with a dot for each column. A dot's position shows how many
// times as good as the peer's figure it is.
func plot(all []result) string {
	lowest, highest := 0, 1 // powers of ten
	var rows [][columns]float64
	for _, f := range mainFigures {
		row := f.relative(all)
		for _, v := range row {
			if v > 0 {
				lowest = min(lowest, int(math.Floor(math.Log10(v))))
				highest = max(highest, int(math.Ceil(math.Log10(v))))
			}
		}
		rows = append(rows, row)
	}
	bottom := plotTop + rowHigh*len(rows)
	x := func(v float64) float64 {
		return plotLeft + (plotWidth-plotLeft-plotRight)*(math.Log10(v)-float64(lowest))/float64(highest-lowest)
	}
	var b strings.Builder
	text := func(x, y float64, anchor, s string) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="#333333">%s</text>`+"\n",
			x, y, anchor, html.EscapeString(s))
	}
	line := func(x1, y1, x2, y2 float64, colour string) {
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`+"\n", x1, y1, x2, y2, colour)
	}
	dot := func(x, y float64, column int) {
		fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="6" fill="%s"/>`+"\n", x, y, columnColours[column])
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d"`, plotWidth, bottom+48)
	b.WriteString(` font-family="sans-serif" font-size="13">` + "\n")
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", plotWidth, bottom+48)
	text(plotWidth/2, 24, "middle", "How many times as good as the peer on ZooKeeper (logarithmic; more is better)")
	at := 30.0
	for i, title := range columnTitles {
		dot(at, 52, i)
		text(at+12, 56, "start", title)
		at += 34 + 7*float64(len(title))
	}
	for power := lowest; power <= highest; power++ {
		v := math.Pow10(power)
		colour := "#dddddd"
		if power == 0 {
			colour = "#888888"
		}
		line(x(v), plotTop-10, x(v), float64(bottom), colour)
		text(x(v), float64(bottom)+22, "middle", fmt.Sprintf("%g×", v))
	}
	for i, row := range rows {
		y := plotTop + rowHigh*(float64(i)+0.5)
		text(plotLeft-14, y+4, "end", mainFigures[i].title)
		line(plotLeft, y, plotWidth-plotRight, y, "#eeeeee")
		for column := columns - 1; column >= 0; column-- { // ours last, on top of others
			if row[column] > 0 {
				dot(x(row[column]), y, column)
			}
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// relative returns how many times as good as the peer's each column is, 0 for what is not known.
func (f *mainFigure) relative(all []result) (times [columns]float64) {
	cells := f.in(all)
	for i, cell := range cells {
		switch {
		case cell.median <= 0 || cells[peerColumn].median <= 0:
		case f.lessIsMore:
			times[i] = cells[peerColumn].median / cell.median
		default:
			times[i] = cell.median / cells[peerColumn].median
		}
	}
	return times
}
