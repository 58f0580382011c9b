package zk

// A watch as the caller sees it.

import (
	"context"
	"slices"
	"sync"
)

// maxEvents is how many events a watch keeps for a caller that does not take them; then one EventResynced stands for all.
const maxEvents = 1 << 16

// A Watch yields what happens to a node. There is one way to read it, Next, and it must be closed unless it is done.
//
// One-shot watches (GetW, ExistsW, ChildrenW) yield one event. Persistent ones (Session.Watch) yield all events until they are
// closed. Watches survive reconnects: what changed meanwhile comes as an event, except for persistent watches, which get an
// EventResynced. All methods may be called from any goroutine.
//
// Servers before 3.9 drop a persistent watch when a one-shot watch of the same session on the same path fires.
type Watch struct {
	sess *Session
	path string // as the caller gave it
	key  string // on the server

	// Guarded by sess.mu.
	kind watchKind
	set  bool   // in the session's watchSet
	then *Batch // to be sent at the next event; nil if nothing is, and if the watch is not set

	mu      sync.Mutex // guards what follows
	events  []Event
	over    error         // what comes after the events
	changed chan struct{} // closed at the next change; nil if nobody waits
	after   func()        // to be called at the next change; nil if nothing is
}

// Path returns the path that is watched, as it was given.
func (w *Watch) Path() string { return w.path }

// Next returns the next event, in the order in which the server sent them. It waits until there is one, ctx ends (then it returns
// ctx's cause), the watch is done (ErrWatchDone) or the session has ended (then it returns the session's cause).
// An event that the server sent before an answer is there before the answered call returns.
func (w *Watch) Next(ctx context.Context) (Event, error) {
	for {
		w.mu.Lock()
		if len(w.events) > 0 {
			e := w.events[0]
			w.events = w.events[1:]
			w.mu.Unlock()
			return e, nil
		}
		if w.over != nil {
			w.mu.Unlock()
			return Event{}, w.over
		}
		if w.changed == nil {
			w.changed = make(chan struct{})
		}
		changed := w.changed
		w.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return Event{}, contextError(ctx)
		}
	}
}

// Poll returns the next event if one has come that Next has not returned yet, and false at once if there is none.
func (w *Watch) Poll() (Event, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.events) == 0 {
		return Event{}, false
	}
	e := w.events[0]
	w.events = w.events[1:]
	return e, true
}

// AfterFunc calls f once, on a goroutine of its own, as soon as Next does not have to wait: when there is an event, or none to come any more.
// Until then it costs no goroutine. A later AfterFunc takes the place of one whose f was not called yet. After Close no f is called.
func (w *Watch) AfterFunc(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.after = f
	if len(w.events) > 0 || w.over != nil {
		w.wake()
	}
}

// Close forgets the watch: Next returns ErrWatchDone from now on. If nobody else in this session watches the same, it is removed
// from the server, without waiting for that. Closing a watch again does nothing.
func (w *Watch) Close() {
	w.forget()
	w.sess.mu.Lock()
	w.unset()
	w.sess.flush(true)
}

// forget drops what has come, and lets nothing follow.
func (w *Watch) forget() {
	w.mu.Lock()
	w.events, w.after = nil, nil
	w.mu.Unlock()
	w.end(ErrWatchDone)
}

// unset takes the watch out of the session's, if it stands there. The caller holds the session's mu, and flushes.
func (w *Watch) unset() {
	if !w.set {
		return
	}
	w.sess.watches.remove(w)
	w.sess.tidy(w.key)
	w.then.drop(ErrWatchDone)
	w.then = nil
}

// fire gives the watch an event, and queues what is to be sent then. The caller holds the session's mu, and flushes.
func (w *Watch) fire(e Event) {
	w.push(e)
	if w.then != nil {
		w.then.queue()
		w.then = nil
	}
}

// push gives the watch an event. It never blocks.
func (w *Watch) push(e Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over != nil {
		return
	}
	resynced := e.Type == EventResynced
	switch n := len(w.events); {
	case resynced && n > 0 && w.events[n-1].Type == EventResynced:
		return
	case n >= maxEvents:
		w.events = append(w.events[:0:0], Event{Type: EventResynced, Path: w.path, Zxid: -1})
	default:
		w.events = append(w.events, e)
	}
	w.wake()
}

// end says that nothing follows the events that are there.
func (w *Watch) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over == nil {
		w.over = err
		w.wake()
	}
}

func (w *Watch) wake() {
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
	if w.after != nil {
		go w.after()
		w.after = nil
	}
}

// watchKind is what a watch watches, and how the server keeps it.
type watchKind uint8

const (
	watchData       watchKind = iota // getData, or exists of a node that is there
	watchExist                       // exists of a node that is not
	watchChild                       // getChildren
	watchPersistent                  // addWatch
	watchRecursive                   // addWatch, recursive
	watchKinds
)

// watched is what this session knows about one path's watches.
type watched struct {
	sets    [watchKinds][]*Watch // those set here and on the server
	flights [watchKinds]int      // those being set; exists counts as data
	// stale marks what the server has and nobody here wants any more; exists counts as data.
	stale [watchKinds]bool
	// coarse says that the server cannot remove one kind of watch alone: it is older than 3.9.
	coarse bool
}

// slot returns the kind under which the server keeps watches of kind k: it does not tell exists from getData.
func (k watchKind) slot() watchKind {
	if k == watchExist {
		return watchData
	}
	return k
}

// wanted reports whether anything of the slot is set or being set.
func (p *watched) wanted(slot watchKind) bool {
	return len(p.sets[slot]) > 0 || p.flights[slot] > 0 || slot == watchData && len(p.sets[watchExist]) > 0
}

func (p *watched) wantedAny() bool {
	for k := range watchKinds {
		if p.wanted(k) {
			return true
		}
	}
	return false
}

func (p *watched) idle() bool { return !p.wantedAny() && !slices.Contains(p.stale[:], true) }
