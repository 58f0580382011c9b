package line

import (
	"math"
	"testing"
	"time"
)

// Full jitter: pauses are spread over all of what the bound allows, and the bound doubles up to the limit.
func TestExponentialPausesAreDrawnFromZeroToABoundThatDoubles(t *testing.T) {
	t.Parallel()
	const base, limit = 100 * time.Millisecond, time.Second
	r := Exponential(base, limit)
	for n, bound := range []time.Duration{base, 2 * base, 4 * base, 8 * base, limit, limit} {
		low, high := time.Duration(math.MaxInt64), time.Duration(0)
		for range 2000 {
			pause, again := r.before(n + 1)
			if !again || pause < 0 || pause >= bound {
				t.Fatalf("try %d: got %v, %v, want less than %v", n+1, pause, again, bound)
			}
			low, high = min(low, pause), max(high, pause)
		}
		if low > bound/10 || high < bound-bound/10 {
			t.Errorf("try %d: 2000 pauses lie between %v and %v, want all of 0 to %v", n+1, low, high, bound)
		}
	}
	for _, n := range []int{40, 63, 64, 65, 1 << 40} { // no overflow
		if pause, again := Exponential(time.Nanosecond, math.MaxInt64).before(n); !again || pause < 0 {
			t.Errorf("try %d: got %v, %v", n, pause, again)
		}
	}
}

func TestPoliciesEndWhenTheyShould(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		retry Policy
		tries int // more than the first; -1 for no end
	}{
		"zero":    {Policy{}, -1},
		"forever": {Forever(time.Second), -1},
		"never":   {Forever(time.Second).Times(0), 0},
		"thrice":  {Forever(time.Second).Times(3), 3},
		"growing": {Exponential(1, 2).Times(5), 5},
	} {
		for n := 1; n <= 10; n++ {
			_, again := c.retry.before(n)
			if want := c.tries < 0 || n <= c.tries; again != want {
				t.Errorf("%s: try %d: got %v, want %v", name, n, again, want)
			}
		}
	}
}
