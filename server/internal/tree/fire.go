package tree

// The events of a write.

import (
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// trigger is what happened to one node, with the access lists that decide which connections may learn of it.
type trigger struct {
	kind       wire.EventType
	n          *node
	acl        *acl
	parentList *acl // nil if the parent's children did not change
}

// fireAll turns the triggers of a write into events, in order.
func (t *Tree) fireAll() []Fired {
	if t.tables[onData].count == 0 && t.tables[onChildren].count == 0 {
		return nil
	}
	var out []Fired
	for i := range t.tx.triggers {
		x := &t.tx.triggers[i]
		// One stamp for both tables: a connection that watches data and children of a deleted node gets one event.
		t.stamp++
		out = t.fire(out, onData, x.kind, x.n.path, x.acl)
		out = t.fireAncestors(out, x)
		if x.kind == wire.EventDeleted {
			out = t.fire(out, onChildren, x.kind, x.n.path, x.acl)
		}
		if x.parentList != nil {
			t.stamp++
			out = t.fire(out, onChildren, wire.EventChildrenChanged, x.n.parent.path, x.parentList)
		}
	}
	return out
}

// fire notifies the watchers of path in one table and removes the watches that fire once.
func (t *Tree) fire(out []Fired, which int, kind wire.EventType, path string, list *acl) []Fired {
	tb := &t.tables[which]
	w := tb.heads[path]
	if w == nil {
		return out
	}
	for last := w.prev; ; {
		next := w.next
		out = t.notify(out, w.by, kind, path, list)
		done := w == last
		fired := standard
		if w.by.cut {
			fired = anyMode
		}
		t.removeModes(which, w, fired) // once: a watch without modes is in no table any more
		if done {
			return out
		}
		w = next
	}
}

// fireAncestors notifies the connections that watch an ancestor recursively. It walks the nodes, because to look up the
// path of each ancestor takes time that grows with the square of the path's length.
func (t *Tree) fireAncestors(out []Fired, x *trigger) []Fired {
	if len(t.deepAt) == 0 {
		return out
	}
	for p := x.n.parent; p != nil; p = p.parent {
		d := t.deepAt[p]
		if d == nil {
			continue
		}
		for e := d.watches.Front(); e != nil; {
			w, next := e.Value.(*watch), e.Next()
			out = t.notify(out, w.by, x.kind, x.n.path, x.acl)
			if w.by.cut {
				t.removeModes(onData, w, anyMode)
			}
			e = next
		}
	}
	return out
}

// manyChanges is the number of changes from which on a multi is refused if it would cause too many events. With fewer
// it is the watches that are many.
const manyChanges = 1000

// floods reports whether the current write has many changes, and would cause more than Config.MaxEvents events at
// watches that stay. One that fires once is no matter.
func (t *Tree) floods() bool {
	if t.cfg.MaxEvents <= 0 || len(t.tx.triggers) <= manyChanges || t.WatchCount() == 0 {
		return false
	}
	var staying [2]map[string]int // how many there are at each path
	for i := range staying {
		staying[i] = map[string]int{}
	}
	count := func(which int, path string) int {
		n, ok := staying[which][path]
		if !ok {
			n = t.staying(which, path)
			staying[which][path] = n
		}
		return n
	}
	events := 0
	for i := range t.tx.triggers {
		x := &t.tx.triggers[i]
		events += count(onData, x.n.path)
		if x.parentList != nil {
			events += count(onChildren, x.n.parent.path)
		}
		for p := x.n.parent; p != nil && len(t.deepAt) > 0; p = p.parent {
			if d := t.deepAt[p]; d != nil {
				events += d.watches.Len()
			}
		}
		if events > t.cfg.MaxEvents {
			return true
		}
	}
	return false
}

// staying returns the number of watches of a path that do not only fire once.
func (t *Tree) staying(which int, path string) (n int) {
	head := t.tables[which].heads[path]
	for w := head; w != nil; {
		if w.modes&^standard != 0 {
			n++
		}
		if w = w.next; w == head {
			break
		}
	}
	return n
}

// notify adds an event for one connection, unless the connection has it already or may not read the node. As many
// watches may see a change as there are connections. If there are more than Config.MaxEvents events, connections get no
// further ones and are to be closed.
func (t *Tree) notify(out []Fired, by *watcher, kind wire.EventType, path string, list *acl) []Fired {
	if by.stamp == t.stamp || by.cut {
		return out
	}
	by.stamp = t.stamp
	if t.tx.looks++; t.cfg.MaxEvents > 0 && t.tx.looks > t.cfg.MaxEvents {
		by.cut = true
		t.tx.cut = append(t.tx.cut, by.id)
		return out
	}
	if !t.allowed(by.caller, list, wire.PermRead) {
		return out
	}
	return append(out, Fired{
		Watcher: by.id,
		Event:   wire.Event{Type: kind, State: wire.StateSyncConnected, Path: path},
		Zxid:    t.tx.zxid,
	})
}
