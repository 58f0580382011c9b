package elect

import (
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/line"
)

// Layout is how an election's nodes are named: with whom it is shared. All candidates of a path use the same one.
type Layout int

// The layouts.
const (
	// LeaderLatch is the layout of Curator's LeaderLatch: nodes _c_UUID-latch-SEQ.
	LeaderLatch Layout = iota
	// LeaderSelector is the layout of Curator's LeaderSelector: nodes _c_UUID-lock-SEQ, the same as a mutex has. Whoever holds a lock at
	// the path keeps the candidates waiting, and the other way round.
	LeaderSelector
	// KazooElection is the layout of kazoo's Election and Lock: nodes _c_UUID-__lock__SEQ, below parents that are not removed when they are
	// empty, because kazoo does not make them again.
	KazooElection
)

// String returns the name of the peer's recipe.
func (l Layout) String() string {
	switch l {
	case LeaderLatch:
		return "LeaderLatch"
	case LeaderSelector:
		return "LeaderSelector"
	case KazooElection:
		return "KazooElection"
	default:
		return fmt.Sprintf("Layout(%d)", int(l))
	}
}

// prefix is a candidate's name up to its number. The random part is what it is found by when nobody knows whether it was made.
func (l Layout) prefix(guid string) string {
	switch l {
	case LeaderSelector:
		return "_c_" + guid + "-" + string(line.CuratorLock)
	case KazooElection:
		// Kazoo looks at the end of a name only. It begins as Curator's, because a LeaderSelector sorts a name without its own marker
		// by all of its text, among bare numbers: kazoo's hexadecimal digits may come first there, an underscore never does.
		return "_c_" + guid + "-" + string(line.KazooLock)
	default:
		return "_c_" + guid + "-" + string(line.CuratorLatch)
	}
}

// markers tell who stands for election. Curator's and kazoo's locks see each other where they are set up to; we see both.
func (l Layout) markers() []line.Marker {
	if l == LeaderLatch {
		return []line.Marker{line.CuratorLatch}
	}
	return []line.Marker{line.CuratorLock, line.KazooLock}
}
