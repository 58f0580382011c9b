package top

// The tree of who waits for whom.

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
)

// waitNode is a session in the tree: one that holds a lock, or waits for one.
type waitNode struct {
	session  int64
	who      string
	path     string        // that it waits for; of a root, that it holds
	waited   time.Duration // of a root, for how long it has held
	children []*waitNode
	blocked  int // how many are below it
}

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
	roots, circles := m.waitTree()
	for _, r := range roots {
		m.drawWait(&p, r, "", "", plain)
	}
	for _, r := range circles {
		m.drawWait(&p, r, "", "possible circle: ", warn)
	}
	return p
}

// waitTree returns the trees, and those that begin nowhere.
func (m *model) waitTree() (roots, circles []*waitNode) {
	type hold struct {
		path string
		c    lock.Contender
	}
	holds := make(map[int64][]hold)
	waiting := make(map[int64]bool)
	waiters := make(map[string][]lock.Contender)
	var order []int64
	paths := make([]string, 0, len(m.lines))
	for path := range m.lines {
		if e, ok := m.snapshotEntry(path); ok && e.Waiting > 0 {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	for _, path := range paths {
		for _, c := range m.lines[path].list {
			if !c.Holder {
				waiting[c.Session] = true
				waiters[path] = append(waiters[path], c)
				continue
			}
			if len(holds[c.Session]) == 0 {
				order = append(order, c.Session)
			}
			holds[c.Session] = append(holds[c.Session], hold{path, c})
		}
	}
	drawn := make(map[int64]bool) // whose holds are in the tree
	var below func(n *waitNode, held []hold)
	below = func(n *waitNode, held []hold) {
		drawn[n.session] = true
		for _, h := range held {
			for _, c := range waiters[h.path] {
				child := &waitNode{
					session: c.Session, who: m.source.Owner(c), path: h.path, waited: m.now.Sub(c.Since),
				}
				if !drawn[c.Session] {
					below(child, holds[c.Session])
				}
				n.blocked += 1 + child.blocked
				n.children = append(n.children, child)
			}
		}
		slices.SortStableFunc(n.children, func(a, b *waitNode) int { return cmp.Compare(b.waited, a.waited) })
	}
	for _, circle := range []bool{false, true} {
		for _, session := range order {
			if drawn[session] || waiting[session] != circle {
				continue
			}
			h := holds[session]
			n := &waitNode{
				session: session, who: m.source.Owner(h[0].c), path: h[0].path, waited: m.now.Sub(h[0].c.Since),
			}
			below(n, h)
			if circle {
				circles = append(circles, n)
			} else {
				roots = append(roots, n)
			}
		}
	}
	worst := func(a, b *waitNode) int { return cmp.Compare(b.longest(), a.longest()) }
	slices.SortStableFunc(roots, worst)
	slices.SortStableFunc(circles, worst)
	return roots, circles
}

// longest returns for how long somebody waits directly below it.
func (n *waitNode) longest() time.Duration {
	if len(n.children) == 0 {
		return 0
	}
	return n.children[0].waited
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
				{mark + clean(who), l}, {clean(s.Path), plain}, {ago(m.now.Sub(s.Since)), plain}, {"·", faint},
			},
		})
	}
}

// drawWait adds the rows of a tree.
func (m *model) drawWait(p *page, n *waitNode, key, mark string, l look) {
	key += fmt.Sprintf("/%x %s", uint64(n.session), n.path)
	blocked := cell{"·", faint}
	if n.blocked > 0 {
		blocked = cell{strconv.Itoa(n.blocked), plain}
	}
	p.rows = append(p.rows, row{
		key: key, path: n.path, search: n.path,
		cells: []cell{
			{mark + clean(n.who), cmp.Or(l, strong)}, {clean(n.path), plain}, {ago(n.waited), plain}, blocked,
		},
	})
	m.drawBelow(p, n, key, "")
}

func (m *model) drawBelow(p *page, n *waitNode, key, indent string) {
	for i, child := range n.children {
		branch, next := "├─ ", "│  "
		if i == len(n.children)-1 {
			branch, next = "└─ ", "   "
		}
		blocked := cell{"·", faint}
		if child.blocked > 0 {
			blocked = cell{strconv.Itoa(child.blocked), plain}
		}
		childKey := fmt.Sprintf("%s/%x %s", key, uint64(child.session), child.path)
		p.rows = append(p.rows, row{
			key: childKey, path: child.path, search: child.path,
			cells: []cell{
				{indent + branch + clean(child.who), plain},
				{clean(child.path), faint},
				{ago(child.waited), waitLook(child.waited)},
				blocked,
			},
		})
		m.drawBelow(p, child, childKey, indent+next)
	}
}
