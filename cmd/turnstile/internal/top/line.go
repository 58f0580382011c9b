package top

// The line of one lock.

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/seed-a3166700/turnstile/lock"
)

// line is the line of one lock.
func (m *model) line() page {
	p := page{
		columns: []column{
			{name: "PLACE", width: 11},
			{name: "OWNER", grow: 1},
			{name: "FOR", width: 6, right: true},
			{name: "SESSION", width: 18, from: 64},
			{name: "TOKEN", width: 12, right: true, from: 50},
		},
		empty: "Nobody holds it, and nobody waits.",
	}
	e, there := m.snapshotEntry(m.path)
	p.top = append(p.top, clean(m.path))
	l := m.lines[m.path]
	switch {
	case !there:
		p.empty = "There is no lock at this path now, or it may not be read."
		l.List = nil
	case e.Holding+e.Waiting == 0:
		l.List = nil
		fallthrough
	default:
		layout := ""
		if e.Layout != "" {
			layout = ", layout " + e.Layout
		}
		p.top = append(p.top,
			fmt.Sprintf("%s%s, %d held, %d waiting", ensemble.KindWord(e), layout, e.Holding, e.Waiting))
		if ensemble.TooLong(e) {
			p.top = append(p.top, "The line is too long to be read. Those in front are shown.")
			l.List = slices.Clone(e.Holders)
			if e.First != nil {
				l.List = append(l.List, *e.First)
			}
		}
		if e.Behind() != "" {
			p.top = append(p.top, "Some wait for "+clean(e.Behind())+", which belongs to no session.")
		}
		if e.MayBeApart() {
			p.top = append(p.top, "Not all contenders here exclude each other.")
		}
		if e.Numbers.Low {
			p.top = append(p.top, fmt.Sprintf("Only %d sequence numbers are left.", e.Numbers.Left))
		}
	}
	if l.Err != nil {
		p.empty = clean(l.Err.Error())
	}
	n := 0
	for _, c := range l.List {
		r := row{key: c.Path + " " + strconv.FormatInt(int64(c.Token), 10), node: c.Path}
		var place cell
		token := cell{"·", faint}
		switch {
		case c.Holder:
			place, token = cell{"holder", good}, cell{strconv.FormatInt(int64(c.Token), 10), plain}
			if c.Kind == lock.Candidate {
				place.text = "leader"
			}
		case c.MayHold:
			place = cell{"may hold", warn}
		default:
			n++
			place = cell{"waiter " + strconv.Itoa(n), plain}
		}
		if c.Kind == lock.Reader || c.Kind == lock.Writer {
			place.text += ", " + map[lock.Kind]string{lock.Reader: "r", lock.Writer: "w"}[c.Kind]
		}
		d := m.now.Sub(c.Since)
		if c.Holder && len(e.Holders) > 0 && c.Path == e.Holders[0].Path && c.Token == e.Holders[0].Token {
			d = m.past.Held(e, m.now) // its node was made when it began to wait
		}
		owner := cell{clean(m.source.Owner(c)), plain}
		if c.Revoked != nil {
			owner = cell{"asked: " + owner.text, warn}
		}
		look := plain
		if !c.Holder {
			look = waitLook(d)
		}
		r.cells = []cell{place, owner, {ensemble.Ago(d), look}, {command.SessionID(c.Session), faint}, token}
		p.rows = append(p.rows, r)
	}
	return p
}
