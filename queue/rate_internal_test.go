package queue

import (
	"fmt"
	"testing"
	"time"
)

// However little the time of one item is, no more are delivered than the rate allows.
//
// Promise: 7
func TestRateThatDoesNotDivideItsTimeIsKept(t *testing.T) {
	t.Parallel()
	for _, r := range []Rate{
		{Items: 2_000_000, Per: 3 * time.Millisecond, Burst: 2_000_000},
		{Items: 700_000, Per: time.Second, Burst: 1000},
		{Items: 7, Per: 10 * time.Millisecond, Burst: 7},
		{Items: 1, Per: time.Hour, Burst: 1},
	} {
		t.Run(fmt.Sprint(r), func(t *testing.T) {
			t.Parallel()
			const begin = 1_000_000
			paid, claimed := int64(0), int64(0)
			for ms := range int64(10_000) {
				l := newLimit(r, paid, begin+ms, 0)
				paid = l.paid + int64(l.items)*int64(r.interval())
				claimed += int64(l.items)
				allowed := int64(r.Burst) + ms*int64(time.Millisecond)*int64(r.Items)/int64(r.Per)
				if claimed > allowed {
					t.Fatalf("after %d ms %d items may be claimed, want %d at most", ms, claimed, allowed)
				}
			}
			if claimed < int64(r.Burst) {
				t.Errorf("%d items may be claimed at once, want %d", claimed, r.Burst)
			}
		})
	}
}
