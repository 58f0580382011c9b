// Package lincheck judges histories of holds: whether one lock could have behaved so. Histories are recorded by many clients, in many
// processes on one machine, and judged by porcupine.
package lincheck

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// Hold is what one holder saw. Times are nanoseconds of a clock that all processes of the machine share.
type Hold struct {
	Client int    // who held; no two clients have the same number
	Node   string // whatever tells this hold from others, for people
	Token  int64
	Got    int64 // when Lock had returned
	Alive  int64 // when its context was last seen alive
	Ended  int64 // when it was first seen ended or was given up; 0 if nobody lived to see it
}

// lockOp is one operation of the history: taking the lock with a token, or letting go of it.
type lockOp struct {
	take  bool
	token int64
}

// lockState is the state of the model: who holds the lock, by token, and the largest token seen.
type lockState struct {
	holder int64 // 0: nobody
	last   int64
}

// mutexModel is a lock that one holds at a time and whose tokens only grow.
var mutexModel = porcupine.Model{
	Init: func() any { return lockState{} },
	Step: func(state, input, _ any) (bool, any) {
		s, op := state.(lockState), input.(lockOp)
		if op.take {
			return s.holder == 0 && op.token > s.last, lockState{holder: op.token, last: op.token}
		}
		return s.holder == op.token, lockState{last: s.last}
	},
	DescribeOperation: func(input, _ any) string {
		op := input.(lockOp)
		if op.take {
			return fmt.Sprintf("take %d", op.token)
		}
		return fmt.Sprintf("leave %d", op.token)
	},
	DescribeState: func(state any) string {
		s := state.(lockState)
		return fmt.Sprintf("holder %d, last %d", s.holder, s.last)
	},
}

// CheckMutex judges whether holds can be those of one mutex: never two at once, each with a larger token than the one before. If they
// cannot, it writes the history as a page into dir and returns an error that names it.
//
// A hold begins when Lock returns; it ends at some instant between the last moment at which its context was seen alive and the first
// at which it was seen ended. A holder that was killed may have ended at any time after it began.
func CheckMutex(holds []Hold, dir string) error {
	var history []porcupine.Operation
	for _, h := range holds {
		left := h.Ended
		if left == 0 {
			left = math.MaxInt64
		}
		history = append(history,
			porcupine.Operation{ClientId: h.Client, Input: lockOp{take: true, token: h.Token}, Call: h.Got - 1, Return: h.Got},
			porcupine.Operation{ClientId: h.Client, Input: lockOp{token: h.Token}, Call: max(h.Alive, h.Got+1), Return: max(left, h.Got+2)})
	}
	result, info := porcupine.CheckOperationsVerbose(mutexModel, history, 2*time.Minute)
	if result == porcupine.Ok {
		return nil
	}
	verdict := fmt.Errorf("lincheck: %s: the history of %d holds is not a mutex's%s", result, len(holds), offence(holds))
	page := filepath.Join(dir, "history.html")
	f, err := os.Create(page)
	if err == nil {
		err = errors.Join(porcupine.Visualize(mutexModel, info, f), f.Close())
	}
	if err != nil {
		return fmt.Errorf("%w; it cannot be kept: %w", verdict, err)
	}
	return fmt.Errorf("%w; see %s", verdict, page)
}

// offence describes, for people, the first two holds that contradict each other.
func offence(holds []Hold) string {
	sorted := slices.SortedFunc(slices.Values(holds), func(a, b Hold) int { return cmp.Compare(a.Token, b.Token) })
	for i := 1; i < len(sorted); i++ {
		if a, b := sorted[i-1], sorted[i]; b.Got < a.Alive {
			return fmt.Sprintf(": client %d was in with token %d (%s) from %d to %d, client %d with token %d (%s) from %d to %d, %v too early",
				a.Client, a.Token, a.Node, a.Got, a.Alive, b.Client, b.Token, b.Node, b.Got, b.Alive, time.Duration(a.Alive-b.Got))
		}
	}
	return ""
}
