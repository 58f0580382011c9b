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
	// Most holds are short, so that there are many. In slow places they are long, so that faults hit them.
	switch how := rnd.IntN(5); {
	case isSlow(p.place):
		p.hold = upTo(rnd, 2*timeout)
	case how == 0:
		p.hold = upTo(rnd, 20*time.Millisecond)
	default:
		p.hold = upTo(rnd, 2*time.Millisecond)
	}
	return p
}

func upTo(rnd *rand.Rand, d time.Duration) time.Duration { return time.Duration(rnd.Int64N(int64(d))) }
