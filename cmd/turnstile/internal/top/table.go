package top

// Rows and columns.

import (
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
)

// A column of a table. Those that grow share what the others leave.
type column struct {
	name   string
	width  int // if it does not grow
	grow   int // its share
	right  bool
	middle bool // what is too long loses its middle
	from   int  // how wide a screen must be to show it
}

// A look is how a cell is drawn.
type look int

const (
	plain  look = iota
	faint       // matters less
	strong      // matters most
	good
	warn
	bad
)

// A cell of a table.
type cell struct {
	text string // clean
	look look
}

// A row of a table. Its key names it as long as it is there.
type row struct {
	key    string
	cells  []cell
	path   string // of the lock that it is about; empty if of none
	search string // what a filter looks at, besides the cells
	node   string // of the contender that it is about
	gone   bool   // it has vanished, and keeps its place for a moment
}

func (r row) matches(filter string) bool {
	if filter == "" {
		return true
	}
	contains := func(text string) bool { return strings.Contains(strings.ToLower(text), strings.ToLower(filter)) }
	return contains(r.search) || slices.ContainsFunc(r.cells, func(c cell) bool { return contains(c.text) })
}

// steady is for how long rows keep their places.
const steady = 2 * time.Second

// A list is how a view's rows are shown: nothing jumps under the cursor.
type list struct {
	rows   []row
	cursor string // the key of the row that is chosen
	first  int    // the row that is shown first
	filter string
	order  int // of the orders of the view
	sorted time.Time
	gone   map[string]time.Time
}

// arrange takes over rows that come in the order that is wished. They get it after a while; until then each stays where
// it is, those that are new come last, and those that have vanished stay for a moment.
func (l *list) arrange(rows []row, now time.Time, force bool) {
	if l.gone == nil || force {
		l.gone = make(map[string]time.Time)
	}
	wanted := make(map[string]int, len(rows))
	for i, r := range rows {
		wanted[r.key] = i
	}
	old, at := l.rows, l.at()
	sort := force || now.Sub(l.sorted) >= steady
	if sort {
		l.sorted = now
	}
	var next []row
	placed := make(map[string]bool, len(rows))
	for _, r := range old {
		i, there := wanted[r.key]
		if there {
			delete(l.gone, r.key)
			if !sort {
				next = append(next, rows[i])
				placed[r.key] = true
			}
			continue
		}
		if _, known := l.gone[r.key]; !known {
			l.gone[r.key] = now
		}
		if !force && !sort && now.Sub(l.gone[r.key]) < steady {
			r.gone = true
			next = append(next, r)
		} else if now.Sub(l.gone[r.key]) >= steady {
			delete(l.gone, r.key)
		}
	}
	for _, r := range rows {
		if !placed[r.key] {
			next = append(next, r)
		}
	}
	if sort && !force { // those that have just vanished stay where they were
		for i, r := range old {
			if when, gone := l.gone[r.key]; gone && now.Sub(when) < steady {
				r.gone = true
				next = slices.Insert(next, min(i, len(next)), r)
			}
		}
	}
	l.rows = next
	if l.at() < 0 || l.cursor == "" {
		l.choose(max(at, 0))
	}
}

// at returns the place of the cursor; -1 if its row is not there.
func (l *list) at() int {
	return slices.IndexFunc(l.rows, func(r row) bool { return r.key == l.cursor })
}

// choose puts the cursor to a row.
func (l *list) choose(i int) {
	if len(l.rows) == 0 {
		l.cursor = ""
		return
	}
	l.cursor = l.rows[min(max(i, 0), len(l.rows)-1)].key
}

// chosen returns the row at the cursor.
func (l *list) chosen() (row, bool) {
	if i := l.at(); i >= 0 {
		return l.rows[i], true
	}
	return row{}, false
}

// visible returns the rows that fit, so that the cursor is among them.
func (l *list) visible(height int) []row {
	at := max(0, l.at())
	l.first = min(l.first, at, max(0, len(l.rows)-height))
	l.first = max(l.first, at-height+1, 0)
	return l.rows[l.first:min(len(l.rows), l.first+height)]
}

// widths shares the width of the screen among the columns; one that is not shown gets none. The marker of the cursor
// takes two, and each space between columns too. Columns that grow get their shares, but no more than their text needs
// as long as others need more; what is left is the first one's.
func widths(columns []column, rows []row, total int) []int {
	list := make([]int, len(columns))
	left := total
	open := make(map[int]int) // the columns that grow, and what their text needs
	for i, c := range columns {
		switch {
		case total < c.from-1:
			continue
		case c.grow == 0:
			list[i] = c.width
			left -= c.width
		default:
			open[i] = width(c.name)
			for _, r := range rows {
				if i < len(r.cells) {
					open[i] = max(open[i], width(r.cells[i].text))
				}
			}
		}
		left -= 2
	}
	for settled := true; settled; {
		settled = false
		shares, rest := 0, left
		for i := range open {
			shares += columns[i].grow
		}
		for i, need := range open {
			if need*shares <= rest*columns[i].grow {
				list[i] = need
				left -= need
				delete(open, i)
				settled = true
			}
		}
	}
	shares := 0
	for i := range open {
		shares += columns[i].grow
	}
	for i, c := range columns {
		if _, ok := open[i]; ok {
			list[i] = max(4, left*c.grow/shares)
			left -= list[i]
			shares -= c.grow
		}
	}
	if first := slices.IndexFunc(columns, func(c column) bool { return c.grow > 0 }); first >= 0 && left > 0 {
		list[first] += left
	}
	return list
}

// head draws the names of the columns.
func (s styles) head(columns []column, sizes []int, sorted string) string {
	var parts []string
	for i, c := range columns {
		if sizes[i] == 0 {
			continue
		}
		style := s.label
		if c.name == sorted {
			style = s.label.Underline(true)
		}
		name := cutEnd(c.name, sizes[i])
		space := strings.Repeat(" ", max(0, sizes[i]-width(name)))
		if c.right {
			parts = append(parts, space+style.Render(name))
		} else {
			parts = append(parts, style.Render(name)+space)
		}
	}
	return "  " + strings.Join(parts, "  ")
}

// row draws a row.
func (s styles) row(columns []column, sizes []int, r row, chosen bool) string {
	base := lipgloss.NewStyle()
	marker := "  "
	if chosen {
		base, marker = s.chosen, s.mark.Inherit(s.chosen).Render("▌ ")
	}
	var b strings.Builder
	b.WriteString(marker)
	for i, c := range columns {
		if sizes[i] == 0 {
			continue
		}
		if i > 0 {
			b.WriteString(base.Render("  "))
		}
		if i >= len(r.cells) {
			b.WriteString(base.Render(strings.Repeat(" ", sizes[i])))
			continue
		}
		look := r.cells[i].look
		if r.gone {
			look = faint
		}
		b.WriteString(s.looks[look].Inherit(base).Render(fit(r.cells[i].text, sizes[i], c.right, c.middle)))
	}
	return b.String()
}

// styles are the colours: the terminal's own sixteen, so that they suit its background.
type styles struct {
	looks                    map[look]lipgloss.Style
	label, mark, chosen, tab lipgloss.Style
	brand, key, on, hot      lipgloss.Style
}

func newStyles(background string) styles {
	style := lipgloss.NewStyle
	colour := func(name string) lipgloss.Style { return style().Foreground(lipgloss.Color(name)) }
	s := styles{
		looks: map[look]lipgloss.Style{
			plain: style(), faint: style().Faint(true), strong: style().Bold(true),
			good: colour("2"), warn: colour("3"), bad: colour("1").Bold(true),
		},
		label: style().Faint(true), mark: colour("6"), chosen: style().Bold(true), tab: style().Faint(true),
		brand: colour("6").Bold(true), key: colour("6"), on: style().Bold(true).Underline(true),
		hot: colour("3").Bold(true),
	}
	if background != "" {
		s.chosen = s.chosen.Background(lipgloss.Color(background))
	}
	return s
}
