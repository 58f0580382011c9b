package lincheck

import (
	"fmt"

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
