package lincheck_test

import (
	"testing"

	"github.com/seed-a3166700/turnstile/internal/lincheck"
)

// of returns h with a node of its own.
func of(node string, h lincheck.Hold) lincheck.Hold {
	h.Node = node
	return h
}

// Promise: 1
func TestHoldIsUndisputedUntilItsNodeIsDeletedByForce(t *testing.T) {
	t.Parallel()
	for _, force := range []bool{false, true} {
		revocations := []lincheck.Revocation{{Node: "a", Asked: 105, Grace: 15, Force: force}}
		mutex := func(holds []lincheck.Hold, dir string) error {
			return lincheck.CheckMutex(lincheck.Undisputed(holds, revocations), dir)
		}
		expect(t, mutex, []verdict{
			{
				"the revoked holder has released",
				after(3, of("a", hold(1, 10, 100, 110, 112)), of("b", hold(2, 20, 115, 140, 150))), true,
			},
			{
				"the revoked holder still holds within the grace",
				after(3, of("a", hold(1, 10, 100, 125, 130)), of("b", hold(2, 20, 115, 140, 150))), false,
			},
			{
				"the revoked holder still holds after the grace",
				after(3, of("a", hold(1, 10, 100, 160, 170)), of("b", hold(2, 20, 130, 140, 150))), force,
			},
			{
				"a hold that is nested in one that was revoked",
				after(3, inside(of("a", hold(1, 10, 100, 110, 170)), 10, 160),
					of("b", hold(2, 20, 130, 140, 150))), force,
			},
			{
				"the next in the process, after the grace",
				after(3, of("a", hold(1, 10, 100, 110, 112)), of("b", hold(2, 20, 130, 160, 170)),
					of("a", hold(1, 11, 140, 150, 151))), force,
			},
			{
				"another is in still",
				after(3, of("c", hold(1, 10, 100, 160, 170)), of("b", hold(2, 20, 130, 140, 150))), false,
			},
			{
				"a smaller token after force",
				after(3, of("a", hold(1, 20, 100, 160, 170)), of("b", hold(2, 10, 130, 140, 150))), false,
			},
		})
	}
}

// Promise: 1
func TestHoldThatEndsAndNobodyHasAskedForThatIsRefused(t *testing.T) {
	t.Parallel()
	lost := func(why string) lincheck.Hold {
		h := of("a", hold(1, 10, 100, 120, 130))
		h.Lost = why
		return h
	}
	asked := func(at int64) lincheck.Revocation { return lincheck.Revocation{Node: "a", Asked: at} }
	force := lincheck.Revocation{Node: "a", Asked: 105, Grace: 10, Force: true}
	for _, c := range []struct {
		what string
		hold lincheck.Hold
		revs []lincheck.Revocation
		ok   bool
	}{
		{"it was unlocked", lost(""), nil, true},
		{"it was asked for", lost(lincheck.LostRevoked), []lincheck.Revocation{asked(110)}, true},
		{"it was asked for later", lost(lincheck.LostRevoked), []lincheck.Revocation{asked(140)}, false},
		{"another was asked for", lost(lincheck.LostRevoked), []lincheck.Revocation{{Node: "b", Asked: 110}}, false},
		{"its node was deleted", lost(lincheck.LostDeleted), []lincheck.Revocation{force}, true},
		{
			"its node was deleted within the grace",
			lost(lincheck.LostDeleted),
			[]lincheck.Revocation{{Node: "a", Asked: 105, Grace: 30, Force: true}},
			false,
		},
		{
			"its node was deleted without force",
			lost(lincheck.LostDeleted),
			[]lincheck.Revocation{asked(105)},
			false,
		},
		{"of something else", lost("the limit was lowered"), []lincheck.Revocation{force}, false},

		{"it is said to have gone", lost(""), []lincheck.Revocation{{Node: "a", Asked: 105, Released: 125}}, true},
		{
			"it is said to have gone and is there",
			lost(""),
			[]lincheck.Revocation{{Node: "a", Asked: 105, Released: 115}},
			false,
		},
		{
			"it is said to have gone, and was forced to by another",
			lost(""),
			[]lincheck.Revocation{{Node: "a", Asked: 105, Released: 118}, force},
			true,
		},
	} {
		if err := lincheck.CheckRevocations([]lincheck.Hold{c.hold}, c.revs); (err == nil) != c.ok {
			t.Errorf("%s: got %v, want accepted: %t", c.what, err, c.ok)
		}
	}
}
