package lincheck

// Plain barriers: what those who wait, and those who look, may find.

import (
	"fmt"
	"math"
)

// The operations of a BarrierCall.
const (
	BarrierSet    = "set"
	BarrierRemove = "remove"
	BarrierWait   = "wait" // it has found the barrier down
	BarrierUp     = "up"   // a reader has found it up
)

// BarrierCall is one call of a plain barrier as its caller saw it. Times are as in Hold. A wait that failed is none.
type BarrierCall struct {
	Client int
	Op     string
	Asked  int64 // before the call
	Done   int64 `json:",omitempty"` // after it; 0 if the outcome is unknown: it may have been done at any time since
	// The connection was lost meanwhile. Besides being done between Asked and Done, it may be done once more, later.
	Torn bool `json:",omitempty"`
}

// last returns the latest time at which the call may have been done.
func (c BarrierCall) last() int64 {
	if c.Done == 0 || c.Torn {
		return math.MaxInt64
	}
	return c.Done
}

// CheckBarrier checks that the calls can be those of one barrier that is down at first: at some moment during each wait
// the barrier may have been down, and at some moment during each look that found it up it may have been up.
func CheckBarrier(calls []BarrierCall) error {
	for _, c := range calls {
		var opposite, same string
		switch {
		case c.Done == 0:
			continue
		case c.Op == BarrierWait:
			opposite, same = BarrierSet, BarrierRemove
		case c.Op == BarrierUp:
			opposite, same = BarrierRemove, BarrierSet
		default:
			continue
		}
		// The last one that was surely done before, and whether anything may have undone it.
		var before BarrierCall
		for _, o := range calls {
			if o.Op == opposite && o.Done != 0 && o.Done < c.Asked && o.Asked > before.Asked {
				before = o
			}
		}
		undone := before.Done == 0 && c.Op == BarrierWait
		for _, s := range calls {
			undone = undone || s.Op == same && s.Asked <= c.Done && s.last() >= before.Asked
		}
		if !undone {
			return fmt.Errorf("lincheck: the barrier let through what it should not: %+v, after %+v", c, before)
		}
	}
	return nil
}
