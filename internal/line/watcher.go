package line

// Watches on our own nodes while we own.

import (
	"sync"
	"time"
)

// watchAfter is how long an ownership must last before its nodes are watched for deletion by other clients. It keeps
// the watch off the path of short ones.
const watchAfter = 100 * time.Millisecond

// A watcher starts the watches of a line's ownerships once they have lasted for watchAfter. One timer serves them all,
// and is set again only after it has run out: setting a timer wakes the runtime's poller, and that is much of the cost
// of a lock that is taken and released at once. The timer may still run after the last ownership. Then it does nothing.
type watcher struct {
	mu      sync.Mutex // guards the fields below; never held while anything is waited for
	timer   *time.Timer
	running bool
	due     map[*Ownership]time.Time // when each is to watch
}

// add starts the watches of o after watchAfter, unless o is removed before.
func (w *watcher) add(o *Ownership) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.due == nil {
		w.due = make(map[*Ownership]time.Time)
	}
	w.due[o] = time.Now().Add(watchAfter)
	w.start(watchAfter)
}

// remove takes o out, whose watches may have started already.
func (w *watcher) remove(o *Ownership) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.due, o)
}

// start starts the timer unless it runs. The caller holds w.mu.
func (w *watcher) start(d time.Duration) {
	switch {
	case w.running:
		return
	case w.timer == nil:
		w.timer = time.AfterFunc(d, w.fire)
	default:
		w.timer.Reset(d)
	}
	w.running = true
}

func (w *watcher) fire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = false
	now, next := time.Now(), time.Duration(0)
	for o, due := range w.due {
		switch left := due.Sub(now); {
		case left <= 0:
			delete(w.due, o)
			go o.watch()
		case next == 0 || left < next:
			next = left
		}
	}
	if next > 0 {
		w.start(next)
	}
}
