package lincheck_test

import (
	"testing"

	"github.com/seed-a3166700/turnstile/internal/lincheck"
)

// inside returns h with a hold nested in it.
func inside(h lincheck.Hold, token, alive int64) lincheck.Hold {
	h.Nested = append(h.Nested, lincheck.Nested{Token: base + token, Alive: alive})
	return h
}

// Promise: 1
func TestHoldLastsUntilTheLastThatIsNestedInIt(t *testing.T) {
	t.Parallel()
	cases := []verdict{
		{
			"the nested hold is given up first",
			after(3, inside(hold(1, 10, 100, 130, 135), 10, 110), hold(2, 20, 140, 150, 160)), true,
		},
		{
			"the nested hold is given up last",
			after(3, inside(hold(1, 10, 100, 110, 135), 10, 130), hold(2, 20, 140, 150, 160)), true,
		},
		{
			"another is in before the nested hold is given up",
			after(3, inside(hold(1, 10, 100, 110, 170), 10, 150), hold(2, 20, 140, 145, 160)), false,
		},
		{
			"another is in before the second is given up",
			after(3, inside(inside(hold(1, 10, 100, 110, 170), 10, 150), 10, 120), hold(2, 20, 140, 145, 160)), false,
		},
	}
	expect(t, lincheck.CheckMutex, cases)
	expect(t, lincheck.CheckRW, cases)
}

// Promise: 1
func TestNestedHoldWithATokenOfItsOwnIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what string
		hold lincheck.Hold
		ok   bool
	}{
		{"the same", inside(hold(1, 10, 100, 110, 120), 10, 115), true},
		{"another", inside(inside(hold(1, 10, 100, 110, 120), 10, 115), 11, 115), false},
		{"an upgraded writer's", inside(with(reader(1, 10, 100, 180, 190), false, 20, 110, 120), 20, 130), true},
		{
			"what an upgraded writer's was",
			inside(with(reader(1, 10, 100, 180, 190), false, 20, 110, 120), 10, 130), false,
		},
	} {
		if err := lincheck.CheckNested([]lincheck.Hold{c.hold}); (err == nil) != c.ok {
			t.Errorf("%s: got %v, want accepted: %t", c.what, err, c.ok)
		}
	}
}
