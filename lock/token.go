package lock

// Fencing tokens.

import (
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// Token is a fencing token: a later hold of a path has a larger token than every earlier one, across crashes, restarts,
// changes of the leader and the deletion of the path. Pass it to what the lock protects, and let that refuse a token
// smaller than the largest it has seen (package fence does): so a holder that was paused past the end of its hold
// cannot do harm.
//
// Its upper bits are the id of the transaction that created the hold's node, which servers only ever raise; the lower
// 12 count the holds that one node has served.
type Token = zk.Token

// ErrEpoch reports that the ensemble has elected so many leaders, more than 524,287, that its transaction ids no longer
// fit into a token.
var ErrEpoch = line.ErrEpoch
