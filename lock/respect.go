package lock

import (
	"slices"

	"github.com/seed-a3166700/turnstile/internal/line"
)

// Who excludes whom depends on the names that each program looks for: docs/interop.md has the table. What a program
// looks for can be told from its own node only in part. A contender of ours looks for every name of a lock's. Another
// program looks for the names of its own recipe, and for more only if it is told to (kazoo, with extra_lock_patterns)
// or has another reading of names (go-zookeeper, whose nodes are named as Curator's). So who stands behind a foreign
// name may wait for it, or may hold the lock as well.

// families are the names that a recipe of others looks for, by the name of its own node.
var families = map[line.Marker][]line.Marker{
	line.CuratorLock:  {line.CuratorLock},
	line.CuratorRead:  {line.CuratorRead, line.CuratorWrite},
	line.CuratorWrite: {line.CuratorRead, line.CuratorWrite},
	line.KazooLock:    {line.KazooLock, line.KazooRead},
	line.KazooRead:    {line.KazooLock, line.KazooRead},
}

// certainty is how certain it is that one waits for another.
type certainty int

const (
	no certainty = iota
	maybe
	yes
)

// inLine is a contender with the name that it stands in line by.
type inLine struct {
	*Contender
	seat line.Contender
}

// markers are those of the contender's nodes.
func (c inLine) markers() []line.Marker {
	list := []line.Marker{c.seat.Marker}
	switch {
	case c.Second == "":
	case isReader(c.seat):
		list = append(list, line.KazooRead)
	default:
		list = append(list, line.KazooLock)
	}
	return list
}

// respects reports whether c looks for other's name.
func (c inLine) respects(other inLine) certainty {
	latch := c.seat.Marker == line.CuratorLatch
	switch {
	case latch || other.seat.Marker == line.CuratorLatch: // an election of its own, for everybody
		if c.seat.Marker == other.seat.Marker {
			return yes
		}
		return no
	case c.Known:
		return yes
	}
	named := func(m line.Marker) bool { return slices.Contains(families[c.seat.Marker], m) }
	if slices.ContainsFunc(other.markers(), named) {
		return yes
	}
	return maybe
}

// waits reports whether c waits for other, which is ahead of it.
func (c inLine) waits(other inLine) certainty {
	if isReader(c.seat) && isReader(other.seat) {
		return no
	}
	respects := c.respects(other)
	if respects == yes && !c.Known && c.seat.Marker == line.KazooLock && isReader(other.seat) {
		return maybe // kazoo's WriteLock does, its Lock does not, and they have one name
	}
	return respects
}

// relate says of each contender whether it holds the lock, and puts those into one group who respect each other.
func relate(list []Contender, seats []line.Contender) {
	groups := 0
	for i := range list {
		c := inLine{&list[i], seats[i]}
		waits := no
		for j := range list {
			if other := (inLine{&list[j], seats[j]}); line.Before(other.seat, c.seat) {
				waits = max(waits, c.waits(other))
			}
		}
		c.Holder, c.MayHold = waits == no, waits == maybe
		c.Group = groups
		groups++
		for j := range i {
			other := inLine{&list[j], seats[j]}
			if c.respects(other) == yes && other.respects(c) == yes {
				merge(list[:i+1], other.Group, c.Group)
			}
		}
	}
	number(list)
}

// merge makes one of two groups.
func merge(list []Contender, one, other int) {
	for i := range list {
		if list[i].Group == other {
			list[i].Group = one
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

// hears reports whether a contender that is not one of ours may look for a request to give its lock up. Only
// Curator's InterProcessMutex does. Whatever else is written into a node destroys what its owner has put there, and
// nobody reads it.
func (c *Contender) hears() bool {
	return c.Known || c.Kind == Exclusive && c.marker == line.CuratorLock
}
