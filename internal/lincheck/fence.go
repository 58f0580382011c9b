package lincheck

import (
	"cmp"
	"fmt"
	"slices"
)

// Write is a guarded write of a holder that the server has confirmed.
type Write struct {
	Client  int
	Token   int64 // of the hold
	Version int32 // of the node's data after it: the server's count of writes
}

// CheckWrites judges whether the writes to one node came from one holder after the other: in the order in which the server made them,
// their tokens never fall. A write whose answer was lost is not known, and may be missing.
func CheckWrites(writes []Write) error {
	sorted := slices.SortedFunc(slices.Values(writes), func(a, b Write) int { return cmp.Compare(a.Version, b.Version) })
	for i := 1; i < len(sorted); i++ {
		a, b := sorted[i-1], sorted[i]
		if b.Version == a.Version || b.Token < a.Token {
			return fmt.Errorf("lincheck: client %d wrote version %d with token %d, after client %d had written version %d with token %d",
				b.Client, b.Version, b.Token, a.Client, a.Version, a.Token)
		}
	}
	return nil
}
