package lock

// The names of nodes, and which programs respect them.

import (
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
)

// Layout is how a lock's nodes are named, and so which other programs respect them. Whatever its own layout, a lock
// respects the nodes of all layouts.
type Layout int

// The layouts. The table in docs/interop.md says which locks exclude each other.
const (
	// Curator is the layout of Curator's InterProcessMutex and InterProcessReadWriteLock, and of go-zookeeper's Lock:
	// nodes _c_UUID-lock-SEQ. Kazoo's locks see it only with extra_lock_patterns=["-lock-"].
	Curator Layout = iota
	// Kazoo is the layout of kazoo's Lock, WriteLock and ReadLock: nodes _c_UUID-__lock__SEQ. Parents stay when they
	// are empty, because kazoo does not create them again. Curator's locks do not see it. For a Semaphore it is the
	// layout of kazoo's Semaphore: permits are children of the path, and the line is at PATH-__lock__.
	Kazoo
	// Both creates a node of each layout for every contender, in one transaction, so that unmodified programs in Java
	// and in Python respect it. Those still do not see each other. It costs the server twice the nodes.
	Both
)

// String returns the layout's name.
func (l Layout) String() string {
	switch l {
	case Curator:
		return "Curator"
	case Kazoo:
		return "Kazoo"
	case Both:
		return "Both"
	default:
		return fmt.Sprintf("Layout(%d)", int(l))
	}
}

func (l Layout) check() error {
	if l < Curator || l > Both {
		return attempt.Bad("lock: unknown layout %v; use Curator, Kazoo or Both", l)
	}
	return nil
}

// prefixes are what stands in a contender's name between its random part and its number: in Curator's names and in
// kazoo's.
type prefixes struct{ curator, kazoo string }

// The prefixes of a mutex's contenders, of a read/write lock's, and of a semaphore's permits.
var (
	lockPrefixes    = prefixes{string(line.CuratorLock), string(line.KazooLock)}
	readPrefixes    = prefixes{string(line.CuratorRead), string(line.KazooRead)}
	writePrefixes   = prefixes{string(line.CuratorWrite), string(line.KazooLock)}
	leasePrefixes   = prefixes{curator: string(line.CuratorLease)} // kazoo's have no marker
	upgradePrefixes = prefixes{upgraded + string(line.CuratorWrite), upgraded + string(line.KazooLock)}
)

// apply names the contenders of a line.
//
// The names in kazoo's layout begin as Curator's do and not as kazoo's own, with 32 hexadecimal digits. Kazoo looks
// at the end of a name only. Curator sorts a name without its own marker by all of its text, among the bare numbers
// of the others: once these have grown, hexadecimal digits may come before them, and a Curator contender would wait
// for one that came later and waits for it. Nothing that begins with an underscore comes before a number.
func (l Layout) apply(to *line.Line, p prefixes) {
	named := func(prefix string) func(string) string {
		return func(guid string) string { return "_c_" + guid + "-" + prefix }
	}
	switch l {
	case Kazoo:
		to.Prefix = named(p.kazoo)
	case Both:
		to.Prefix, to.Second = named(p.curator), named(p.kazoo)
	default:
		to.Prefix = named(p.curator)
	}
	to.Lasting = l != Curator
}
