package queue

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seed-a3166700/turnstile/queue/internal/segment"
)

// A list is filled and emptied at random. However rarely it is looked at, no item that comes or goes is missed.
func TestFlowCountsEachItemOnce(t *testing.T) {
	const full = 10
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test that can be repeated
		list := segment.Fills{{Segment: 1}}
		var before segment.Fills
		var want, got Flow
		for range 300 {
			switch at := r.IntN(len(list)); {
			case r.IntN(2) == 0:
				if list[len(list)-1].Created == full {
					list = append(list, segment.Fill{Segment: list[len(list)-1].Segment + 1})
				}
				list[len(list)-1].Created++
				list[len(list)-1].Left++
				want.In++
			case list[at].Left > 0:
				list[at].Left--
				want.Out++
			case at < len(list)-1: // sealed and empty
				list = slices.Delete(list, at, at+1)
			}
			if r.IntN(1+int(seed)) == 0 {
				f := flow(before, list, full)
				got, before = Flow{got.In + f.In, got.Out + f.Out}, slices.Clone(list)
			}
		}
		f := flow(before, list, full)
		if got = (Flow{got.In + f.In, got.Out + f.Out}); got != want {
			t.Errorf("seed %d: got %+v, want %+v", seed, got, want)
		}
	}
}

// Lists that other programs have changed give no absurd numbers.
func TestFlowOfListsThatOthersHaveChanged(t *testing.T) {
	const full = 10
	fill := func(n, created, left int) segment.Fill {
		return segment.Fill{Segment: n, Created: created, Left: left}
	}
	for name, c := range map[string]struct {
		before, now segment.Fills
		want        Flow
	}{
		"removed": {before: segment.Fills{fill(1, 5, 3)}, want: Flow{Out: 3}},
		"made again": {
			before: segment.Fills{fill(7, 5, 3)}, now: segment.Fills{fill(1, 2, 1)}, want: Flow{In: 2, Out: 4},
		},
		"made again with the same name": {
			before: segment.Fills{fill(1, 5, 3)}, now: segment.Fills{fill(1, 2, 1)}, want: Flow{},
		},
		"a segment far away": {
			before: segment.Fills{fill(1, 5, 3)}, now: segment.Fills{fill(1, 5, 3), fill(1<<60, 1, 1)},
			want: Flow{In: 1},
		},
	} {
		if got := flow(c.before, c.now, full); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

// A look at a moment at which all segments of a list went does not tell where it ended: the next one counts nothing.
func TestFlowIsNoneBehindALookThatSawNothing(t *testing.T) {
	seen := func(list segment.Fills) Summary { return Summary{ready: fills{"p1000": list}} }
	later := seen(segment.Fills{{Segment: 700, Created: 5, Left: 5}})
	if got := later.Since(seen(nil)); got != (Flow{}) {
		t.Errorf("got %+v, want none", got)
	}
	if got := later.Since(Summary{}); got.In < 600_000 {
		t.Errorf("got %+v of a list that was not there before", got)
	}
}
