package cache

// The events of one-shot watches on each node, for servers that have no persistent ones.

import (
	"context"
	"sync"

	"github.com/seed-a3166700/turnstile/zk"
)

// oneShot is a source with two watches on each node: on its data and on its list of children.
type oneShot struct {
	set map[spotted]*zk.Watch // owned by the engine

	mu    sync.Mutex // guards what follows
	fired []firing
	off   bool
}

// spotted is what a watch is on.
type spotted struct {
	rel  string
	list bool
}

// firing is a watch that has fired.
type firing struct {
	spotted
	w *zk.Watch
}

func newOneShot() *oneShot { return &oneShot{set: make(map[spotted]*zk.Watch)} }

func (s *oneShot) poll(e *engine) {
	s.mu.Lock()
	fired := s.fired
	s.fired = nil
	s.mu.Unlock()
	for _, on := range fired {
		if s.set[on.spotted] != on.w {
			continue // the node was read again after that
		}
		delete(s.set, on.spotted)
		if d := e.dirty[on.rel]; on.list {
			d.list = true
			e.dirty[on.rel] = d
		} else {
			d.read = true
			e.dirty[on.rel] = d
		}
	}
}

func (s *oneShot) arm(e *engine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.fired) > 0 {
		e.notify()
	}
}

func (s *oneShot) request(e *engine, tasks []task) *request {
	return e.readEach(tasks, getWatched, getNamesWatched)
}

func (s *oneShot) watched() bool { return false }

// keep remembers the watch of a result, in place of an earlier one.
func (s *oneShot) keep(e *engine, t task, r *result) {
	if r.watch != nil {
		s.add(e, spotted{t.rel, t.list}, r.watch)
	}
}

func (s *oneShot) add(e *engine, on spotted, w *zk.Watch) {
	if old := s.set[on]; old != nil {
		old.Close()
	}
	s.set[on] = w
	w.AfterFunc(func() {
		s.mu.Lock()
		if !s.off {
			s.fired = append(s.fired, firing{on, w})
		}
		s.mu.Unlock()
		e.notify()
	})
}

// forget closes the watches of a node.
func (s *oneShot) forget(rel string) {
	for _, on := range [...]spotted{{rel, false}, {rel, true}} {
		if w := s.set[on]; w != nil {
			w.Close()
			delete(s.set, on)
		}
	}
}

// missing watches for the creation of the root.
func (s *oneShot) missing(ctx context.Context, e *engine) error {
	_, exists, w, err := e.sess.ExistsW(ctx, e.root)
	if err != nil {
		return err
	}
	s.add(e, spotted{}, w)
	if exists {
		e.mark(e.root, false)
	}
	return nil
}

func (s *oneShot) close() {
	s.mu.Lock()
	s.off, s.fired = true, nil
	s.mu.Unlock()
	for _, w := range s.set {
		w.Close()
	}
	clear(s.set)
}
