package lincheck

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"
)

// permitsOp takes permits, or gives them back if there are fewer than none.
type permitsOp struct {
	permits int64
	token   int64
	node    string
}

// semaphoreModel is a number of permits of which no more than limit are out at any time. Its state is how many are.
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
				return fmt.Sprintf("%d gives %d back", op.token, -op.permits)
			}
			return fmt.Sprintf("%d takes %d (%s)", op.token, op.permits, op.node)
		},
		DescribeState: func(state any) string { return fmt.Sprintf("%d of %d out", state, limit) },
	}
}

// CheckSemaphore judges whether holds can be those of one semaphore: never more than limit permits at once. It reports as CheckMutex does.
func CheckSemaphore(holds []Hold, limit int64, dir string) error {
	stories := make([]story, len(holds))
	for i, h := range holds {
		stories[i] = h.story(permitsOp{permits: h.Permits, token: h.Token, node: h.Node}, nil, permitsOp{permits: -h.Permits, token: h.Token})
	}
	return judge(semaphoreModel(limit), fmt.Sprintf("a semaphore of %d", limit), stories, dir)
}

// CheckTokens judges the tokens of holds that may last at the same time, as those of a semaphore do: no two are equal, and one that was asked
// for when another had been given has the larger token. Of two that were under way at once nobody knows which was first.
func CheckTokens(holds []Hold) error {
	got := slices.SortedFunc(slices.Values(holds), func(a, b Hold) int { return cmp.Compare(a.Got, b.Got) })
	asked := slices.SortedFunc(slices.Values(holds), func(a, b Hold) int { return cmp.Compare(a.Asked, b.Asked) })
	seen := make(map[int64]Hold, len(holds))
	var largest Hold // of those that had been given by then
	for _, h := range asked {
		for ; len(got) > 0 && got[0].Got < h.Asked; got = got[1:] {
			if got[0].Token > largest.Token {
				largest = got[0]
			}
		}
		if h.Token <= largest.Token {
			return fmt.Errorf("lincheck: client %d asked at %d and got token %d (%s), after client %d had got token %d (%s) at %d",
				h.Client, h.Asked, h.Token, h.Node, largest.Client, largest.Token, largest.Node, largest.Got)
		}
		if other, twice := seen[h.Token]; twice {
			return fmt.Errorf("lincheck: clients %d and %d both got token %d", other.Client, h.Client, h.Token)
		}
		seen[h.Token] = h
	}
	return nil
}
