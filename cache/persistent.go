package cache

// The events of one persistent watch, which needs ZooKeeper 3.6.

import (
	"context"

	"github.com/seed-a3166700/turnstile/zk"
)

// persistent is a source with one watch for the whole tree.
type persistent struct{ w *zk.Watch }

func (s *persistent) poll(e *engine) {
	for {
		event, ok := s.w.Poll()
		if !ok {
			return
		}
		switch event.Type {
		case zk.EventResynced:
			e.missed()
		case zk.EventCreated, zk.EventDataChanged:
			e.mark(event.Path, false)
		case zk.EventDeleted:
			e.mark(event.Path, true)
		case zk.EventChildrenChanged: // each child has its own event
		}
	}
}

func (s *persistent) arm(e *engine) { s.w.AfterFunc(e.notify) }

// notify wakes the engine. It never blocks.
func (f *follower) notify() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (s *persistent) request(e *engine, tasks []task) *request {
	if e.cfg.NoData {
		return e.readEach(tasks, getStat, getNames)
	}
	return e.readAll(tasks)
}

func (s *persistent) watched() bool                          { return true }
func (s *persistent) keep(*engine, task, *result)            {}
func (s *persistent) forget(string)                          {}
func (s *persistent) missing(context.Context, *engine) error { return nil }
func (s *persistent) close()                                 { s.w.Close() }
