package lincheck

// The model of a mutex.

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// mutexOp is one operation of a history: to acquire the lock with a token, or to release it.
type mutexOp struct {
	take  bool
	token int64
	node  string
}

// mutexState is the state of the model: the holder's token, and the largest token so far.
type mutexState struct {
	holder int64 // 0 if the lock is free
	last   int64
}

// mutexModel is a lock with one holder at a time, whose tokens only grow.
var mutexModel = porcupine.Model{
	Init: func() any { return mutexState{} },
	Step: func(state, input, _ any) (bool, any) {
		s, op := state.(mutexState), input.(mutexOp)
		if op.take {
			return s.holder == 0 && op.token > s.last, mutexState{holder: op.token, last: op.token}
		}
		return s.holder == op.token, mutexState{last: s.last}
	},
	DescribeOperation: func(input, _ any) string {
		op := input.(mutexOp)
		if op.take {
			return fmt.Sprintf("acquire %d (%s)", op.token, op.node)
		}
		return fmt.Sprintf("release %d", op.token)
	},
	DescribeState: func(state any) string {
		s := state.(mutexState)
		return fmt.Sprintf("holder %d, last %d", s.holder, s.last)
	},
}

// CheckMutex checks that holds can be those of one mutex: never two at once, each with a larger token than the one
// before. If they cannot, it writes the history as a page into dir and returns an error with the page's name.
//
// A hold begins when Lock returns. It ends at some instant between the last moment at which its context was seen
// alive and the first at which it was seen ended. The hold of a killed holder may have ended at any time after it
// began.
func CheckMutex(holds []Hold, dir string) error {
	return checkExclusive(mutexModel, "a mutex", holds, dir)
}

// checkExclusive checks holds of which only one may exist at a time.
func checkExclusive(model porcupine.Model, what string, holds []Hold, dir string) error {
	ops := make([]holdOps, len(holds))
	for i, h := range holds {
		ops[i] = h.ops(mutexOp{take: true, token: h.Token, node: h.Node}, nil, mutexOp{token: h.Token})
	}
	if err := judge(model, what, ops, dir); err != nil {
		return fmt.Errorf("%w%s", err, overlap(holds))
	}
	return nil
}

// overlap describes the first two holds that overlap.
func overlap(holds []Hold) string {
	sorted := slices.SortedFunc(slices.Values(holds), func(a, b Hold) int { return cmp.Compare(a.Token, b.Token) })
	for i := 1; i < len(sorted); i++ {
		if a, b := sorted[i-1], sorted[i]; b.Got < a.alive() {
			return fmt.Sprintf(
				": client %d had token %d (%s) from %d to %d, client %d had token %d (%s) from %d to %d, %v early",
				a.Client, a.Token, a.Node, a.Got, a.alive(), b.Client, b.Token, b.Node, b.Got, b.alive(), time.Duration(
					a.alive()-b.Got))
		}
	}
	return ""
}
