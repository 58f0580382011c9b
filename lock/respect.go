package lock

// Which contenders exclude each other.

import (
	stdpath "path"
	"slices"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
)

// Which contenders exclude each other depends on the names that each program looks for: docs/interop.md has the table.
// What a program looks for can be told from its own node only in part. A contender of ours looks for every name that a
// lock's contender can have. Another program looks for the names of its own recipe, and for more only if it is
// configured to (kazoo, with extra_lock_patterns) or reads names differently (go-zookeeper, whose nodes are named as
// Curator's). So a contender behind a foreign name may wait for it, or may hold the lock as well.

// certainty is how certain it is that one contender waits for another.
type certainty int

const (
	no certainty = iota
	maybe
	yes
)

// inLine is a contender as Inspect returns it, with its entry in the line.
type inLine struct {
	*Contender
	contender line.Contender
}

// markers are those of the contender's nodes.
func (c inLine) markers() []line.Marker {
	list := []line.Marker{c.contender.Marker}
	switch {
	case c.Second == "":
	case isReader(c.contender):
		list = append(list, line.KazooRead)
	default:
		list = append(list, line.KazooLock)
	}
	return list
}

// respects reports whether c looks for other's name.
func (c inLine) respects(other inLine) certainty {
	switch {
	case elects(c.contender.Marker) || elects(other.contender.Marker): // one of its own
		if c.contender.Marker == other.contender.Marker {
			return yes
		}
		return no
	case c.Known:
		return yes
	}
	looks := c.contender.Marker.Family()
	if c.ourCandidate() {
		looks = append(slices.Clone(looks), line.CuratorLock, line.KazooLock)
	}
	if slices.ContainsFunc(other.markers(), func(m line.Marker) bool { return slices.Contains(looks, m) }) {
		return yes
	}
	return maybe
}

// elects reports whether only elections have a marker.
func elects(m line.Marker) bool { return m == line.CuratorLatch || m == line.SupportOffer }

// waits reports whether c waits for other, which is ahead of it.
func (c inLine) waits(other inLine) certainty {
	if isReader(c.contender) && isReader(other.contender) {
		return no
	}
	respects := c.respects(other)
	if respects == yes && !c.Known && c.contender.Marker == line.KazooLock && isReader(other.contender) {
		return maybe // kazoo's WriteLock does, its Lock does not, and they have one name
	}
	if respects == yes && c.inside(*other.Contender) {
		return maybe
	}
	return respects
}

// inside reports whether c is a reader behind a writer of its own session, as Curator's threads that hold a lock for
// writing may take it for reading, too. Another thread of that process waits.
func (c *Contender) inside(other Contender) bool {
	return !c.Known && c.marker == line.CuratorRead && other.marker == line.CuratorWrite && c.Session == other.Session
}

// class is all that respects depends on.
type class struct {
	marker                line.Marker
	known, candidate, two bool
}

func (c inLine) class() class {
	return class{c.contender.Marker, c.Known, c.ourCandidate(), c.Second != ""}
}

// relate says of each contender whether it holds the lock, and puts contenders that respect each other into one group.
// Strays are nodes of no session in their line, at path: no contenders, but waited for.
func relate(list []Contender, names []line.Contender, path string, strays []line.Contender) {
	var classes []inLine // the first of each
	var group []int      // of each class
	known := make(map[class]int)
	for i := range list {
		c := inLine{&list[i], names[i]}
		waits := no
		for j := 0; j < len(strays) && waits < yes; j++ {
			if other := (inLine{new(Contender), strays[j]}); line.Before(other.contender, c.contender) {
				if waits = max(waits, c.waits(other)); waits == yes {
					c.Behind = attempt.Join(path, strays[j].Name)
				}
			}
		}
		for j := 0; j < len(list) && waits < yes; j++ { // as a rule one of the first tells
			if other := (inLine{&list[j], names[j]}); line.Before(other.contender, c.contender) {
				waits = max(waits, c.waits(other))
			}
		}
		c.Holder, c.MayHold = waits == no, waits == maybe
		n, ok := known[c.class()]
		if !ok {
			n = len(classes)
			known[c.class()] = n
			classes, group = append(classes, c), append(group, n)
			for k, other := range classes {
				if c.respects(other) == yes && other.respects(c) == yes {
					merge(group, group[k], group[n])
				}
			}
		}
		list[i].Group = n
	}
	for i := range list {
		list[i].Group = group[list[i].Group]
	}
	number(list)
}

// merge makes one of two groups.
func merge(group []int, one, other int) {
	for i := range group {
		if group[i] == other {
			group[i] = one
		}
	}
}

// number numbers the groups in the order in which they come.
func number(list []Contender) {
	numbers := make(map[int]int)
	for i := range list {
		n, ok := numbers[list[i].Group]
		if !ok {
			n = len(numbers)
			numbers[list[i].Group] = n
		}
		list[i].Group = n
	}
}

// hears reports whether a contender may look for a request to give its lock up: ours do, and of the others only
// Curator's InterProcessMutex. Writing into any other node would destroy its owner's data, and no program would read
// the request.
func (c *Contender) hears() bool {
	return c.Known || c.ourCandidate() || c.Kind == Exclusive && c.marker == line.CuratorLock
}

// ourCandidate reports whether the contender is a candidate of package elect. Its node has a name of ours, and no
// owner's record, because other programs take all of its data for the candidate's id.
func (c *Contender) ourCandidate() bool {
	return !c.Known && c.marker != "" && line.Ours(stdpath.Base(c.Path))
}
