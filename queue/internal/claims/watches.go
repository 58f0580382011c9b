package claims

// What a consumer watches.

import (
	"slices"

	"github.com/seed-a3166700/turnstile/zk"
)

// Watch is a one-shot watch of a Set. It stands for items that are known to be there if the *zk.Watch is nil.
type Watch struct {
	*zk.Watch
	fired bool // the Set's mutex guards it
}

// hasFired reports whether the watch has fired, or was never set.
func (w *Watch) hasFired() bool {
	if w == nil || w.fired {
		return true
	}
	_, w.fired = w.Poll()
	return w.fired
}

// Subject is what a consumer watches besides the change nodes of ready lists.
type Subject int

// The subjects.
const (
	Priorities Subject = iota // the list of priorities
	Delayed                   // the change node of delayed items; set while first among the waiting consumers
	Consumers                 // the list of consumers; set before listing what those that are gone have left behind
	Gate                      // the gate node
	subjects
)

// watches are those that a consumer has set: as long as none has fired, what it has seen is still true. Those that a
// method returns as *zk.Watch are forgotten, and the caller closes them.
type watches struct {
	on     [subjects]*Watch
	lists  map[int]*Watch // on the change nodes of the ready lists, by priority, set when they were empty
	paused bool           // as the gate node says
}

// Knows reports whether what the consumer has seen of a subject is still true.
func (s *Set) Knows(on Subject) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.on[on].hasFired()
}

// Watch records a watch on a subject that the consumer has seen.
func (s *Set) Watch(on Subject, w *zk.Watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on[on] = &Watch{Watch: w}
}

// WatchGate records a watch on the gate node, and whether that says that the queue is paused.
func (s *Set) WatchGate(w *zk.Watch, paused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on[Gate], s.paused = &Watch{Watch: w}, paused
}

// GateWatch returns the watch on the gate node, nil if there is none.
func (s *Set) GateWatch() *Watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.on[Gate]
}

// WatchPriorities records a watch on the list of priorities, which was as given. It forgets the watches of all other
// ready lists, which another client has removed: one that has fired would wake a waiting consumer again and again.
func (s *Set) WatchPriorities(w *zk.Watch, priorities []int) []*zk.Watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on[Priorities] = &Watch{Watch: w}
	var forgotten []*zk.Watch
	for p, list := range s.lists {
		if slices.Contains(priorities, p) {
			continue
		}
		if delete(s.lists, p); list.Watch != nil {
			forgotten = append(forgotten, list.Watch)
		}
	}
	return forgotten
}

// KnowsEmpty reports whether the ready list of a priority is still empty.
func (s *Set) KnowsEmpty(priority int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.lists[priority].hasFired()
}

// WatchList records a watch on the change node of a priority's ready list, which was empty.
func (s *Set) WatchList(priority int, w *zk.Watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists[priority] = &Watch{Watch: w}
}

// NoteMore records that a ready list has had items, and may have more: nothing less urgent is delivered before the
// consumer has looked again.
func (s *Set) NoteMore(priority int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lists[priority] == nil {
		s.lists[priority] = &Watch{fired: true}
	}
}

// urgent reports whether something more urgent than priority may have arrived.
func (a *watches) urgent(priority int) bool {
	if a.on[Priorities].hasFired() {
		return true
	}
	for p, list := range a.lists {
		if p < priority && list.hasFired() {
			return true
		}
	}
	return false
}

// Quiet returns all watches, if every one is set that a consumer needs that waits for items of these priorities, and
// none has fired; otherwise none. It also returns the priorities without such a watch.
func (s *Set) Quiet(priorities []int) (all []*Watch, deaf []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range priorities {
		if s.lists[p].hasFired() {
			deaf = append(deaf, p)
		}
	}
	if len(deaf) > 0 || slices.ContainsFunc(s.on[:], (*Watch).hasFired) {
		return nil, deaf
	}
	return s.all(), nil
}

// Fired records that a watch has fired: the caller has taken its event.
func (s *Set) Fired(w *Watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.fired = true
}

// Forget forgets all watches.
func (s *Set) Forget() []*zk.Watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.forget()
}

func (a *watches) forget() []*zk.Watch {
	var forgotten []*zk.Watch
	for _, w := range a.all() {
		if w.Watch != nil {
			forgotten = append(forgotten, w.Watch)
		}
	}
	clear(a.lists)
	a.on = [subjects]*Watch{}
	return forgotten
}

func (a *watches) all() []*Watch {
	list := make([]*Watch, 0, len(a.lists)+len(a.on))
	for _, w := range a.lists {
		list = append(list, w)
	}
	for _, w := range a.on {
		if w != nil {
			list = append(list, w)
		}
	}
	return list
}
