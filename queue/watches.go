package queue

// The watches of a waiting consumer.

import (
	"context"
	"slices"

	"github.com/seed-a3166700/turnstile/zk"
)

// watch is a one-shot watch, and whether it has fired. The dispatcher's mutex guards it.
type watch struct {
	w     *zk.Watch // nil: it stands for items that are known to be there
	fired bool
}

// hasFired reports whether the watch has fired, or was never set.
func (a *watch) hasFired() bool {
	if a == nil || a.fired {
		return true
	}
	if _, ok := a.w.Poll(); ok {
		a.fired = true
	}
	return a.fired
}

// watches are those that a consumer has set: as long as none has fired, what it has seen is still true.
// They are part of the buffer. Those that a method returns are closed without the mutex.
type watches struct {
	changes     map[int]*watch // on the change nodes of ready lists, set when they were empty
	newPriority *watch         // on the list of priorities
	delayed     *watch         // on the change node of delayed items; set while first among the waiting consumers
	left        *watch         // on the list of consumers; set before listing what those that are gone have left behind
	gateState
}

// keepOnly forgets the watches of all other ready lists, which another client has removed, and returns them: one that
// has fired would wake a waiting consumer again and again.
func (a *watches) keepOnly(priorities []int) []*zk.Watch {
	var watches []*zk.Watch
	for p, change := range a.changes {
		if slices.Contains(priorities, p) {
			continue
		}
		if delete(a.changes, p); change.w != nil {
			watches = append(watches, change.w)
		}
	}
	return watches
}

// forgetAll forgets all watches and returns them.
func (a *watches) forgetAll() []*zk.Watch {
	var watches []*zk.Watch
	for _, x := range a.all() {
		if x.w != nil {
			watches = append(watches, x.w)
		}
	}
	clear(a.changes)
	a.newPriority, a.delayed, a.left, a.gate = nil, nil, nil, nil
	return watches
}

func closeAll(watches []*zk.Watch) {
	for _, w := range watches {
		w.Close()
	}
}

func (a *watches) all() []*watch {
	list := make([]*watch, 0, len(a.changes)+4)
	for _, x := range a.changes {
		list = append(list, x)
	}
	for _, x := range []*watch{a.newPriority, a.delayed, a.left, a.gate} {
		if x != nil {
			list = append(list, x)
		}
	}
	return list
}

// urgent reports whether something more urgent than priority may have arrived.
func (a *watches) urgent(priority int) bool {
	if a.newPriority.hasFired() {
		return true
	}
	for p, change := range a.changes {
		if p < priority && change.hasFired() {
			return true
		}
	}
	return false
}

// noteMore records that a ready list has had items, and may have more: nothing less urgent is delivered before the
// consumer has looked again.
func (a *watches) noteMore(priority int) {
	if a.changes[priority] == nil {
		a.changes[priority] = &watch{fired: true}
	}
}

// allQuiet reports whether every watch is set that a waiting consumer needs, and none has fired.
func (a *watches) allQuiet(priorities []int) bool {
	if a.newPriority.hasFired() || a.delayed.hasFired() || a.left.hasFired() || a.gate.hasFired() {
		return false
	}
	for _, p := range priorities {
		if a.changes[p].hasFired() {
			return false
		}
	}
	return true
}

// awaitChange waits for the watch and then calls wake, unless ctx ends first.
func (co *consumer) awaitChange(ctx context.Context, a *watch, wake func()) {
	if _, err := a.w.Next(ctx); err != nil && ctx.Err() != nil {
		return
	}
	co.d.mu.Lock()
	a.fired = true // Next has taken the event
	co.d.mu.Unlock()
	wake()
}
