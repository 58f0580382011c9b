//go:build unix

package lin_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/internal/lincheck"
)

// keys is the number of keys for items that are put once. All producers share them, and so do those that replace
// them.
const keys = 400

// putPlan is what a producer does next: items for one queue, in one call.
type putPlan struct {
	place    string
	waits    bool   // for room, in a bounded queue
	key      string // if the item is to be put once
	items    []putItem
	patience time.Duration // 0: without a limit
	pause    time.Duration
}

// putItem is an item to put.
type putItem struct {
	priority int
	delay    time.Duration
	group    string // if it has one, it has no delay
	size     int
	limit    time.Duration // of each attempt; 0: the queue's
}

// A client has three producers. Each of them draws from some of the queues, from some more often.
var (
	firstQueues = slices.Concat(slices.Repeat([]string{loneQueue}, 7), slices.Repeat([]string{manyQueue}, 11),
		[]string{slowQueue, slowQueue})
	otherQueues = []string{boundQueue, boundQueue, deadQueue, purgedQueue, purgedQueue, sweptQueue}
	lastQueues  = []string{groupQueue, groupQueue, rateQueue}
)

// groupsOfItems is how many groups the items of a queue are in.
const groupsOfItems = 6

func newPutPlan(rnd *rand.Rand, places []string) putPlan {
	s := putPlan{place: places[rnd.IntN(len(places))], pause: upTo(rnd, 200*time.Millisecond)}
	n := 1
	switch how := rnd.IntN(100); {
	case s.place == slowQueue:
	case how < 20:
		s.key = fmt.Sprintf("key %d", rnd.IntN(keys))
	case how < 40:
		n = 1 + rnd.IntN(10)
	case how == 40 && s.place != boundQueue && s.place != groupQueue:
		n = 1 + rnd.IntN(200) // more than fit in flight
	}
	for range n {
		g := putItem{priority: rnd.IntN(3) - 1, size: rnd.IntN(100)}
		if n == 1 && rnd.IntN(8) == 0 {
			g.delay = time.Millisecond + upTo(rnd, 1500*time.Millisecond)
		}
		if rnd.IntN(40) == 0 {
			g.size = 4000 + rnd.IntN(4000) // too large to be read together with others
		}
		if rnd.IntN(20) == 0 {
			g.limit = time.Millisecond + upTo(rnd, 30*time.Millisecond)
		}
		if s.place == groupQueue {
			g.delay, g.group = 0, fmt.Sprintf("group %d", rnd.IntN(groupsOfItems))
			g.size = min(g.size, 4000)
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

// aimAtBound changes a putPlan for a queue that is full most of the time. A count may miss items that move, or see
// them twice, so few of them move.
func (s *putPlan) aimAtBound(rnd *rand.Rand) {
	if s.key != "" {
		s.key = fmt.Sprintf("key %d", rnd.IntN(keys/10))
	}
	for i := range s.items {
		if rnd.IntN(4) > 0 {
			s.items[i].delay = 0
		}
	}
	if s.waits = rnd.IntN(2) == 0; s.waits && s.patience == 0 {
		// A producer that waits for room at the end, when no consumer takes any more, waits in vain.
		s.patience = upTo(rnd, 500*time.Millisecond)
	}
}

// takePlan is what a consumer does next.
type takePlan struct {
	manner   taker
	n        int // items at once
	patience time.Duration
	fates    []fate // one for each item
	together bool   // gather acknowledged items in a basket until it is full
	pause    time.Duration
	chore    chore // unless none, do this instead
	all      bool  // the chore is about all items
}

// chore is what a consumer does besides taking items.
type chore int

const (
	none    chore = iota
	purges        // unclaimed items
	requeue       // dead letters
	pauses        // the queue, for a while
)

// taker is how items are taken.
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
	delay time.Duration // of an item that is put off; 0: as the queue's retry policy says
	hangs bool          // a handler does not return when its time is over
}

func newTakePlan(rnd *rand.Rand, place string) takePlan {
	t := takePlan{
		manner: taker(rnd.IntN(4)), n: 1 + rnd.IntN(batchSize), patience: upTo(rnd, 2*timeout),
		pause: upTo(rnd, 4*time.Millisecond),
	}
	kind := queueKinds[place]
	if place == slowQueue || kind.lone && t.manner == consumes {
		t.manner, t.n = takes, 1
	}
	switch place { // items are to stay for a while
	case boundQueue, purgedQueue:
		t.pause, t.patience = upTo(rnd, 3*timeout/2), upTo(rnd, 50*time.Millisecond)
	case sweptQueue:
		t.pause, t.patience = upTo(rnd, 500*time.Millisecond), upTo(rnd, 50*time.Millisecond)
	}
	t.together, t.all = place != slowQueue && rnd.IntN(3) == 0, rnd.IntN(2) == 0
	switch {
	case kind.purges && rnd.IntN(6) == 0:
		t.chore = purges
	case kind.requeues && rnd.IntN(20) == 0:
		t.chore = requeue
	case kind.pauses && rnd.IntN(200) == 0:
		t.chore = pauses
	}
	if rnd.IntN(50) == 0 {
		t.pause = upTo(rnd, 400*time.Millisecond) // what was prefetched is given back
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
	case place == manyQueue && f.Fate == lincheck.PutOff && rnd.IntN(10) == 0:
		f.hangs = true
	case place == boundQueue && f.Fate == lincheck.PutOff && rnd.IntN(4) > 0:
		f.Fate, f.delay = lincheck.GivenBack, 0
	}
	if f.Fate == lincheck.Rejected {
		f.Reason = fmt.Sprintf("mood %d", rnd.IntN(1000))
	}
	return f
}
