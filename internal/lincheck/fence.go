package lincheck

// Guarded writes.

import (
	"cmp"
	"fmt"
	"slices"
)

// Write is a holder's guarded write that the server has confirmed.
type Write struct {
	Client  int
	Token   int64 // of the hold
	Version int32 // of the node's data after the write
}

// CheckWrites checks that the holders wrote to a node one after the other: in the order of the versions, the tokens
// never fall. A write whose reply was lost may be missing.
func CheckWrites(writes []Write) error {
	sorted := slices.SortedFunc(slices.Values(writes), func(a, b Write) int {
		return cmp.Compare(a.Version, b.Version)
	})
	for i := 1; i < len(sorted); i++ {
		a, b := sorted[i-1], sorted[i]
		if b.Version == a.Version || b.Token < a.Token {
			return fmt.Errorf(
				"lincheck: client %d wrote version %d with token %d, after client %d wrote version %d with %d",
				b.Client, b.Version, b.Token, a.Client, a.Version, a.Token)
		}
	}
	return nil
}
