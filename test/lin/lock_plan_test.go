//go:build unix

package lin_test

import (
	"math/rand/v2"
	"strings"
	"time"
)

// slowly is the suffix of places with long holds.
const slowly = "-slow"

func isSlow(place string) bool { return strings.HasSuffix(place, slowly) }

// manner is how a lock is acquired.
type manner int

const (
	waiting   manner = iota // without a limit
	impatient               // for a while
	trying                  // without waiting
)

// plan is what a client does next. All of it is drawn in advance, so that a seed gives the same plans whatever
// happens.
type plan struct {
	place    string
	manner   manner
	patience time.Duration // if impatient
	hold     time.Duration
	shared   bool  // as a reader, where possible
	permits  int64 // of a semaphore
	change   bool  // upgrade or downgrade while it holds, where possible
	write    bool  // make a guarded write while it holds
	waits    bool  // wait until the server has removed the node
	pause    time.Duration

	nested int   // how many holds to nest in it, where possible
	order  []int // the order in which to release them and the outer one

	disturb int // if it is divisible by the kind's often, disturb the lock instead
	limit   int64
	lowers  time.Duration // for how long
	force   bool
	grace   time.Duration
	reason  string
}

func newPlan(rnd *rand.Rand, places []string) plan {
	p := plan{
		place: places[rnd.IntN(len(places))], manner: waiting, patience: upTo(rnd, 50*time.Millisecond),
		shared: rnd.IntN(3) > 0, permits: 1 + rnd.Int64N(permits), change: rnd.IntN(4) == 0,
		write: rnd.IntN(3) == 0, waits: rnd.IntN(4) == 0, pause: upTo(rnd, 4*time.Millisecond),
	}
	switch rnd.IntN(10) {
	case 0, 1, 2, 3:
		p.manner = impatient
	case 4, 5:
		p.manner = trying
	}
	p.nested = max(0, rnd.IntN(6)-3)
	p.order = rnd.Perm(p.nested + 1)
	p.disturb = rnd.IntN(24)
	p.limit, p.lowers = rnd.Int64N(permits), upTo(rnd, time.Second)
	p.force, p.grace = rnd.IntN(2) == 0, 1+upTo(rnd, 200*time.Millisecond)
	if rnd.IntN(2) == 0 {
		p.reason = "wanted elsewhere"
	}
	// Most holds are short, so that there are many. In slow places they are long, so that faults hit them. Where
	// locks are revoked, a holder must hold for long enough to learn of it. Where the limit changes, permits must be
	// held.
	switch how := rnd.IntN(5); {
	case isSlow(p.place):
		p.hold = upTo(rnd, 3*timeout)
	case strings.HasPrefix(p.place, "revoked"):
		p.hold = upTo(rnd, 400*time.Millisecond)
	case strings.HasPrefix(p.place, "watched"):
		p.hold = upTo(rnd, 50*time.Millisecond)
	case how == 0:
		p.hold = upTo(rnd, 20*time.Millisecond)
	default:
		p.hold = upTo(rnd, 2*time.Millisecond)
	}
	return p
}

func upTo(rnd *rand.Rand, d time.Duration) time.Duration { return time.Duration(rnd.Int64N(int64(d))) }
