// Package stuck finds the waits that can never end by themselves: deadlocks. It looks at what sessions say of their
// waits, and asks no server.
package stuck

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// The kinds of holds and waits. Those of different families have nothing to do with each other, even at one path.
const (
	Exclusive   = "exclusive" // a mutex or a set
	Writer      = "writer"
	Reader      = "reader"
	Permit      = "permit"
	KazooPermit = "kazoo-permit" // its line and its permits are other nodes than Permit's
	Simple      = "simple"
	Leader      = "leader" // of an election in one of the layouts whose candidates see each other
	Latch       = "latch"  // and in the others
	Offer       = "offer"
)

// A Hold is what a wait goes on inside of. Its paths, token and node say which it is: none of them comes again.
type Hold struct {
	Paths   []string `json:"paths"`
	Node    string   `json:"node"` // the first one
	Token   int64    `json:"token"`
	Kind    string   `json:"kind"`
	Permits int      `json:"permits,omitempty"`
	Other   bool     `json:"other,omitempty"` // of another process, which has started this one
}

// A Wait is one call that waits, as long as it waits with the same node: a call that joins its line again is another
// Wait.
type Wait struct {
	ID      uint64    `json:"id"` // in its record
	Paths   []string  `json:"paths"`
	Node    string    `json:"node,omitempty"`  // the first one; none for Simple
	Czxid   int64     `json:"czxid,omitempty"` // of the nodes: the order of the line
	Kind    string    `json:"kind"`
	Permits int       `json:"permits,omitempty"` // that it wants
	Limit   int       `json:"limit,omitempty"`   // of the semaphore; 0 if it can change, and so says nothing
	Since   time.Time `json:"since"`             // by its own clock
	Label   string    `json:"label,omitempty"`   // what it is for
	Yields  bool      `json:"yields,omitempty"`  // it fails if it is chosen to give way
	Holds   []Hold    `json:"holds"`             // that are not unlocked; at least one

	Record string `json:"-"` // the name of the node that says so
}

// key says which wait it is, and inside of what. Two descriptions with one key are of the same uninterrupted wait.
func (w *Wait) key() string {
	b, err := json.Marshal(struct {
		Record string
		*Wait
	}{w.Record, w})
	if err != nil {
		return "" // cannot happen: every field marshals
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// Same reports whether the two are the same uninterrupted wait.
func (w *Wait) Same(other *Wait) bool {
	return w.Record == other.Record && w.ID == other.ID && w.Node == other.Node && w.Czxid == other.Czxid &&
		w.Kind == other.Kind && w.Permits == other.Permits && w.Limit == other.Limit &&
		w.Yields == other.Yields && w.Label == other.Label &&
		w.Since.Equal(other.Since) && slices.Equal(w.Paths, other.Paths) &&
		slices.EqualFunc(w.Holds, other.Holds, func(a, b Hold) bool {
			return a.Token == b.Token && a.Node == b.Node && a.Kind == b.Kind && a.Permits == b.Permits &&
				a.Other == b.Other && slices.Equal(a.Paths, b.Paths)
		})
}

// A Deadlock is waits that hold up each other, and everything that this rests on: as long as all of them stand, none
// can end.
type Deadlock struct {
	Key   string  // says which waits they are
	Waits []*Wait // in the order of their keys
	// Cycle is the way around, one after the other: each waits for the next, the last for the first. It begins with
	// the wait that is to give way.
	Cycle []Step
}

// A Step is a wait in a cycle. Hold is the hold of the next one that it waits for, nil if it waits for the next one to
// have its turn in the line.
type Step struct {
	Wait *Wait
	Path string // of which lock
	Hold *Hold
}

// victim returns the wait that is to give way: the one that came last, by the server, of those that would.
func (d *Deadlock) victim() *Wait {
	yields := func(w *Wait) int {
		if w.Yields {
			return 1
		}
		return 0
	}
	return slices.MaxFunc(d.Waits, func(a, b *Wait) int { // of equals, the first by key
		return cmp.Or(cmp.Compare(yields(a), yields(b)), cmp.Compare(a.Czxid, b.Czxid))
	})
}

// place is a lock: a path, and the family of kinds that exclude each other there.
type place struct{ path, family string }

func family(kind string) string {
	if kind == Writer || kind == Reader {
		return Exclusive
	}
	return kind
}

// graph is what waits for what.
type graph struct {
	waits []*Wait
	holds map[int64]*node // by token
	at    map[place]*spot
	gone  map[*Wait]bool    // are not stuck
	edges map[*Wait][]*edge // of those that are
}

// edge says that a stuck wait waits for another one.
type edge struct {
	Step
	to *Wait
}

// node is a hold, with the waits inside of it.
type node struct {
	Hold
	inside []*Wait
	ends   bool // a wait inside of it is not stuck
}

// spot is what is known of a place: the holds, by token, and the waits, as they stand in line.
type spot struct {
	holds []*node
	waits []*Wait
}

// Find returns the deadlocks among waits. A wait is stuck if what it waits for is held by a hold that is stuck, or if a
// stuck wait stands in the line before it; a hold is stuck if all waits inside of it are. What no wait is inside of
// goes on, and so does whatever is not in the list.
//
// A wait names one reason: the hold with the smallest token, or the nearest in line. So whoever reads the same list
// finds the same deadlocks, and each of them is as small as can be.
func Find(waits []*Wait) []*Deadlock {
	g := &graph{waits: waits, holds: make(map[int64]*node), at: make(map[place]*spot)}
	g.gone, g.edges = make(map[*Wait]bool), make(map[*Wait][]*edge)
	for _, w := range waits {
		for _, path := range w.Paths {
			s := g.spot(path, w.Kind)
			s.waits = append(s.waits, w)
		}
		for _, h := range w.Holds {
			n := g.holds[h.Token]
			if n == nil {
				n = &node{Hold: h}
				g.holds[h.Token] = n
				for _, path := range h.Paths {
					s := g.spot(path, h.Kind)
					s.holds = append(s.holds, n)
				}
			}
			n.inside = append(n.inside, w)
		}
	}
	for _, s := range g.at {
		slices.SortFunc(s.holds, func(a, b *node) int { return cmp.Compare(a.Token, b.Token) })
		slices.SortFunc(s.waits, func(a, b *Wait) int { return cmp.Compare(a.Czxid, b.Czxid) })
	}
	g.reduce()
	for _, w := range waits {
		if !g.gone[w] {
			g.link(w)
		}
	}
	return g.deadlocks()
}

func (g *graph) spot(path, kind string) *spot {
	at := place{path, family(kind)}
	if g.at[at] == nil {
		g.at[at] = new(spot)
	}
	return g.at[at]
}

// reduce takes away what can go on. When a wait is taken away, others may go on: those for what it holds, and those
// behind it. Only these are looked at again, and for each hold once, so that thousands of waits take no minutes.
func (g *graph) reduce() {
	todo := slices.Clone(g.waits)
	queued := make(map[*Wait]bool, len(todo))
	for _, w := range todo {
		queued[w] = true
	}
	again := func(waits []*Wait) {
		for _, w := range waits {
			if !g.gone[w] && !queued[w] {
				todo, queued[w] = append(todo, w), true
			}
		}
	}
	for len(todo) > 0 {
		w := todo[0]
		todo, queued[w] = todo[1:], false
		if g.gone[w] || len(g.reasons(w)) > 0 {
			continue
		}
		g.gone[w] = true
		for _, path := range w.Paths {
			again(g.behind(w, path))
		}
		for _, h := range w.Holds {
			n := g.holds[h.Token]
			if n.ends {
				continue
			}
			n.ends = true
			for _, path := range n.Paths {
				again(g.spot(path, n.Kind).waits)
			}
		}
	}
}

// behind returns the waits behind one that is gone that it may have held up: the first that is left, and if that is a
// reader also the one behind it, and so on.
func (g *graph) behind(w *Wait, path string) (list []*Wait) {
	waits := g.spot(path, w.Kind).waits
	for _, other := range waits[standsAt(w, waits):] {
		if other.Czxid == w.Czxid || g.gone[other] {
			continue
		}
		if list = append(list, other); other.Kind != Reader {
			break
		}
	}
	return list
}

// standsAt returns how many of a spot's waits came before a wait.
func standsAt(w *Wait, waits []*Wait) int {
	at, _ := slices.BinarySearchFunc(waits, w.Czxid, func(other *Wait, czxid int64) int {
		return cmp.Compare(other.Czxid, czxid)
	})
	return at
}

// reason is why a wait is stuck: one of hold and ahead.
type reason struct {
	path  string
	hold  *node
	ahead *Wait
}

// reasons returns why a wait is stuck, nil if it is not. All of them together are why.
func (g *graph) reasons(w *Wait) []reason {
	for _, path := range w.Paths {
		s := g.spot(path, w.Kind)
		if list := g.held(w, path, s); list != nil {
			return list
		}
		for _, other := range slices.Backward(s.waits[:standsAt(w, s.waits)]) {
			switch {
			case other.Czxid == 0, g.gone[other]: // in no line, or not stuck
			case other.Kind == Reader && w.Kind == Reader:
			default:
				return []reason{{path: path, ahead: other}}
			}
		}
	}
	return nil
}

// held returns the stuck holds that keep a wait from what it wants.
func (g *graph) held(w *Wait, path string, s *spot) (list []reason) {
	permits := 0
	for _, n := range s.holds {
		if n.ends {
			continue
		}
		switch w.Kind {
		case Permit, KazooPermit:
			list = append(list, reason{path: path, hold: n})
			if permits += n.Permits; w.Limit > 0 && permits > w.Limit-w.Permits {
				return list
			}
		case Reader:
			if n.Kind != Reader {
				return []reason{{path: path, hold: n}}
			}
		default:
			return []reason{{path: path, hold: n}}
		}
	}
	return nil // also if some permits are left
}

// link adds the edges of a stuck wait.
func (g *graph) link(w *Wait) {
	for _, r := range g.reasons(w) {
		if r.hold == nil {
			g.edges[w] = append(g.edges[w], &edge{Step{w, r.path, nil}, r.ahead})
			continue
		}
		for _, inside := range r.hold.inside {
			g.edges[w] = append(g.edges[w], &edge{Step{w, r.path, &r.hold.Hold}, inside})
		}
	}
}

// vertex is a stuck wait as Tarjan's algorithm sees it.
type vertex struct {
	w          *Wait
	rest       []*edge // that were not followed yet
	index, low int
	component  int // 0 while it is on the stack
}

// deadlocks returns those sets of stuck waits in which each waits for all others, and none for a wait outside: the
// strongly connected components (Tarjan, 1972) that no edge leaves.
func (g *graph) deadlocks() (found []*Deadlock) {
	vertices := make(map[*Wait]*vertex)
	var stack, calls []*vertex // not recursive: a chain of waits may be as long as there are waits
	components := 0
	enter := func(w *Wait) {
		v := &vertex{w: w, rest: g.edges[w], index: len(vertices), low: len(vertices)}
		vertices[w] = v
		stack, calls = append(stack, v), append(calls, v)
	}
	for _, root := range g.waits {
		if vertices[root] != nil || g.gone[root] {
			continue
		}
		for enter(root); len(calls) > 0; {
			v := calls[len(calls)-1]
			if len(v.rest) > 0 {
				to := v.rest[0].to
				v.rest = v.rest[1:]
				switch other := vertices[to]; {
				case other == nil:
					enter(to)
				case other.component == 0:
					v.low = min(v.low, other.index)
				}
				continue
			}
			calls = calls[:len(calls)-1]
			if len(calls) > 0 {
				caller := calls[len(calls)-1]
				caller.low = min(caller.low, v.low)
			}
			if v.low != v.index {
				continue
			}
			components++
			at := slices.Index(stack, v)
			var members []*Wait
			for _, m := range stack[at:] {
				m.component = components
				members = append(members, m.w)
			}
			stack = stack[:at]
			leaves := func(e *edge) bool { return vertices[e.to].component != components }
			if !slices.ContainsFunc(members, func(m *Wait) bool { return slices.ContainsFunc(g.edges[m], leaves) }) {
				found = append(found, g.deadlock(members))
			}
		}
	}
	slices.SortFunc(found, func(a, b *Deadlock) int { return cmp.Compare(a.Key, b.Key) })
	return found
}

// deadlock describes one of which the members are known.
func (g *graph) deadlock(members []*Wait) *Deadlock {
	keys := make(map[*Wait]string, len(members))
	for _, m := range members {
		keys[m] = m.key()
	}
	slices.SortFunc(members, func(a, b *Wait) int { return cmp.Compare(keys[a], keys[b]) })
	sum := sha256.New()
	for _, m := range members {
		sum.Write([]byte(keys[m]))
	}
	d := &Deadlock{Key: hex.EncodeToString(sum.Sum(nil)[:16]), Waits: members}
	d.Cycle = g.cycle(d.victim())
	return d
}

// cycle returns the shortest way from a wait back to it.
func (g *graph) cycle(start *Wait) (cycle []Step) {
	from := make(map[*Wait]*edge) // how each was reached
	for todo := []*Wait{start}; from[start] == nil; todo = todo[1:] {
		for _, e := range g.edges[todo[0]] {
			if from[e.to] == nil {
				from[e.to] = e
				todo = append(todo, e.to)
			}
		}
	}
	for w := start; len(cycle) == 0 || w != start; w = cycle[len(cycle)-1].Wait {
		cycle = append(cycle, from[w].Step)
	}
	slices.Reverse(cycle)
	return cycle
}

// Records returns the names of the nodes that say so.
func (d *Deadlock) Records() []string {
	set := make(map[string]struct{})
	for _, w := range d.Waits {
		set[w.Record] = struct{}{}
	}
	return slices.Sorted(maps.Keys(set))
}
