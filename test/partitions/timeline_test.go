//go:build unix

package partitions_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"time"
)

// The measures of the drawing in pixels, and its colours.
const (
	pageWidth  = 860
	leftEdge   = 120
	rightEdge  = 640 // of the time axis; the result is to its right
	rowHeight  = 30
	barHeight  = 16
	panelTop   = 70 // above the rows of a panel
	panelFoot  = 36 // below the rows of a panel
	pageTop    = 40
	pageBottom = 44

	holdsColour   = "#1f6fb2"
	overlapColour = "#c0392b"
	noticeColour  = "#b8c4ce"
	inkColour     = "#333333"
)

// drawn are the shapes that have a panel, with the session timeout of the samples, in ticks.
var drawn = []struct {
	shape, title string
	timeout      int
}{
	{"follower cut off", "The holder's server is a follower that is cut off", 2},
	{"zombie leader", "The holder's server is the leader, and the others elect a new one", 2},
}

// timeline draws, as an SVG, each project's first sample in the drawn shapes whose hold had not ended before the cut.
func timeline(samples []sample) []byte {
	var body bytes.Buffer
	y := pageTop
	for _, d := range drawn {
		var rows []sample
		for _, p := range projects {
			at := slices.IndexFunc(samples, func(s sample) bool {
				return s.project == p && s.shape == d.shape && s.timeout == d.timeout && s.kind == "mutex" && !s.free &&
					!s.kept &&
					s.told > s.cut && s.acquired != 0
			})
			if at >= 0 {
				rows = append(rows, samples[at])
			}
		}
		if len(rows) > 0 {
			y += panel(&body, y, d.title, rows)
		}
	}
	legend(&body, y+14)
	height := y + pageBottom
	var b bytes.Buffer
	fmt.Fprintf(
		&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">`+"\n",
		pageWidth, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", pageWidth, height)
	write(&b, pageWidth/2, 28, "middle", inkColour, "Who holds the lock when the servers are partitioned")
	b.Write(body.Bytes())
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// panel draws the rows of one shape below y and returns its height.
func panel(b *bytes.Buffer, y int, title string, rows []sample) int {
	longest := 0.0
	for _, s := range rows {
		longest = max(longest, seconds(s.cut, s.told), seconds(s.cut, s.acquired))
	}
	longest = math.Ceil(longest + 0.5)
	const before = 1.0 // seconds before the cut
	x := func(at float64) float64 {
		return leftEdge + (rightEdge-leftEdge)*(min(at, longest)+before)/(longest+before)
	}
	timeout := time.Duration(rows[0].timeout) * rows[0].tick
	write(b, leftEdge, float64(y+22), "start", inkColour,
		fmt.Sprintf("%s; session timeout %v, tick %v", title, timeout, rows[0].tick))
	foot := float64(y + panelTop + rowHeight*len(rows) - 8)
	step := 1.0
	if longest > 10 {
		step = 2
	}
	for at := 0.0; at <= longest; at += step {
		colour, width := "#e3e3e3", 1
		if at == 0 {
			colour, width = inkColour, 2
		}
		fmt.Fprintf(b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%d"/>`+"\n", x(at),
			y+panelTop-14, x(at), foot, colour, width)
		write(b, x(at), foot+16, "middle", inkColour, fmt.Sprintf("%.0f s", at))
	}
	write(b, x(0), float64(y+panelTop-20), "middle", inkColour, "partition")
	for i, s := range rows {
		top := float64(y + panelTop + i*rowHeight)
		middle := top + barHeight/2
		told, acquired := seconds(s.cut, s.told), seconds(s.cut, s.acquired)
		write(b, leftEdge-10, middle+4, "end", inkColour, s.project)
		bar(b, x(-before), x(min(told, acquired)), top, holdsColour)
		result := fmt.Sprintf("told %.2f s before", acquired-told)
		colour := inkColour
		if told >= acquired {
			bar(b, x(acquired), x(told), top, overlapColour)
			result, colour = fmt.Sprintf("both hold for %.2f s", told-acquired), overlapColour
		} else {
			bar(b, x(told), x(acquired), top, noticeColour)
		}
		fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="3"/>`+"\n", x(acquired),
			top-5, x(acquired), top+barHeight+5, inkColour)
		write(b, rightEdge+16, middle+4, "start", colour, result)
	}
	return panelTop + rowHeight*len(rows) + panelFoot
}

func legend(b *bytes.Buffer, y int) {
	at := float64(leftEdge)
	for _, item := range []struct{ colour, text string }{
		{holdsColour, "the holder believes it holds"}, {overlapColour, "and so does another"}, {
			noticeColour,
			"the holder was told",
		},
	} {
		bar(b, at, at+22, float64(y), item.colour)
		write(b, at+28, float64(y+13), "start", inkColour, item.text)
		at += 28 + 6.4*float64(len(item.text)) + 16
	}
	fmt.Fprintf(b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="%s" stroke-width="3"/>`+"\n", at+2, y-3, at+2,
		y+barHeight+3, inkColour)
	write(b, at+10, float64(y+13), "start", inkColour, "another acquires")
}

func bar(b *bytes.Buffer, from, to, top float64, colour string) {
	fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="%s"/>`+"\n", from, top, max(to-from, 0),
		barHeight, colour)
}

func write(b *bytes.Buffer, x, y float64, anchor, colour, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s">%s</text>`+"\n", x, y, anchor, colour, s)
}

func seconds(from, to int64) float64 { return time.Duration(to - from).Seconds() }
