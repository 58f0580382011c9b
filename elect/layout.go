package elect

// The names of nodes, and which programs share an election.

import (
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/line"
)

// Layout is how an election's nodes are named, and so which other programs can take part. All candidates of a path use
// the same one.
type Layout int

// The layouts.
const (
	// LeaderLatch is the layout of Curator's LeaderLatch: nodes _c_UUID-latch-SEQ.
	LeaderLatch Layout = iota
	// LeaderSelector is the layout of Curator's LeaderSelector: nodes _c_UUID-lock-SEQ, as a mutex has. Holders of a
	// lock at the path keep candidates waiting, and leaders keep lockers waiting.
	LeaderSelector
	// KazooElection is the layout of kazoo's Election and Lock: nodes _c_UUID-__lock__SEQ. Parents stay when they are
	// empty, because kazoo does not create them again.
	KazooElection
)

// String returns the name of the other program's recipe.
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

// prefix is a candidate's name up to its number. By its random part the node is found if the reply to its creation is
// lost.
func (l Layout) prefix(guid string) string {
	switch l {
	case LeaderSelector:
		return "_c_" + guid + "-" + string(line.CuratorLock)
	case KazooElection:
		// Kazoo looks at the end of a name only. The beginning is Curator's, because a LeaderSelector sorts names
		// without its own marker by their whole text, among bare numbers: kazoo's hexadecimal digits may sort before
		// those, an underscore never does.
		return "_c_" + guid + "-" + string(line.KazooLock)
	default:
		return "_c_" + guid + "-" + string(line.CuratorLatch)
	}
}

// markers are those of the candidates' nodes. Curator's and kazoo's locks see each other only if configured to; we see
// both.
func (l Layout) markers() []line.Marker {
	if l == LeaderLatch {
		return []line.Marker{line.CuratorLatch}
	}
	return []line.Marker{line.CuratorLock, line.KazooLock}
}
