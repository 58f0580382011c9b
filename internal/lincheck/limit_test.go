package lincheck_test

import (
	"slices"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/lincheck"
)

// Promise: 1
func TestPermitsBeyondAWatchedLimitAreRefused(t *testing.T) {
	t.Parallel()
	first := lincheck.Limit{Permits: 2, Asked: 1, Done: 2}
	written := func(permits int64, version int32, asked, done int64) lincheck.Limit {
		return lincheck.Limit{Permits: permits, Version: version, Asked: asked, Done: done}
	}
	refused := written(9, 1, 50, 0)
	refused.Refused = true
	asked := func(at int64, h lincheck.Hold) lincheck.Hold {
		h.Asked = at
		return h
	}
	one := asked(90, hold(1, 10, 100, 180, 190))
	both := []lincheck.Hold{one, asked(95, hold(2, 11, 110, 180, 190))}
	third := slices.Concat(both, []lincheck.Hold{asked(120, hold(3, 12, 140, 150, 160))})
	for _, c := range []struct {
		what   string
		holds  []lincheck.Hold
		limits []lincheck.Limit
		ok     bool
	}{
		{"as many as there are", both, nil, true},
		{"one more", third, nil, false},
		{"one more after a raise", third, []lincheck.Limit{written(3, 1, 115, 118)}, true},
		{"one more while it is raised", third, []lincheck.Limit{written(3, 1, 130, 170)}, true},
		{"one more before a raise", third, []lincheck.Limit{written(3, 1, 141, 145)}, false},
		{"one more after a raise without a reply", third, []lincheck.Limit{written(3, 1, 50, 0)}, true},
		{"one more after a raise that was refused", third, []lincheck.Limit{refused}, false},
		{
			"one more after a raise without a reply, whose version is another's",
			third,
			[]lincheck.Limit{written(3, 1, 50, 0), written(2, 1, 60, 70)},
			false,
		},
		{
			"one more after a raise without a reply, followed by another",
			third,
			[]lincheck.Limit{written(3, 1, 50, 0), written(2, 2, 60, 70)},
			false,
		},

		{"a lowering leaves what is out", both, []lincheck.Limit{written(0, 1, 115, 118)}, true},
		{"no holder after a lowering", both, []lincheck.Limit{written(1, 1, 80, 85)}, false},
		{"a request before a lowering, acquired before it", both, []lincheck.Limit{written(1, 1, 96, 98)}, true},
		{
			"a larger token than that of a request after the lowering",
			[]lincheck.Hold{
				asked(99, hold(1, 10, 100, 180, 190)),
				both[1],
			},
			[]lincheck.Limit{written(1, 1, 96, 98)},
			false,
		},
		{"a lowering without a reply", both, []lincheck.Limit{written(0, 1, 50, 0)}, true},
		{
			"a lowering after a raise of the same time",
			third,
			[]lincheck.Limit{written(3, 1, 100, 119), written(2, 2, 100, 119)},
			false,
		},
		{"a lowering that overlaps", third, []lincheck.Limit{written(3, 1, 100, 119), written(2, 2, 118, 125)}, true},
		{"a place that is free again", []lincheck.Hold{hold(1, 10, 100, 105, 109), both[1], third[2]}, nil, true},
	} {
		if err := lincheck.CheckLimits(c.holds, append(c.limits, first)); (err == nil) != c.ok {
			t.Errorf("%s: got %v, want accepted: %t", c.what, err, c.ok)
		}
	}
	if err := lincheck.CheckLimits(third, nil); err != nil {
		t.Errorf("no limits: got %v, want nil", err)
	}
}
