package attempt

// A write that orders what a session asks before and after it.

import (
	"context"
	"errors"

	"github.com/seed-a3166700/turnstile/zk"
)

// Fence adds to b a request that is answered when everything that its session has asked for before was applied or never
// will be, over whichever connection and by whichever server; passed waits for that. What b asks for behind it sees all
// of it.
//
// It is a write without effect: the deletion of a node that no client makes. A session that has moved to a new
// connection is no longer served over the old one, so none of its old requests can still reach the leader, and writes
// are applied in the order in which they reach it. A sync would not do. The leader answers one at once to its own
// clients, as a read, although a write that came by way of another server is still on its way through the quorum
// (ZOOKEEPER-1675).
//
// The node's parent is missing, too: so there is no list of rights by which a server could refuse, and the fence needs
// no right at all. In particular a follower with enableEagerACLCheck, which answers NoAuth by itself before the
// requests ahead of the fence have been applied, passes it on to the leader.
func Fence(b *zk.Batch) (passed func(context.Context) error) {
	done := b.Delete("/"+Mark("fence-"+NewGUID())+"/none", -1)
	return func(ctx context.Context) error {
		_, err := done.Get(ctx)
		if errors.Is(err, zk.NoNode) {
			return nil
		}
		return err
	}
}
