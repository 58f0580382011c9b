package lincheck

// The model of a semaphore, and the order of its tokens.

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"
)

// permitsOp acquires permits, or releases them if their number is negative.
type permitsOp struct {
	permits int64
	token   int64
	node    string
}

// semaphoreModel is a semaphore with limit permits. Its state is the number of permits held.
func semaphoreModel(limit int64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return int64(0) },
		Step: func(state, input, _ any) (bool, any) {
			out := state.(int64) + input.(permitsOp).permits
			return out >= 0 && out <= limit, out
		},
		DescribeOperation: func(input, _ any) string {
			op := input.(permitsOp)
			if op.permits < 0 {
				return fmt.Sprintf("%d releases %d", op.token, -op.permits)
			}
			return fmt.Sprintf("%d acquires %d (%s)", op.token, op.permits, op.node)
		},
		DescribeState: func(state any) string { return fmt.Sprintf("%d of %d held", state, limit) },
	}
}

// CheckSemaphore checks that holds can be those of one semaphore: never more than limit permits at once. It reports
// errors as CheckMutex does.
func CheckSemaphore(holds []Hold, limit int64, dir string) error {
	ops := make([]holdOps, len(holds))
	for i, h := range holds {
		acquire := permitsOp{permits: h.Permits, token: h.Token, node: h.Node}
		ops[i] = h.ops(acquire, nil, permitsOp{permits: -h.Permits, token: h.Token})
	}
	return judge(semaphoreModel(limit), fmt.Sprintf("a semaphore of %d", limit), ops, dir)
}

// CheckTokens checks the tokens of holds that may overlap, such as a semaphore's: no two are equal, and a hold that
// was requested after another had been acquired has the larger token. The order of two concurrent acquisitions is
// unknown.
func CheckTokens(holds []Hold) error {
	got := slices.SortedFunc(slices.Values(holds), func(a, b Hold) int { return cmp.Compare(a.Got, b.Got) })
	asked := slices.SortedFunc(slices.Values(holds), func(a, b Hold) int { return cmp.Compare(a.Asked, b.Asked) })
	seen := make(map[int64]Hold, len(holds))
	var largest Hold // of the holds acquired by then
	for _, h := range asked {
		for ; len(got) > 0 && got[0].Got < h.Asked; got = got[1:] {
			if got[0].Token > largest.Token {
				largest = got[0]
			}
		}
		if h.Token <= largest.Token {
			return fmt.Errorf(
				"lincheck: client %d called at %d and got token %d (%s), after client %d had token %d (%s) at %d",
				h.Client, h.Asked, h.Token, h.Node, largest.Client, largest.Token, largest.Node, largest.Got)
		}
		if other, twice := seen[h.Token]; twice {
			return fmt.Errorf("lincheck: clients %d and %d both got token %d", other.Client, h.Client, h.Token)
		}
		seen[h.Token] = h
	}
	return nil
}
