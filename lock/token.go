package lock

import (
	"errors"
	"fmt"
)

// Token is a fencing token: a later hold of a path has a larger token than every earlier one, across crashes, restarts, changes of the
// leader and deletion of the lock's directory. Give it to whatever the lock protects, and let that refuse a token smaller than the
// largest it has seen: so a holder that was paused past the end of its hold cannot do harm.
//
// Its upper bits are the transaction id with which the hold's node was created, which servers only ever raise; the lower 12 count the
// holds that one node has served.
type Token int64

// turnBits is how many bits of a token count the turns within one node.
const turnBits = 12

// ErrEpoch says that the ensemble has elected so many leaders that its transaction ids no longer fit into a token: more than 524,287.
var ErrEpoch = errors.New("lock: the ensemble's epoch is too large for fencing tokens")

// newToken makes the token of a node's turn.
func newToken(czxid int64, turn int) (Token, error) {
	if czxid < 0 || czxid >= 1<<(63-turnBits) {
		return 0, fmt.Errorf("%w: transaction id %#x", ErrEpoch, czxid)
	}
	return Token(czxid<<turnBits | int64(turn)), nil
}
