package lincheck

// The writes of a stored limit.

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Limit is a write, or an attempted write, of the node whose number of permits a semaphore watches. A writer writes
// only over the version that it has read. So the versions order the limits, and the next write settles whether a
// write with a lost reply was done.
type Limit struct {
	Client  int
	Permits int64
	Version int32 // of the node after the write
	Asked   int64 // before the write
	Done    int64 // when it was confirmed; 0 if it is unknown whether it was done
	Refused bool  `json:",omitempty"` // whether the server refused it
}

// CheckLimits checks holds of a semaphore that watches its limit: permits are acquired at a moment between the call
// and its return at which the limit allows that many beside those that are held. It accepts everything if there are
// no limits.
//
// The limit is the node's at that very moment, however late the client learns of changes, because the transaction
// that acquires permits checks that the node is as it was read. A watch that lags costs another round and admits no
// holder. More is not promised. When the call returns, the limit may have been lowered, and holds then stay. How soon
// waiters learn of a raised limit is not promised either; that they do learn of it shows when all are served in the
// end.
//
// Tokens grow with the moments of acquisition and so give their order. Of two limits that may have been in force at a
// moment, the larger counts.
func CheckLimits(holds []Hold, limits []Limit) error {
	if len(limits) == 0 {
		return nil
	}
	limits = mayBeWritten(limits)
	holds = slices.SortedFunc(slices.Values(holds), func(a, b Hold) int { return cmp.Compare(a.Token, b.Token) })
	until := make([]int64, len(holds)) // by then every hold with a larger token was acquired, and so was this one
	last := int64(math.MaxInt64)
	for i, h := range slices.Backward(holds) {
		last = min(last, h.Got)
		until[i] = last
	}
	from := int64(math.MinInt64) // by then every hold with a smaller token was requested
	for i, h := range holds {
		from = max(from, h.Asked)
		// Fewer permits are held later, and a limit ceases to be in force when another is confirmed.
		moments := []int64{until[i]}
		for _, l := range limits {
			if from <= l.Done && l.Done < until[i] {
				moments = append(moments, l.Done)
			}
		}
		if !slices.ContainsFunc(moments, func(t int64) bool {
			return out(holds[:i], t)+h.Permits <= inForce(limits, t)
		}) {
			return fmt.Errorf(
				"lincheck: client %d got %d permits (%s) between %d and %d, when %d were held and the limit was %d",
				h.Client, h.Permits, h.Node, from, until[i], out(holds[:i], until[i]), inForce(limits, until[i]))
		}
	}
	return nil
}

// mayBeWritten drops the limits that were not written: the refused ones, and those with a lost reply whose version
// another write has.
func mayBeWritten(limits []Limit) []Limit {
	confirmed := make(map[int32]bool)
	for _, l := range limits {
		confirmed[l.Version] = confirmed[l.Version] || l.Done != 0
	}
	return slices.DeleteFunc(slices.Clone(limits), func(l Limit) bool {
		return l.Refused || l.Done == 0 && confirmed[l.Version]
	})
}

// inForce returns the largest limit that may have been in force at a time.
func inForce(limits []Limit, at int64) int64 {
	version := int32(math.MinInt32) // the node's version is at least this
	for _, l := range limits {
		if l.Done != 0 && l.Done < at {
			version = max(version, l.Version)
		}
	}
	var largest int64
	for _, l := range limits {
		if l.Asked <= at && l.Version >= version {
			largest = max(largest, l.Permits)
		}
	}
	return largest
}

// out returns how many of the holds' permits were still held after a time. They were acquired by then, so they were
// held at that time.
func out(taken []Hold, at int64) int64 {
	var permits int64
	for _, h := range taken {
		if h.alive() > at {
			permits += h.Permits
		}
	}
	return permits
}
