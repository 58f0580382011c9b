//go:build unix

package lin_test

import (
	"math/rand/v2"
	"strings"
	"time"
)

// slowly ends the names of places that are held for long.
const slowly = "-slow"

func isSlow(place string) bool { return strings.HasSuffix(place, slowly) }

// manner is how a lock is asked for.
type manner int

const (
	waiting   manner = iota // as long as it takes
	impatient               // for a while
	trying                  // not at all
)

// plan is what a client does next. All of it is drawn before anything is done, so that a seed leads to the same plans whatever comes of them.
type plan struct {
	place    string
	manner   manner
	patience time.Duration // of one who is impatient
	hold     time.Duration
	shared   bool  // to read, where that is possible
	permits  int64 // of a semaphore
	change   bool  // from a writer to a reader or back while it holds, where that is possible
	write    bool  // a guarded write while it holds
	waits    bool  // for the removal
	pause    time.Duration

	nested int   // how many holds are nested in it, where that is possible
	order  []int // in which they and the outer one are given up

	meddle int // if it can be divided by the kind's often, something else is done with the lock instead
	limit  int64
	lowers time.Duration // for how long
	force  bool
	grace  time.Duration
	reason string
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
	p.meddle = rnd.IntN(24)
	p.limit, p.lowers = rnd.Int64N(permits), upTo(rnd, time.Second)
	p.force, p.grace = rnd.IntN(2) == 0, 1+upTo(rnd, 200*time.Millisecond)
	if rnd.IntN(2) == 0 {
		p.reason = "somebody wants it"
	}
	// Most holds are short, so that there are many. In slow places they are long, so that faults hit them. Where locks are revoked there must be
	// somebody to ask, who has held for so long that he hears of it; where the limit changes there must be permits that are out.
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
