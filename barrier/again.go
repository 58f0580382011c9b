package barrier

// Coming again: what a party of a double barrier knows from the round before.

import (
	"fmt"
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
)

// A past is what a party knows that has left a barrier closed.
type past struct {
	version int32    // of the barrier's node
	name    nodeName // of the party's node
	lowest  bool     // it was the member with the lowest name, which has closed the barrier
}

// nodeName is the name of a party's node. A party that comes again after a round keeps the GUID, so that the lowest
// member of a round is the lowest of the next. The turn makes each name new: a request that is done late can do
// something to this round's node only.
type nodeName struct {
	guid string
	turn uint32
}

func newNodeName() nodeName { return nodeName{guid: line.NewGUID()} }

func (n nodeName) String() string { return fmt.Sprintf("%s-%08x", n.guid, n.turn) }

func (n nodeName) next() nodeName { return nodeName{n.guid, n.turn + 1} }

// A role says how a party finds out that all have come.
type role int

const (
	// looking: the party looks when it has come. If it came last, it opens the barrier.
	looking role = iota
	// leading: the party was the lowest member of the last round of a small barrier. It watches the others come, and
	// opens the barrier.
	leading
	// relying: the party has left the last round of a small barrier, and was not the lowest member. It relies on the one
	// that leads, for the time of reliance, and on not being the lowest member this time either. If it is wrong it loses
	// time: see leaveEarly.
	relying
)

// reliance is how long a party relies on the leader without a look. The leader may not have come again.
const reliance = 100 * time.Millisecond

// role returns the party's role when it comes again.
func (p *past) role(parties int) role {
	switch {
	case p == nil || parties > smallBarrier:
		return looking
	case p.lowest:
		return leading
	default:
		return relying
	}
}
