package line

import (
	"math"
	"testing"
	"time"
)

func TestWhatIsLeftOfADelay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		delay time.Duration
		since int64
		want  time.Duration
	}{
		{time.Second, 0, time.Second},
		{time.Second, 400, 600 * time.Millisecond},
		{time.Second, 1000, 0},
		{time.Second, math.MaxInt64, 0},
		{time.Second, -400, time.Second}, // another server's clock is behind
		{math.MaxInt64, -400, math.MaxInt64},
		{math.MaxInt64, 1, math.MaxInt64 - time.Millisecond},
		{time.Microsecond, 1, 0},
	} {
		if got := (delayRecord{Delay: c.delay}).left(c.since); got != c.want {
			t.Errorf("%v after %d ms: %v, want %v", c.delay, c.since, got, c.want)
		}
	}
}
