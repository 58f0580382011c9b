package top

// The screen.

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/seed-a3166700/turnstile/internal/survey"
)

// View implements tea.Model.
func (m *model) View() (v tea.View) {
	defer func() {
		if r := recover(); r != nil {
			m.err = panicked(r)
			v = tea.NewView("")
		}
	}()
	v = tea.NewView(strings.Join(m.screen(), "\n"))
	v.AltScreen = true
	return v
}

// Lines of the screen that are not the table: head, views, an empty line, the columns' names, and the foot.
const frame = 5

// room is how many rows fit.
func (m *model) room() int {
	room := m.height - frame
	if m.snapshot != nil {
		room -= len(m.above())
	}
	return max(1, room-len(m.below()))
}

// screen returns the lines of the screen.
func (m *model) screen() []string {
	lines := []string{m.header(), m.tabs(), m.filtered()}
	switch {
	case m.width < 40 || m.height < 10:
		return []string{cutEnd("too small: 40 x 10 at least", m.width)}
	case m.view == viewHelp:
		lines = append(lines, m.help()...)
	case m.snapshot == nil:
		lines = append(lines, m.styles.looks[faint].Render("  reading …"))
	default:
		p := m.page()
		lines = append(lines, m.above()...)
		l := m.lists[m.view]
		shown := l.visible(m.room())
		sizes := widths(p.columns, shown, m.width-1)
		lines = append(lines, m.styles.head(p.columns, sizes, p.sorted))
		for _, r := range shown {
			lines = append(lines, m.styles.row(p.columns, sizes, r, r.key == l.cursor))
		}
		if len(l.rows) == 0 {
			empty := p.empty
			if l.filter != "" {
				empty = "Nothing matches the filter."
			}
			lines = append(lines, m.styles.looks[faint].Render(cutEnd("  "+empty, m.width)))
		}
	}
	below := m.below()
	for len(lines) < m.height-1-len(below) {
		lines = append(lines, "")
	}
	lines = append(lines[:m.height-1-len(below)], below...)
	lines = append(lines, m.foot())
	for i := range lines {
		lines[i] = cutEnd(lines[i], m.width)
	}
	return lines
}

// between puts text at the left and at the right of a line.
func (m *model) between(left, right string) string {
	return left + strings.Repeat(" ", max(1, m.width-1-width(left)-width(right))) + right
}

// header names the ensemble, and says how old what is shown is.
func (m *model) header() string {
	s := m.styles
	state := s.looks[faint].Render("connecting")
	if m.snapshot != nil {
		switch m.snapshot.Mode {
		case survey.Live:
			state = s.looks[good].Render("● live")
		case survey.Sampled:
			state = s.looks[warn].Render("◐ sampled " + ensemble.Ago(m.now.Sub(m.snapshot.Asked)) + " ago")
		case survey.Cut:
			state = s.looks[bad].Render("○ not connected since " + m.snapshot.Since.Local().Format(time.TimeOnly))
		}
		if m.snapshot.Partial != "" && m.snapshot.Mode != survey.Cut {
			state = s.looks[warn].Render("◒ partial")
		}
	}
	if m.paused {
		state = s.hot.Render("‖ paused") + "  " + state
	}
	right := state + "  " + s.looks[faint].Render(m.now.Local().Format(time.TimeOnly))
	brand := " " + s.brand.Render("turnstile") + "  "
	name := clean(m.cfg.Ensemble)
	if m.cfg.Root != "/" {
		name += "  below " + clean(m.cfg.Root)
	}
	if m.cfg.Changes {
		right = s.hot.Render("changes on") + "  " + right
	}
	if width(brand)+width(right)+12 > m.width { // the name of the ensemble matters more
		brand, right = " ", state
	}
	most := max(8, m.width-3-width(brand)-width(right))
	return cutEnd(m.between(brand+s.looks[strong].Render(cutEnd(name, most)), right), m.width)
}

// tabs names the views, and counts.
func (m *model) tabs() string {
	s := m.styles
	current := m.view
	if current >= views {
		current = m.back
	}
	var parts []string
	for v := range views {
		style := s.tab
		if v == current {
			style = s.on
		}
		parts = append(parts, s.key.Render(strconv.Itoa(int(v)+1))+" "+style.Render(titles[v]))
	}
	counts := ""
	if m.snapshot != nil {
		held, waiting := 0, 0
		for _, e := range m.snapshot.Entries {
			held += min(1, e.Holding)
			waiting += e.Waiting
		}
		counts = s.looks[faint].Render(fmt.Sprintf("%d held, %d wait", held, waiting))
	}
	left := " " + strings.Join(parts, "  ")
	if width(left)+width(counts)+2 > m.width {
		counts = ""
	}
	return cutEnd(m.between(left, counts), m.width)
}

// filtered says that not everything is shown.
func (m *model) filtered() string {
	l := m.lists[m.view]
	if l == nil || l.filter == "" {
		return ""
	}
	text := cutEnd(fmt.Sprintf("only %q: %d", clean(l.filter), len(l.rows)), m.width-20)
	return "  " + m.styles.hot.Render(text) + m.styles.looks[faint].Render("  Esc shows all")
}

// above returns the lines above the table.
func (m *model) above() []string {
	p := m.page()
	var lines []string
	for i, text := range p.top {
		if i == 4 {
			break
		}
		style := m.styles.looks[faint]
		switch {
		case m.view == viewLock && i == 0:
			style = m.styles.looks[strong]
		case m.view == viewServers, m.view == viewLock && i > 1:
			style = m.styles.looks[warn]
		}
		text = cutMiddle(text, m.width-3)
		lines = append(lines, "  "+style.Render(text))
	}
	if len(lines) > 0 {
		lines = append(lines, "")
	}
	return lines
}

// below returns the lines below the table: what has happened to the lock, what is wrong, or what a prompt explains.
func (m *model) below() []string {
	s := m.styles
	var lines []string
	if m.view == viewLock && m.prompt == nil {
		if past := m.past[m.path]; past != nil {
			title := fmt.Sprintf("  SINCE THIS SCREEN IS OPEN: %d changes of the holder", past.Changes)
			lines = append(lines, s.label.Render(title))
			for _, e := range past.Last[max(0, len(past.Last)-4):] {
				text := e.At.Local().Format(time.TimeOnly) + "  " +
					clean(cmp.Or(e.From, "nobody")+" → "+cmp.Or(e.To, "nobody"))
				lines = append(lines, s.looks[faint].Render("  "+cutEnd(text, m.width-3)))
			}
		}
	}
	if m.prompt != nil {
		for i, text := range m.prompt.lines {
			style := s.looks[plain]
			if i == 0 {
				style = s.hot
			}
			lines = append(lines, "  "+style.Render(cutEnd(text, m.width-3)))
		}
	} else if m.snapshot != nil {
		if n := m.snapshot.Denied.Count + m.snapshot.TooLarge.Count; n > 0 && m.view != viewServers {
			text := fmt.Sprintf("  %d paths could not be read, and are left out", n)
			lines = append(lines, s.looks[faint].Render(text))
		}
	}
	if len(lines) > 0 {
		lines = append([]string{""}, lines...)
	}
	return lines[:min(len(lines), max(0, m.height-frame-3))]
}

// foot is the last line: what is typed, what has happened, or the keys.
func (m *model) foot() string {
	s := m.styles
	if p := m.prompt; p != nil {
		label := cutEnd(clean(p.label), m.width/2)
		text := clean(p.text)
		if n := width(text) - (m.width - width(label) - 6); n > 0 { // the end is what is typed
			text = cutMiddle(text, m.width-width(label)-6)
		}
		return " " + s.key.Render(label+": ") + text + s.mark.Render("█")
	}
	if m.notice != "" && time.Now().Before(m.noticeUntil) {
		return " " + s.hot.Render(cutEnd(m.notice, m.width-2))
	}
	if m.view == viewHelp {
		return " " + s.looks[faint].Render("any key goes back")
	}
	keys := []string{"/", "filter"}
	if m.view == viewLock {
		keys = []string{"Esc", "back"}
	}
	if len(orders[m.view]) > 0 {
		keys = append(keys, "s", "sort")
	}
	if m.view <= viewLeaders {
		keys = append(keys, "Enter", "line")
	}
	keys = append(keys, "p", "pause", "y", "copy", "?", "help", "q", "quit")
	if m.cfg.Changes && (m.view == viewLocks || m.view == viewLeaders || m.view == viewLock) {
		keys = append([]string{"r", "revoke", "F", "force"}, keys...)
	}
	if m.cfg.Changes && m.view == viewSessions {
		keys = append([]string{"x", "end"}, keys...)
	}
	line := ""
	for i := 0; i < len(keys); i += 2 {
		next := line + " " + s.key.Render(keys[i]) + " " + s.looks[faint].Render(keys[i+1]) + " "
		if width(next) > m.width-1 {
			break
		}
		line = next
	}
	return line
}

// help says what keys do.
func (m *model) help() []string {
	text := [][2]string{
		{"1 … 6, Tab", "change the view"},
		{"↑ ↓ PgUp PgDn", "move (also k, j, g, G)"},
		{"/", "show only what contains a text; Esc shows all again"},
		{"s", "order by another column"},
		{"Enter", "show the line of a lock; Esc goes back"},
		{"y", "copy the path, if the terminal allows it"},
		{"p", "pause"},
		{"r", "ask the holder to release the lock (--allow-changes)"},
		{"F", "take the lock from its holder (--allow-changes)"},
		{"x", "end a session of turnstile serve (--allow-changes)"},
		{"q", "quit"},
	}
	var lines []string
	for _, t := range text {
		lines = append(lines, "  "+m.styles.key.Render(fit(t[0], 15, false, false))+"  "+cutEnd(t[1], m.width-20))
	}
	return append(lines, "", m.styles.looks[faint].Render("  Waits turn yellow after a minute, red after ten."))
}
