package line

// The names of contenders, and their order.

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-a3166700/turnstile/internal/attempt"
)

// A Marker is what stands in a contender's name directly before its sequence number. It tells contenders from foreign
// children, and the kinds of contenders from each other.
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
	SupportOffer Marker = "n_"     // zookeeper-recipes' LeaderElectionSupport; the whole name but for the number
)

// A Contender is one entry in a line: a child of the line's path that carries a marker and a number.
type Contender struct {
	Name   string // the child's name, without the path
	Marker Marker
	Seq    int32 // the server's counter: signed, and it wraps (ZOOKEEPER-4706)
}

// ParseContender reads a child's name. It reports false for a foreign child: one whose name does not end in one of the
// markers and a sequence number. The longest marker that fits wins, wherever the list has it.
func ParseContender(name string, markers []Marker) (Contender, bool) {
	c, found := Contender{Name: name}, false
	for _, m := range markers {
		i := strings.LastIndex(name, string(m))
		if i < 0 || i > 0 && m == SupportOffer || (found && len(m) < len(c.Marker)) {
			continue
		}
		// The marker is cut off before the number is read: its own dash is not a sign ("lock-0000000001" is 1, not -1).
		if seq, ok := parseSeq(name[i+len(m):]); ok {
			c.Marker, c.Seq, found = m, seq, true
		}
	}
	return c, found
}

// parseSeq reads a sequence number as servers print it: %010d of a signed 32-bit counter, so ten characters, or eleven
// at the negative end.
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

// Contenders returns the contenders among the children of a line's path, in no order.
func Contenders(children []string, markers []Marker) []Contender {
	contenders := make([]Contender, 0, len(children))
	for _, name := range children {
		if s, ok := ParseContender(name, markers); ok {
			contenders = append(contenders, s)
		}
	}
	return contenders
}

// Before reports whether a stands ahead of b.
//
// Of two different contenders exactly one is before the other, whatever their numbers. That is one half of the argument
// for mutual exclusion: of any two contenders that see the same line, at most one can find no other ahead. The other
// half is that a contender which comes later is not before one that found no other ahead. For that, a contender of ours
// leaves if its number does not say when it came: see ordered.
//
// Numbers are compared as serial numbers, in which -2147483648 follows 2147483647. Ours that stay need no more than
// plain numbers. But where a server counts on like that, serial numbers put other programs' contenders, and those of
// ours that are about to leave, behind the ones that were there before.
func Before(a, b Contender) bool { return compare(a, b) < 0 }

func compare(a, b Contender) int {
	switch d := a.Seq - b.Seq; {
	case d == -1<<31:
		// Exactly half the circle apart, the difference says "before" both ways, so the plain numbers decide.
		return cmp.Compare(a.Seq, b.Seq)
	case d != 0:
		return cmp.Compare(d, 0)
	}
	// Equal numbers happen where a downgraded reader carries its writer's number. Any order does, if all see the same
	// one.
	return cmp.Compare(a.Name, b.Name)
}

// Sort puts contenders in the order in which the server saw them.
func Sort(contenders []Contender) { slices.SortFunc(contenders, compare) }

// Ahead returns the nearest contender ahead of mine that blocks it, and how many block it in all. Blocks says which of
// the contenders ahead matter: all of them for a mutex, only writers for a reader.
func Ahead(contenders []Contender, mine Contender, blocks func(Contender) bool) (nearest Contender, n int) {
	for _, s := range contenders {
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

// Fold takes the second nodes of contenders that have two, one in Curator's layout and one in kazoo's, out of the list,
// and returns their names by those of the first.
func Fold(contenders []Contender) (left []Contender, second map[string]string) {
	first := make(map[string]string)
	for _, s := range contenders {
		if !kazoos(s) {
			first[chosen(s.Name)] = s.Name
		}
	}
	second = make(map[string]string)
	left = slices.DeleteFunc(contenders, func(s Contender) bool {
		name, ok := first[chosen(s.Name)]
		if !ok || !kazoos(s) {
			return false
		}
		second[name] = s.Name
		return true
	})
	return left, second
}

func kazoos(s Contender) bool { return s.Marker == KazooLock || s.Marker == KazooRead }

// chosen is the part of a contender's name that it has chosen at random, in the form of Curator and ours: _c_UUID-.
// It is the name itself in another form.
func chosen(name string) string {
	const length = len("_c_") + 36 + len("-")
	return name[:min(length, len(name))]
}

// KazooPermit reports whether a name is that of a permit of kazoo's Semaphore, or of ours in its layout: 32 hexadecimal
// digits.
func KazooPermit(name string) bool {
	return len(name) == 32 && strings.Trim(name, "0123456789abcdef") == ""
}

// Ours reports whether Turnstile has chosen a contender's name: one that begins with _c_UUID-, with a UUID of ours, or
// is one without dashes, as permits in kazoo's layout are.
func Ours(name string) bool {
	const guid = len("_c_") + 36
	if len(name) > guid && name[:3] == "_c_" && name[guid] == '-' {
		name = name[len("_c_"):guid]
	}
	return attempt.IsGUID(name)
}
