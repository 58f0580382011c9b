//go:build unix

package lin_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/internal/lincheck"
)

// keys is how many keys there are for items that are put once. All producers use them, and those that come after them.
const keys = 400

// shipment is what a producer does next: items for one queue, at once.
type shipment struct {
	place    string
	waits    bool   // for room, if it has a bound
	key      string // if it is to be put once
	items    []goods
	patience time.Duration // 0: as long as it takes
	pause    time.Duration
}

// goods is an item to put.
type goods struct {
	priority int
	delay    time.Duration
	size     int
}

// A client has two producers, each of which chooses among some queues, some of these more often than others.
var (
	firstQueues = slices.Concat(slices.Repeat([]string{loneQueue}, 7), slices.Repeat([]string{manyQueue}, 11), []string{slowQueue, slowQueue})
	otherQueues = []string{boundQueue, boundQueue, deadQueue, purgedQueue, purgedQueue, sweptQueue}
)

func newShipment(rnd *rand.Rand, places []string) shipment {
	s := shipment{place: places[rnd.IntN(len(places))], pause: upTo(rnd, 200*time.Millisecond)}
	n := 1
	switch how := rnd.IntN(100); {
	case s.place == slowQueue:
	case how < 20:
		s.key = fmt.Sprintf("key %d", rnd.IntN(keys))
	case how < 40:
		n = 1 + rnd.IntN(10)
	case how == 40 && s.place != boundQueue:
		n = 1 + rnd.IntN(200) // more than there is in a window
	}
	for range n {
		g := goods{priority: rnd.IntN(3) - 1, size: rnd.IntN(100)}
		if n == 1 && rnd.IntN(8) == 0 {
			g.delay = time.Millisecond + upTo(rnd, 1500*time.Millisecond)
		}
		if rnd.IntN(40) == 0 {
			g.size = 4000 + rnd.IntN(4000) // too large to be read together with others
		}
		s.items = append(s.items, g)
	}
	if rnd.IntN(10) == 0 {
		s.patience = time.Millisecond + upTo(rnd, 100*time.Millisecond)
	}
	if s.place == boundQueue {
		s.aimAtBound(rnd)
	}
	return s
}

// aimAtBound makes a shipment one for a queue that is full most of the time. What moves may be missed by those who count, or seen twice, and so there is
// little of it.
func (s *shipment) aimAtBound(rnd *rand.Rand) {
	if s.key != "" {
		s.key = fmt.Sprintf("key %d", rnd.IntN(keys/10))
	}
	for i := range s.items {
		if rnd.IntN(4) > 0 {
			s.items[i].delay = 0
		}
	}
	if s.waits = rnd.IntN(2) == 0; s.waits && s.patience == 0 {
		s.patience = upTo(rnd, 500*time.Millisecond) // who waits for room in the end, when nobody takes any more, waits in vain
	}
}

// taking is what a consumer does next.
type taking struct {
	manner   taker
	n        int // items at once
	patience time.Duration
	fates    []fate // one for each item
	together bool   // those that are acknowledged are gathered in a basket, until that is full
	pause    time.Duration
	errand   errand // unless none, it is done instead
	all      bool   // of an errand: it is about all items
}

// errand is what a consumer does beside taking.
type errand int

const (
	none    errand = iota
	purges         // whatever is not claimed
	requeue        // dead letters
)

// taker is how items are asked for.
type taker int

const (
	takes taker = iota
	triesToTake
	takesMany
	consumes // by a function that is called
)

// fate is what becomes of an item.
type fate struct {
	lincheck.Finish

	hold  time.Duration
	delay time.Duration // of one that is put off; 0: what the queue says after a failure
}

func newTaking(rnd *rand.Rand, place string) taking {
	t := taking{manner: taker(rnd.IntN(4)), n: 1 + rnd.IntN(batchSize), patience: upTo(rnd, 2*timeout), pause: upTo(rnd, 4*time.Millisecond)}
	kind := queueKinds[place]
	if place == slowQueue || kind.lone && t.manner == consumes {
		t.manner, t.n = takes, 1
	}
	switch place { // what is put is to stay a while
	case boundQueue, purgedQueue:
		t.pause, t.patience = upTo(rnd, 3*timeout/2), upTo(rnd, 50*time.Millisecond)
	case sweptQueue:
		t.pause, t.patience = upTo(rnd, 500*time.Millisecond), upTo(rnd, 50*time.Millisecond)
	}
	t.together, t.all = place != slowQueue && rnd.IntN(3) == 0, rnd.IntN(2) == 0
	switch {
	case kind.purges && rnd.IntN(6) == 0:
		t.errand = purges
	case kind.requeues && rnd.IntN(20) == 0:
		t.errand = requeue
	}
	if rnd.IntN(50) == 0 {
		t.pause = upTo(rnd, 400*time.Millisecond) // what was claimed ahead is given back
	}
	if rnd.IntN(10) == 0 {
		t.patience = upTo(rnd, 50*time.Millisecond)
	}
	for range t.n {
		t.fates = append(t.fates, newFate(rnd, place))
	}
	return t
}

func newFate(rnd *rand.Rand, place string) fate {
	f := fate{hold: upTo(rnd, 2*time.Millisecond)}
	switch how := rnd.IntN(100); {
	case place == slowQueue:
		f.hold = upTo(rnd, 3*timeout)
	case how == 0 && rnd.IntN(4) == 0:
		f.hold = upTo(rnd, timeout)
	case how < 10:
		f.hold = upTo(rnd, 20*time.Millisecond)
	}
	switch how := rnd.IntN(100); {
	case how < 60:
		f.Fate = lincheck.Acknowledged
	case how < 70:
		f.Fate, f.Marked = lincheck.Acknowledged, true
	case how < 82:
		f.Fate = lincheck.GivenBack
	case how < 88:
		f.Fate, f.delay = lincheck.PutOff, time.Millisecond+upTo(rnd, 300*time.Millisecond)
	case how < 96:
		f.Fate = lincheck.PutOff
	default:
		f.Fate = lincheck.Rejected
	}
	switch {
	case place == deadQueue && rnd.IntN(4) == 0:
		f.Finish, f.delay = lincheck.Finish{Fate: lincheck.Rejected}, 0
	case place == boundQueue && f.Fate == lincheck.PutOff && rnd.IntN(4) > 0:
		f.Fate, f.delay = lincheck.GivenBack, 0
	}
	if f.Fate == lincheck.Rejected {
		f.Reason = fmt.Sprintf("mood %d", rnd.IntN(1000))
	}
	return f
}
