package elect

// The names of nodes, and which programs share an election.

import (
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/attempt"
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
	// lock.Mutex at the path keep candidates waiting, and leaders keep its lockers waiting; an RWMutex ignores both.
	LeaderSelector
	// KazooElection is the layout of kazoo's Election and Lock: nodes _c_UUID-__lock__SEQ. Parents stay when they are
	// empty, because kazoo does not create them again.
	KazooElection
	// Both is LeaderSelector and KazooElection: each candidate has a node of each layout, created in one transaction,
	// so that unmodified candidates in Java and in Python respect it. Those still do not see each other. It costs
	// the server twice the nodes.
	Both
	// LeaderElectionSupport is the layout of zookeeper-recipes' LeaderElectionSupport: nodes n_SEQ, whose data is the
	// candidate's id. Java's clients expect a host name there. They cannot create the path, and fail at a child with
	// another name, which Turnstile's candidates ignore. Nothing is written to a node after its creation, because a
	// candidate in Java would not hear of its deletion then: so leaders in this layout cannot proclaim a value, and
	// cannot be asked to resign. Parents stay when they are empty.
	//
	// The numbers begin anew when a client has deleted the path, so that a node can have the name of an earlier one.
	// Candidates do not mistake it for theirs, and tokens grow all the same, but two things are weaker. A guard cannot
	// tell the leader's node from a later one of its name: fence with the Token where the path may be deleted. And
	// Resign can remove such a later node, if the path is deleted and made again in the moment in which it deletes, or
	// while a partition between servers delays its request. As it looks before it deletes, a TryCampaign right behind
	// Resign may still find the old node; behind ResignWait it does not.
	LeaderElectionSupport
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
	case Both:
		return "Both"
	case LeaderElectionSupport:
		return "LeaderElectionSupport"
	default:
		return fmt.Sprintf("Layout(%d)", int(l))
	}
}

func (l Layout) check() error {
	if l < LeaderLatch || l > LeaderElectionSupport {
		return attempt.Bad("elect: unknown layout %v; use LeaderLatch, LeaderSelector, KazooElection, Both or "+
			"LeaderElectionSupport", l)
	}
	return nil
}

// apply names the candidates of a line. By the random part of its name a node is found if the reply to its creation is
// lost; where the name has no room for that, its ACL has it.
//
// Kazoo looks at the end of a name only. The beginning of those in its layout is Curator's, because a LeaderSelector
// sorts names without its own marker by their whole text, among bare numbers: kazoo's hexadecimal digits may sort
// before those, an underscore never does.
//
// Curator's and kazoo's locks see each other only if configured to; we see both.
func (l Layout) apply(to *line.Line) {
	named := func(m line.Marker) func(string) string {
		return func(guid string) string { return "_c_" + guid + "-" + string(m) }
	}
	to.Markers = []line.Marker{line.CuratorLock, line.KazooLock}
	to.Lasting = l != LeaderLatch && l != LeaderSelector
	switch l {
	case LeaderSelector:
		to.Prefix = named(line.CuratorLock)
	case KazooElection:
		to.Prefix = named(line.KazooLock)
	case Both:
		to.Prefix, to.Second = named(line.CuratorLock), named(line.KazooLock)
	case LeaderElectionSupport:
		to.Prefix, to.Signed = func(string) string { return string(line.SupportOffer) }, true
		to.Markers = []line.Marker{line.SupportOffer}
	default:
		to.Prefix = named(line.CuratorLatch)
		to.Markers = []line.Marker{line.CuratorLatch}
	}
}
