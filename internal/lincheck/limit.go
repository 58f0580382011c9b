package lincheck

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Limit is a number of permits that somebody wrote to the node that a semaphore watches, or tried to. It is written only over the version
// that its writer has read: so versions tell in which order numbers were in force, and whether one was written whose answer is lost is open
// only until the next one is.
type Limit struct {
	Client  int
	Permits int64
	Version int32 // of the node, if this was written
	Asked   int64 // before it was written
	Done    int64 // when that was confirmed; 0 if nobody knows whether it was written
	Refused bool  `json:",omitempty"` // it was not
}

// CheckLimits judges holds of a semaphore whose limit is watched, and changes: permits are taken at a moment between the call and its
// return at which the limit allows so many beside those that are out. Without limits there is nothing to judge.
//
// That is the node's limit of that very moment, however late the client hears of changes, because the transaction that takes permits
// checks that the node is still as it was read. A watch that lags costs another round, and lets nobody in. More is not promised: when
// the call returns, the number may have been lowered, and what is out then stays. Nor is it promised how soon those who wait hear of a number
// that was raised: that they do, sooner or later, is seen when everybody is served in the end.
//
// Tokens grow with the moments of taking, so that these are in order. Of two numbers that may have been in force at a moment, the larger counts.
func CheckLimits(holds []Hold, limits []Limit) error {
	if len(limits) == 0 {
		return nil
	}
	limits = perhapsWritten(limits)
	holds = slices.SortedFunc(slices.Values(holds), func(a, b Hold) int { return cmp.Compare(a.Token, b.Token) })
	until := make([]int64, len(holds)) // whoever has a larger token had it by then, and so had this one
	last := int64(math.MaxInt64)
	for i, h := range slices.Backward(holds) {
		last = min(last, h.Got)
		until[i] = last
	}
	from := int64(math.MinInt64) // whoever has a smaller token had asked by then
	for i, h := range holds {
		from = max(from, h.Asked)
		// Fewer are out later on, and a number ceases to be in force when another is confirmed.
		moments := []int64{until[i]}
		for _, l := range limits {
			if from <= l.Done && l.Done < until[i] {
				moments = append(moments, l.Done)
			}
		}
		if !slices.ContainsFunc(moments, func(t int64) bool { return out(holds[:i], t)+h.Permits <= inForce(limits, t) }) {
			return fmt.Errorf("lincheck: client %d got %d permits (%s) between %d and %d, when %d were out and the limit was %d",
				h.Client, h.Permits, h.Node, from, until[i], out(holds[:i], until[i]), inForce(limits, until[i]))
		}
	}
	return nil
}

// perhapsWritten leaves out what was not written: what was refused, and what nobody answered where another has made that version.
func perhapsWritten(limits []Limit) []Limit {
	confirmed := make(map[int32]bool)
	for _, l := range limits {
		confirmed[l.Version] = confirmed[l.Version] || l.Done != 0
	}
	return slices.DeleteFunc(slices.Clone(limits), func(l Limit) bool { return l.Refused || l.Done == 0 && confirmed[l.Version] })
}

// inForce returns the largest number that may have been in force at a time.
func inForce(limits []Limit, at int64) int64 {
	version := int32(math.MinInt32) // the node's, at least
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

// out returns how many of the holds' permits were held after a time, and so, since they had been taken by then, at it.
func out(taken []Hold, at int64) int64 {
	var permits int64
	for _, h := range taken {
		if h.alive() > at {
			permits += h.Permits
		}
	}
	return permits
}
