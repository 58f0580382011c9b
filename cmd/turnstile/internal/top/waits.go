package top

// The tree of who waits for whom.

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/seed-a3166700/turnstile/lock"
)

// waits draws who holds and does not wait, and below who waits for it. That a session which holds one lock and waits
// for another blocks those behind it is possible, not certain: it may be two goroutines of one process. Above
// all that are the deadlocks that the programs tell of.
func (m *model) waits() page {
	p := page{
		columns: []column{
			{name: "HOLDS, AND WHO WAITS", grow: 5},
			{name: "PATH", grow: 4, middle: true},
			{name: "FOR", width: 6, right: true},
			{name: "BLOCKED", width: 7, right: true},
		},
		empty: "Nobody waits.",
	}
	for i, d := range m.deadlocks {
		m.drawDeadlock(&p, i, d)
	}
	roots, circles := ensemble.Waits(m.snapshot, m.lines, m.source.Owner)
	for _, r := range roots {
		m.drawWait(&p, r, "", "", plain)
	}
	for _, r := range circles {
		m.drawWait(&p, r, "", "possible circle: ", warn)
	}
	return p
}

// drawDeadlock adds the rows of a deadlock: the one that gives way, and below it whom it waits for, around to itself.
func (m *model) drawDeadlock(p *page, n int, d lock.FoundDeadlock) {
	title, l := "deadlock", bad
	if !d.Confirmed {
		title, l = "possible deadlock", faint
	}
	for i, s := range d.Steps {
		mark := "   "
		if i == 0 {
			mark = title + ": "
		}
		who := m.source.Owner(lock.Contender{Owner: s.Owner, Known: true})
		p.rows = append(p.rows, row{
			key: fmt.Sprintf("deadlock %d %d", n, i), path: s.Path, search: s.Path,
			cells: []cell{
				{mark + clean(who), l}, {clean(s.Path), plain}, {ensemble.Ago(m.now.Sub(s.Since)), plain}, {"·", faint},
			},
		})
	}
}

// drawWait adds the rows of a tree.
func (m *model) drawWait(p *page, n *ensemble.Wait, key, mark string, l look) {
	key += fmt.Sprintf("/%x %s", uint64(n.Session), n.Path)
	blocked := cell{"·", faint}
	if n.Blocked > 0 {
		blocked = cell{strconv.Itoa(n.Blocked), plain}
	}
	p.rows = append(p.rows, row{
		key: key, path: n.Path, search: n.Path,
		cells: []cell{
			{mark + clean(n.Who), cmp.Or(l, strong)},
			{clean(n.Path), plain},
			{ensemble.Ago(m.now.Sub(n.Since)), plain},
			blocked,
		},
	})
	m.drawBelow(p, n, key, "")
}

func (m *model) drawBelow(p *page, n *ensemble.Wait, key, indent string) {
	for i, child := range n.Children {
		branch, next := "├─ ", "│  "
		if i == len(n.Children)-1 {
			branch, next = "└─ ", "   "
		}
		blocked := cell{"·", faint}
		if child.Blocked > 0 {
			blocked = cell{strconv.Itoa(child.Blocked), plain}
		}
		waited := m.now.Sub(child.Since)
		childKey := fmt.Sprintf("%s/%x %s", key, uint64(child.Session), child.Path)
		p.rows = append(p.rows, row{
			key: childKey, path: child.Path, search: child.Path,
			cells: []cell{
				{indent + branch + clean(child.Who), plain},
				{clean(child.Path), faint},
				{ensemble.Ago(waited), waitLook(waited)},
				blocked,
			},
		})
		m.drawBelow(p, child, childKey, indent+next)
	}
}
