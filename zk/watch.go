package zk

// A watch as the caller sees it.

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
)

// maxEvents bounds the unread events of a watch. One EventResynced replaces them when there are more.
const maxEvents = 1 << 16

// A Watch yields the changes of a node. It must be closed unless it is done.
//
// One-shot watches (GetW, ExistsW, ChildrenW) yield one event. Persistent ones (Session.Watch, Session.WatchRecursive)
// yield all events until they are closed. Watches survive reconnects: a change in between comes as an event, and
// persistent watches get an EventResynced instead. The methods of a Watch may be called from several goroutines at
// once.
//
// On servers before 3.9 a later watch of the same session and path takes the place of a persistent one. The session
// then sets that again, and it gets an EventResynced. On these servers a watch by Session.Watch yields no
// EventChildrenChanged while there is one by Session.WatchRecursive of the same path.
type Watch struct {
	sess *Session
	path string // as given by the caller
	key  string // the path at the server

	// Guarded by sess.mu.
	kind watchKind
	set  bool   // in the session's watchSet
	then *Batch // to send at the next event, or nil; nil if the watch is not set

	mu      sync.Mutex // guards what follows
	events  []Event
	over    error         // what Next returns after the events
	changed chan struct{} // closed at the next change; nil unless Next waits
	after   func()        // called at the next change, or nil
	closed  bool          // by the caller
}

// Path returns the path as given by the caller.
func (w *Watch) Path() string { return w.path }

// Next waits for the next event and returns it, in the order in which the server sent them. It returns ctx's cause if
// ctx ends first, ErrWatchDone after the last event and after Close, and the cause of the session's end. If the server
// sent an event before the reply to a call, the event is available before that call returns.
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

// All yields the events as Next returns them, until the watch is done or closed. If ctx or the session ends first it
// yields that error last. It does not close the watch: a loop that was left may be followed by another, which goes on
// with the next event.
func (w *Watch) All(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			e, err := w.Next(ctx)
			if errors.Is(err, ErrWatchDone) || !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Poll returns the next event, or false if none is available.
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

// AfterFunc calls f once, on a new goroutine, as soon as Next would not wait: when an event is available or the watch
// has ended. A later AfterFunc replaces an earlier one whose f was not called yet. After Close no f is called.
func (w *Watch) AfterFunc(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	w.after = f
	if len(w.events) > 0 || w.over != nil {
		w.wake()
	}
}

// Close ends the watch: Next returns ErrWatchDone from now on. Close removes the watch from the server unless the
// session has another one of its kind and path, and does not wait for that. A second Close does nothing.
func (w *Watch) Close() {
	w.discard()
	w.sess.mu.Lock()
	w.unset()
	w.sess.flush(true)
}

// discard drops unread events, and ends the watch.
func (w *Watch) discard() {
	w.mu.Lock()
	w.events, w.after, w.closed = nil, nil, true
	w.mu.Unlock()
	w.end(ErrWatchDone)
}

// unset removes the watch from the session's watchSet. The caller holds the session's mu, and flushes.
func (w *Watch) unset() {
	if !w.set {
		return
	}
	w.sess.watches.remove(w)
	w.sess.tidy(w.key)
	w.then.drop(ErrWatchDone)
	w.then = nil
}

// fire adds an event, and queues the batch of SendOn. The caller holds the session's mu, and flushes.
func (w *Watch) fire(e Event) {
	w.push(e)
	if w.then != nil {
		w.then.queue()
		w.then = nil
	}
}

// push adds an event. It never blocks.
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

// end makes Next return err after the events so far.
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

// watchKind says what a watch watches, and how the server stores it.
type watchKind uint8

const (
	watchData       watchKind = iota // getData, or exists of an existing node
	watchExist                       // exists of a missing node
	watchChild                       // getChildren
	watchPersistent                  // addWatch
	watchRecursive                   // addWatch, recursive
	watchKinds
)

// watched is the state of a session's watches of one path.
type watched struct {
	sets    [watchKinds][]*Watch // set here and at the server
	pending [watchKinds]int      // requests that set one; by slot
	stale   [watchKinds]bool     // set at the server, but no longer needed; by slot
	coarse  bool                 // the server is older than 3.9 and cannot remove one kind of watch alone
}

// slot returns the kind under which the server stores watches of kind k: it does not distinguish exists from getData.
func (k watchKind) slot() watchKind {
	if k == watchExist {
		return watchData
	}
	return k
}

// wanted reports whether a watch of the slot is set or pending.
func (p *watched) wanted(slot watchKind) bool {
	return len(p.sets[slot]) > 0 || p.pending[slot] > 0 || slot == watchData && len(p.sets[watchExist]) > 0
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
