package line

// Fencing tokens.

import (
	"errors"
	"fmt"
)

// turnBits is how many bits of a token count the turns within one node.
const turnBits = 12

// Turns is how many tokens the creation of one node is good for.
const Turns = 1 << turnBits

// ErrEpoch says that the ensemble has elected so many leaders that its transaction ids no longer fit into a token: more
// than 524,287.
var ErrEpoch = errors.New("the ensemble's epoch is too large for fencing tokens")

// Token makes the fencing token of a node's turn: the transaction id with which the node was created, which servers
// only ever raise, and below it the turn. It returns ErrEpoch if that does not fit.
func Token(czxid int64, turn int) (int64, error) {
	if czxid < 0 || czxid >= 1<<(63-turnBits) {
		return 0, fmt.Errorf("%w: transaction id %#x", ErrEpoch, czxid)
	}
	return czxid<<turnBits | int64(turn), nil
}
