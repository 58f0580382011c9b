package lincheck

// What ids of a sequence must be.

import (
	"errors"
	"fmt"
)

// IDs are ids that one goroutine got from a sequence, in their order.
type IDs struct {
	Client int
	IDs    []int64
}

// CheckSequence checks that no id was given out twice, and that those that a goroutine got at a time increase.
func CheckSequence(all []IDs) error {
	owner := map[int64]int{}
	var errs []error
	for _, got := range all {
		for i, id := range got.IDs {
			if other, taken := owner[id]; taken {
				errs = append(errs, fmt.Errorf("lincheck: id %d was given out twice: to clients %d and %d", id, other,
					got.Client))
			}
			owner[id] = got.Client
			if i > 0 && id <= got.IDs[i-1] {
				errs = append(errs, fmt.Errorf("lincheck: client %d got id %d after %d", got.Client, id, got.IDs[i-1]))
			}
		}
	}
	const most = 5
	return errors.Join(errs[:min(len(errs), most)]...)
}
