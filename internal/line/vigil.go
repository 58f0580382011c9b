package line

import (
	"sync"
	"time"
)

// watchAfter is how long a tenure must last before it watches its own node for deletion by somebody else. It keeps the watch off the
// way of short ones.
const watchAfter = 100 * time.Millisecond

// A vigil has tenures watch their nodes once they have lasted for watchAfter. One timer serves all tenures of a line. It may run on after
// the last tenure, and finds nothing to do.
type vigil struct {
	own bool // of one tenure alone

	mu          sync.Mutex // guards the fields below and the young part of tenures; never held while anything is waited for
	clock       clock
	first, last *Tenure // those that do not watch yet, by age
}

// young is what a vigil knows about a tenure that does not watch yet.
type young struct {
	due         time.Time // when it is to watch; zero if it stands in no list
	older, next *Tenure
}

// vigilOf returns the vigil for tenures of the ground.
func vigilOf(ground Ground) *vigil {
	if p, ok := ground.(*Place); ok {
		return &p.line.vigil
	}
	return &vigil{own: true}
}

// keep has t watch in a while, unless it is dismissed before.
func (v *vigil) keep(t *Tenure) {
	v.mu.Lock()
	defer v.mu.Unlock()
	t.young = young{due: time.Now().Add(watchAfter), older: v.last}
	if v.last == nil {
		v.first = t
	} else {
		v.last.young.next = t
	}
	v.last = t
	if !v.clock.runs {
		v.clock.start(watchAfter, v.rouse)
	}
}

// dismiss forgets t, which may watch already.
func (v *vigil) dismiss(t *Tenure) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if t.young.due.IsZero() {
		return
	}
	v.remove(t)
	if v.own && v.first == nil {
		v.clock.stop()
	}
}

// remove takes t out of the list. The caller holds v.mu.
func (v *vigil) remove(t *Tenure) {
	if t.young.older == nil {
		v.first = t.young.next
	} else {
		t.young.older.young.next = t.young.next
	}
	if t.young.next == nil {
		v.last = t.young.older
	} else {
		t.young.next.young.older = t.young.older
	}
	t.young = young{}
}

// rouse is what the timer calls.
func (v *vigil) rouse() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clock.runs = false
	for now := time.Now(); v.first != nil; {
		t := v.first
		if left := t.young.due.Sub(now); left > 0 {
			v.clock.start(left, v.rouse)
			return
		}
		v.remove(t)
		go t.watch()
	}
}
