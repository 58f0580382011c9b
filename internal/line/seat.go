// Package line is how Turnstile stands in line: ephemeral sequential nodes below one path, ordered by the number that the server gave
// them, each waiter watching only the nearest one ahead. Locks and elections are this line with different names and different rules
// of who blocks whom.
package line

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// A Marker is what stands in a contender's name directly before its sequence number. It tells contenders from foreign children, and
// the kinds of contenders from each other.
type Marker string

// The markers of the recipes that share paths with ours.
const (
	CuratorLock  Marker = "lock-"    // Curator's InterProcessMutex and LeaderSelector, go-zookeeper's Lock
	KazooLock    Marker = "__lock__" // kazoo's Lock and WriteLock
	CuratorRead  Marker = "__READ__" // Curator's InterProcessReadWriteLock
	CuratorWrite Marker = "__WRIT__"
	KazooRead    Marker = "__rlock__"
	CuratorLatch Marker = "latch-" // Curator's LeaderLatch
	CuratorLease Marker = "lease-" // Curator's InterProcessSemaphoreV2
)

// A Seat is one contender in the line: a child of the line's path that carries a marker and a number.
type Seat struct {
	Name   string // the child's name, without the path
	Marker Marker
	Seq    int32 // the server's counter: signed, and it wraps (ZOOKEEPER-4706)
}

// ParseSeat reads a child's name. It reports false for a foreign child: one whose name does not end in one of the markers and a
// sequence number. The longest marker that fits wins, wherever the list has it.
func ParseSeat(name string, markers []Marker) (Seat, bool) {
	seat, found := Seat{Name: name}, false
	for _, m := range markers {
		i := strings.LastIndex(name, string(m))
		if i < 0 || (found && len(m) < len(seat.Marker)) {
			continue
		}
		// The marker is cut off before the number is read: its own dash is not a sign ("lock-0000000001" is 1, not -1).
		if seq, ok := parseSeq(name[i+len(m):]); ok {
			seat.Marker, seat.Seq, found = m, seq, true
		}
	}
	return seat, found
}

// parseSeq reads a sequence number as servers print it: %010d of a signed 32-bit counter, so ten characters, or eleven at the
// negative end.
func parseSeq(s string) (int32, bool) {
	if len(s) < 10 || len(s) > 11 || s[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || (s[0] == '-' && n == 0) || (len(s) == 11 && n > -1_000_000_000) {
		return 0, false
	}
	return int32(n), true
}

// Seats returns the contenders among the children of a line's path, in no order.
func Seats(children []string, markers []Marker) []Seat {
	seats := make([]Seat, 0, len(children))
	for _, name := range children {
		if s, ok := ParseSeat(name, markers); ok {
			seats = append(seats, s)
		}
	}
	return seats
}

// Before reports whether a stands ahead of b.
//
// Of two different seats exactly one is before the other, whatever their numbers. That is one half of the argument for mutual exclusion: of
// any two contenders that see the same line, at most one can find nobody ahead. The other half is that a contender which comes later is not
// before one that found nobody ahead. See ordered: contenders of ours whose number does not say when they came leave.
//
// Numbers are compared as serial numbers, in which -2147483648 follows 2147483647. Ours that stay need no more than plain numbers. But where
// a server counts on like that, it puts others, and those of ours that are about to leave, behind those that were there before.
func Before(a, b Seat) bool { return compare(a, b) < 0 }

func compare(a, b Seat) int {
	switch d := a.Seq - b.Seq; {
	case d == -1<<31: // exactly half the circle apart: the difference says "before" both ways, so the plain numbers decide
		return cmp.Compare(a.Seq, b.Seq)
	case d != 0:
		return cmp.Compare(d, 0)
	}
	// Equal numbers happen where a downgraded reader carries its writer's number. Any order does, if all see the same one.
	return cmp.Compare(a.Name, b.Name)
}

// Sort puts seats in the order in which the server saw them.
func Sort(seats []Seat) { slices.SortFunc(seats, compare) }

// Ahead returns the nearest seat ahead of mine that blocks it, and how many block it in all. Blocks says which of the seats ahead
// matter: all of them for a mutex, only writers for a reader.
func Ahead(seats []Seat, mine Seat, blocks func(Seat) bool) (nearest Seat, n int) {
	for _, s := range seats {
		if s.Name == mine.Name || !Before(s, mine) || !blocks(s) {
			continue
		}
		if n == 0 || Before(nearest, s) {
			nearest = s
		}
		n++
	}
	return nearest, n
}
