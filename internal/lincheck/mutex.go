package lincheck

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// mutexOp is one operation of the history: taking the lock with a token, or letting go of it.
type mutexOp struct {
	take  bool
	token int64
	node  string
}

// mutexState is the state of the model: who holds the lock, by token, and the largest token seen.
type mutexState struct {
	holder int64 // 0: nobody
	last   int64
}

// mutexModel is a lock that one holds at a time and whose tokens only grow.
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
			return fmt.Sprintf("take %d (%s)", op.token, op.node)
		}
		return fmt.Sprintf("leave %d", op.token)
	},
	DescribeState: func(state any) string {
		s := state.(mutexState)
		return fmt.Sprintf("holder %d, last %d", s.holder, s.last)
	},
}

// CheckMutex judges whether holds can be those of one mutex: never two at once, each with a larger token than the one before. If they
// cannot, it writes the history as a page into dir and returns an error that names it.
//
// A hold begins when Lock returns; it ends at some instant between the last moment at which its context was seen alive and the first
// at which it was seen ended. A holder that was killed may have ended at any time after it began.
func CheckMutex(holds []Hold, dir string) error {
	return checkExclusive(mutexModel, "a mutex", holds, dir)
}

// checkExclusive judges holds of which there is one at a time.
func checkExclusive(model porcupine.Model, what string, holds []Hold, dir string) error {
	stories := make([]story, len(holds))
	for i, h := range holds {
		stories[i] = h.story(mutexOp{take: true, token: h.Token, node: h.Node}, nil, mutexOp{token: h.Token})
	}
	if err := judge(model, what, stories, dir); err != nil {
		return fmt.Errorf("%w%s", err, offence(holds))
	}
	return nil
}

// offence describes, for people, the first two holds that contradict each other.
func offence(holds []Hold) string {
	sorted := slices.SortedFunc(slices.Values(holds), func(a, b Hold) int { return cmp.Compare(a.Token, b.Token) })
	for i := 1; i < len(sorted); i++ {
		if a, b := sorted[i-1], sorted[i]; b.Got < a.alive() {
			return fmt.Sprintf(": client %d was in with token %d (%s) from %d to %d, client %d with token %d (%s) from %d to %d, %v too early",
				a.Client, a.Token, a.Node, a.Got, a.alive(), b.Client, b.Token, b.Node, b.Got, b.alive(), time.Duration(a.alive()-b.Got))
		}
	}
	return ""
}
