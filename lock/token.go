package lock

import "github.com/seed-a3166700/turnstile/internal/line"

// Token is a fencing token: a later hold of a path has a larger token than every earlier one, across crashes, restarts, changes of the
// leader and deletion of the lock's directory. Give it to whatever the lock protects, and let that refuse a token smaller than the
// largest it has seen: so a holder that was paused past the end of its hold cannot do harm.
//
// Its upper bits are the transaction id with which the hold's node was created, which servers only ever raise; the lower 12 count the
// holds that one node has served.
type Token int64

// ErrEpoch says that the ensemble has elected so many leaders that its transaction ids no longer fit into a token: more than 524,287.
var ErrEpoch = line.ErrEpoch
