package lincheck_test

import (
	"testing"

	"github.com/seed-a3166700/turnstile/internal/lincheck"
)

func reader(client int, token, got, alive, ended int64) lincheck.Hold {
	h := hold(client, token, got, alive, ended)
	h.Shared = true
	return h
}

// with returns h after a change that lasted from asked to done.
func with(h lincheck.Hold, shared bool, token, asked, done int64) lincheck.Hold {
	h.Changes = append(h.Changes, lincheck.Change{Shared: shared, Token: base + token, Asked: asked, Done: done})
	return h
}

// Promise: 1
func TestHistoriesThatNoReadWriteLockHasAreRefused(t *testing.T) {
	t.Parallel()
	all := append([]verdict{}, exclusive...) // writers
	expect(t, lincheck.CheckRW, append(all, []verdict{
		{"readers together", after(0, reader(1, 10, 100, 180, 190), reader(2, 11, 110, 150, 160)), true},
		{
			"readers together, tokens in any order",
			after(0, reader(1, 11, 100, 180, 190), reader(2, 10, 110, 150, 160)), true,
		},
		{"a reader beside a writer", after(0, hold(1, 10, 100, 140, 150), reader(2, 11, 110, 120, 130)), false},
		{"a writer beside a reader", after(0, reader(1, 10, 100, 140, 150), hold(2, 11, 110, 120, 130)), false},
		{
			"a writer beside the last of many readers",
			after(0, reader(1, 10, 100, 110, 120), reader(2, 11, 100, 150, 160), hold(3, 12, 130, 140, 150)), false,
		},
		{
			"a writer after all readers",
			after(0, reader(1, 10, 100, 110, 120), reader(2, 11, 100, 150, 160), hold(3, 12, 170, 180, 190)), true,
		},
		{
			"a writer whose token is a reader's before it",
			after(0, reader(1, 12, 100, 110, 120), hold(2, 11, 130, 140, 150)), false,
		},
		{
			"a reader whose token is from before a writer",
			after(0, hold(1, 12, 100, 110, 120), reader(2, 11, 130, 140, 150)), false,
		},

		{
			"a downgrade lets readers in",
			after(0, with(hold(1, 10, 100, 180, 190), true, 10, 110, 120), reader(2, 11, 130, 140, 150)), true,
		},
		{
			"no reader before a downgrade",
			after(0, with(hold(1, 10, 100, 180, 190), true, 10, 140, 150), reader(2, 11, 120, 130, 160)), false,
		},
		{
			"a downgrade lets no writer in",
			after(0, with(hold(1, 10, 100, 180, 190), true, 10, 110, 120), hold(2, 11, 130, 140, 150)), false,
		},
		{"a downgrade keeps its token", after(0, with(hold(1, 10, 100, 180, 190), true, 12, 110, 120)), false},
		{
			"an upgrade of the only reader",
			after(0, with(reader(1, 10, 100, 180, 190), false, 20, 110, 120), hold(2, 30, 200, 210, 220)), true,
		},
		{
			"an upgrade beside a reader",
			after(0, with(reader(1, 10, 100, 180, 190), false, 20, 110, 120), reader(2, 11, 105, 130, 140)), false,
		},
		{
			"a reader after an upgrade",
			after(0, with(reader(1, 10, 100, 180, 190), false, 20, 110, 120), reader(2, 21, 130, 140, 150)), false,
		},
		{"an upgrade that keeps its token", after(0, with(reader(1, 10, 100, 180, 190), false, 10, 110, 120)), false},
		{
			"an upgrade after a later reader has left",
			after(0, with(reader(1, 10, 100, 180, 190), false, 11, 110, 140), reader(2, 20, 115, 120, 130),
				hold(3, 30, 200, 210, 220)), true,
		},
		{
			"a token that is less than an upgraded writer's",
			after(0, with(reader(1, 10, 100, 180, 190), false, 12, 110, 140), hold(3, 11, 200, 210, 220)), false,
		},
		{
			"a token between an upgraded writer's and a reader's before it",
			after(0, with(reader(1, 10, 100, 180, 190), false, 12, 110, 140), reader(2, 20, 115, 120, 130),
				hold(3, 15, 200, 210, 220)), false,
		},
		{
			"an upgrade, then a downgrade",
			after(0, with(with(reader(1, 10, 100, 180, 190), false, 20, 110, 120), true, 20, 130, 140),
				reader(2, 21, 150, 160, 170)), true,
		},
	}...))
}

// Promise: 1
func TestHistoriesThatNoSemaphoreHasAreRefused(t *testing.T) {
	t.Parallel()
	weighing := func(permits int64, h lincheck.Hold) lincheck.Hold {
		h.Permits = permits
		return h
	}
	three := func(holds []lincheck.Hold, dir string) error { return lincheck.CheckSemaphore(holds, 3, dir) }
	expect(t, three, []verdict{
		{
			"three of three",
			after(5, hold(1, 10, 100, 180, 190), hold(2, 11, 110, 180, 190), hold(3, 12, 120, 180, 190)), true,
		},
		{
			"four of three",
			after(5, hold(1, 10, 100, 180, 190), hold(2, 11, 110, 180, 190), hold(3, 12, 120, 180, 190),
				hold(4, 13, 130, 140, 150)), false,
		},
		{
			"the fourth after one has left",
			after(5, hold(1, 10, 100, 120, 140), hold(2, 11, 110, 180, 190), hold(3, 12, 115, 180, 190),
				hold(4, 13, 130, 140, 150)), true,
		},
		{"two and one", after(5, weighing(2, hold(1, 10, 100, 180, 190)), hold(2, 11, 110, 180, 190)), true},
		{
			"two and two",
			after(5, weighing(2, hold(1, 10, 100, 180, 190)), weighing(2, hold(2, 11, 110, 180, 190))), false,
		},
		{"more than there are", after(5, weighing(4, hold(1, 10, 100, 110, 120))), false},
	})
}

// Promise: 3
func TestTokensOfPermitsThatFallAreRefused(t *testing.T) {
	t.Parallel()
	hold := func(token, asked, got int64) lincheck.Hold {
		return lincheck.Hold{Token: token, Asked: asked, Got: got, Permits: 1}
	}
	for _, c := range []struct {
		what  string
		holds []lincheck.Hold
		ok    bool
	}{
		{"one after the other", []lincheck.Hold{hold(10, 1, 5), hold(11, 6, 9)}, true},
		{"the first was told later", []lincheck.Hold{hold(10, 1, 9), hold(11, 2, 5)}, true},
		{"a smaller token for a later request", []lincheck.Hold{hold(11, 1, 5), hold(10, 6, 9)}, false},
		{"a smaller one long after", []lincheck.Hold{hold(12, 1, 5), hold(13, 6, 9), hold(11, 20, 22)}, false},
		{"one twice", []lincheck.Hold{hold(10, 1, 5), hold(10, 2, 5)}, false},
	} {
		if err := lincheck.CheckTokens(c.holds); err == nil != c.ok {
			t.Errorf("%s: got %v, want accepted: %t", c.what, err, c.ok)
		}
	}
}
