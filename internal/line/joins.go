package line

// Bounds for many contenders of one process that join a line at the same time.

import (
	"context"
	"sync"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

const (
	maxJoins      = 256       // contenders that are asked for and not there yet, of those that wait for room
	maxLists      = 16        // lists that are asked for together with a contender
	maxListsBytes = 256 << 10 // of their answers
)

// joins is what a line knows of the contenders of this process that are joining it. Of n that join at a time, each
// would otherwise be answered with a list of all n.
type joins struct {
	mu      sync.Mutex    // guards what follows; never held while anything is waited for
	joining int           // contenders that are asked for and not there yet
	size    int           // of the longest list lately, in bytes
	last    *listing      // the latest one that was begun or waits to
	rooms   chan struct{} // made by room
}

// A listing is a list that several contenders wait for.
type listing struct {
	sess    *zk.Session
	started bool // guarded by mu of joins
	done    chan struct{}
	found   []Contender // when done is closed; not to be changed
	err     error
}

// room waits until another contender may be asked for without waiting for its answer.
func (l *Line) room(ctx context.Context, sess *zk.Session) error {
	l.joins.mu.Lock()
	if l.joins.rooms == nil {
		l.joins.rooms = make(chan struct{}, maxJoins)
	}
	rooms := l.joins.rooms
	l.joins.mu.Unlock()
	select {
	case rooms <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-sess.Context().Done():
		return sess.Err()
	}
}

// join counts a contender that is asked for, unless it was before, and reports whether a list may be asked for with it.
func (j *joins) join(again bool) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !again {
		j.joining++
	}
	return j.joining <= maxLists && j.joining*j.size <= maxListsBytes
}

func (j *joins) joined() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.joining--
}

// listed notes how long a list was.
func (j *joins) listed(names []string) {
	size := 0
	for _, name := range names {
		size += 4 + len(name)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.size = size
}

// list returns the line's contenders, by a list that was asked for after the call.
func (l *Line) list(ctx context.Context, sess *zk.Session) ([]Contender, error) {
	return l.listing(sess).wait(ctx) //nolint:contextcheck // others wait for it, too
}

// listing has the line listed after the call. All that call it while another list is under way share the next one.
func (l *Line) listing(sess *zk.Session) *listing {
	j := &l.joins
	j.mu.Lock()
	defer j.mu.Unlock()
	w := j.last
	if w == nil || w.started || w.sess != sess {
		before := w
		w = &listing{sess: sess, done: make(chan struct{})}
		j.last = w
		go l.run(w, before)
	}
	return w
}

// wait returns the list when it is there. It is not to be changed.
func (w *listing) wait(ctx context.Context) ([]Contender, error) {
	select {
	case <-w.done:
		return w.found, w.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// run asks for a list when the one before is there.
func (l *Line) run(w, before *listing) {
	if before != nil && before.sess == w.sess {
		<-before.done // the end of the session ends it
	}
	l.joins.mu.Lock()
	w.started = true
	l.joins.mu.Unlock()
	names, err := attempt.Ask(w.sess.Context(), w.sess, func() ([]string, error) {
		names, _, err := w.sess.Children(w.sess.Context(), l.Dir)
		return names, err
	})
	if err == nil {
		l.joins.listed(names)
	}
	w.found, w.err = Contenders(names, l.Markers), err
	close(w.done)
}
