package ensemble

// The tree of who waits for whom.

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/lock"
)

// A Wait is a session in the tree of waits: one that holds a lock, or waits for one.
type Wait struct {
	Session  int64
	Who      string
	Path     string    // that it waits for; of a root, that it holds
	Since    time.Time // of a root, since when it has held
	Children []*Wait
	Blocked  int // how many are below it
}

// Waits returns the trees of who waits for whom in some lines, and those trees that begin nowhere: circles. That a
// session which holds one lock and waits for another blocks those behind it is possible, not certain: it may be two
// goroutines of one process.
func Waits(
	s *survey.Snapshot, lines map[string]Line, owner func(lock.Contender) string,
) (roots, circles []*Wait) {
	type hold struct {
		path string
		c    lock.Contender
	}
	holds := make(map[int64][]hold)
	waiting := make(map[int64]bool) // at a path that it does not hold: threads of one process are no circle
	waiters := make(map[string][]lock.Contender)
	var order []int64
	paths := make([]string, 0, len(lines))
	for path := range lines {
		if e, ok := s.Entry(path); ok && e.Waiting > 0 {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	for _, path := range paths {
		holders := make(map[int64]bool)
		for _, c := range lines[path].List {
			if !c.Holder || holders[c.Session] { // several permits are one hold
				continue
			}
			holders[c.Session] = true
			if len(holds[c.Session]) == 0 {
				order = append(order, c.Session)
			}
			holds[c.Session] = append(holds[c.Session], hold{path, c})
		}
		for _, c := range lines[path].List {
			if c.Holder || c.MayHold && holders[c.Session] { // a reader beside its own writer
				continue
			}
			waiting[c.Session] = waiting[c.Session] || !holders[c.Session]
			waiters[path] = append(waiters[path], c)
		}
	}
	drawn := make(map[int64]bool) // whose holds are in the tree
	var below func(n *Wait, held []hold)
	below = func(n *Wait, held []hold) {
		drawn[n.Session] = true
		for _, h := range held {
			for _, c := range waiters[h.path] {
				child := &Wait{
					Session: c.Session, Who: owner(c), Path: h.path, Since: c.Since,
				}
				if !drawn[c.Session] {
					below(child, holds[c.Session])
				}
				n.Blocked += 1 + child.Blocked
				n.Children = append(n.Children, child)
			}
		}
		slices.SortStableFunc(n.Children, func(a, b *Wait) int { return a.Since.Compare(b.Since) })
	}
	for _, circle := range []bool{false, true} {
		for _, session := range order {
			if drawn[session] || waiting[session] != circle {
				continue
			}
			h := holds[session]
			n := &Wait{
				Session: session, Who: owner(h[0].c), Path: h[0].path, Since: h[0].c.Since,
			}
			below(n, h)
			if circle {
				circles = append(circles, n)
			} else {
				roots = append(roots, n)
			}
		}
	}
	// Those for which somebody has waited longest come first. Where nobody waits, that is last.
	worst := func(a, b *Wait) int {
		if n := cmp.Compare(min(len(b.Children), 1), min(len(a.Children), 1)); n != 0 || len(a.Children) == 0 {
			return n
		}
		return a.Children[0].Since.Compare(b.Children[0].Since)
	}
	slices.SortStableFunc(roots, worst)
	slices.SortStableFunc(circles, worst)
	return roots, circles
}
