package queue

// The goroutines that want items.

import (
	"context"
	"slices"
	"sync"
)

// taker is a goroutine that wants items. It gets one answer, unless it leaves first.
type taker struct {
	want    int
	try     bool // does not want to wait for an item
	fetched bool // serve has looked since it came
	got     []*Item
	answer  chan error // one slot, so that answering never blocks
}

// dropLost drops the items whose claims were lost while the taker waited for more.
func (t *taker) dropLost() {
	t.got = slices.DeleteFunc(t.got, func(it *Item) bool { return it.co.err() != nil })
}

// takers are the goroutines that want items, first come first served, and what the goroutine that serves them is to do
// next. Its methods may be called from any goroutine; each is one step under its mutex, which is never held while
// waiting. Items are taken out of a consumer's claims under it alone: so while a method of it calls a function, none
// goes to another goroutine. The claims have a mutex of their own, which is taken after this one.
type takers struct {
	wakeup chan struct{} // one slot: there may be something to do

	mu      sync.Mutex // guards what follows
	waiting []*taker
	ahead   bool               // items are to be claimed ahead of them
	running bool               // the goroutine that serves them runs, or is about to: always while some wait
	giveUp  context.CancelFunc // ends the step under way; nil if there is none
	closed  error              // the answer to all that come; nil while they are served
}

// next returns the next item, nil if there is none that may be delivered. Few reports that the next items are to be
// claimed ahead.
type next func() (item *Item, few bool)

func newTakers() *takers { return &takers{wakeup: make(chan struct{}, 1)} }

// wake makes the goroutine that serves them look again.
func (ts *takers) wake() {
	select {
	case ts.wakeup <- struct{}{}:
	default:
	}
}

// take takes an item for a caller that wants one, unless others wait. It returns nil if there is none. If start, the
// caller starts the goroutine that serves.
func (ts *takers) take(next next) (item *Item, start bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if len(ts.waiting) > 0 || ts.closed != nil {
		return nil, false
	}
	item = ts.pop(next)
	return item, ts.ahead && ts.mustStart()
}

// pop takes an item. The caller holds the mutex.
func (ts *takers) pop(next next) *Item {
	item, few := next()
	ts.ahead = ts.ahead || few
	return item
}

// mustStart reports whether the caller, which holds the mutex, is to start the goroutine that serves.
func (ts *takers) mustStart() bool {
	start := !ts.running
	ts.running = true
	return start
}

// add adds a taker, unless they are not served any more. If start, the caller starts the goroutine that serves.
func (ts *takers) add(t *taker) (start bool, err error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.closed != nil {
		return false, ts.closed
	}
	ts.waiting = append(ts.waiting, t)
	ts.wake()
	return ts.mustStart(), nil
}

// leave removes a taker that waits no longer, and returns its items. It returns false if it has an answer. When the
// last one leaves, the step under way ends.
func (ts *takers) leave(t *taker) ([]*Item, bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	i := slices.Index(ts.waiting, t)
	if i < 0 {
		return nil, false
	}
	ts.waiting = slices.Delete(ts.waiting, i, i+1)
	if len(ts.waiting) == 0 && ts.giveUp != nil {
		ts.giveUp()
	}
	t.dropLost()
	return t.got, true
}

// begin begins a step for the takers, which giveUp ends early. It returns false if there is nothing to do: then no step
// is under way. The step sees all that wakeup has told of.
func (ts *takers) begin(giveUp context.CancelFunc) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	select {
	case <-ts.wakeup:
	default:
	}
	ts.giveUp = nil
	if ts.idle() {
		return false
	}
	ts.giveUp = giveUp
	return true
}

func (ts *takers) idle() bool { return len(ts.waiting) == 0 && !ts.ahead }

// rest reports whether there is nothing to do. Then the goroutine that serves ends.
func (ts *takers) rest() bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.running = !ts.idle()
	return !ts.running
}

// mustClaimAhead reports whether items are to be claimed ahead of the takers, once for each time.
func (ts *takers) mustClaimAhead() bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ahead := ts.ahead
	ts.ahead = false
	return ahead
}

// demand returns how many items they want.
func (ts *takers) demand() int {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	n := 0
	for _, t := range ts.waiting {
		n += t.want - len(t.got)
	}
	return n
}

// trying reports whether one of them does not want to wait.
func (ts *takers) trying() bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.anyTries()
}

func (ts *takers) anyTries() bool {
	return slices.ContainsFunc(ts.waiting, func(t *taker) bool { return t.try })
}

// noteFetch records that a server is asked for items, from now on.
func (ts *takers) noteFetch() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, t := range ts.waiting {
		t.fetched = true
	}
}

// between calls f while no taker comes or goes, and tells it whether some wait.
func (ts *takers) between(f func(waiting bool)) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	f(len(ts.waiting) > 0)
}

// serve gives them items as long as there are some, first come first served. Then it calls nothing, if there is one,
// with whether a taker does not want to wait: if that returns an error it goes on as refuse does. It returns how many
// go on waiting.
func (ts *takers) serve(next next, nothing func(trying bool) error) int {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for len(ts.waiting) > 0 {
		item := ts.pop(next)
		if item == nil {
			break
		}
		ts.give(item)
	}
	if nothing != nil {
		if err := nothing(ts.anyTries()); err != nil {
			ts.nothingThere(err)
		}
	}
	return len(ts.waiting)
}

// give gives an item to the first of them. The caller holds the mutex.
func (ts *takers) give(item *Item) {
	t := ts.waiting[0]
	t.dropLost()
	if t.got = append(t.got, item); len(t.got) == t.want {
		ts.waiting = ts.waiting[1:]
		t.answer <- nil
	}
}

// refuse answers those that have some of their items, and with err those that do not want to wait, once they have had a
// look. It returns how many go on waiting.
func (ts *takers) refuse(err error) int {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.nothingThere(err)
	return len(ts.waiting)
}

// nothingThere is refuse for a caller that holds the mutex.
func (ts *takers) nothingThere(err error) {
	ts.waiting = slices.DeleteFunc(ts.waiting, func(t *taker) bool {
		t.dropLost()
		switch {
		case len(t.got) > 0:
			t.answer <- nil
		case t.try && t.fetched:
			t.answer <- err
		default:
			return false
		}
		return true
	})
}

// fail answers all of them: those that have no items with err. Then there is nothing to do: to claim ahead would fail,
// too.
func (ts *takers) fail(err error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.failAll(err)
}

func (ts *takers) failAll(err error) {
	for _, t := range ts.waiting {
		if t.dropLost(); len(t.got) > 0 {
			t.answer <- nil
		} else {
			t.answer <- err
		}
	}
	ts.waiting, ts.ahead = nil, false
}

// close is fail, and all that come later get the same answer. Nothing is taken for them any more.
func (ts *takers) close(err error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.failAll(err)
	ts.closed = err
}
