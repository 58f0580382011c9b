package tree

// The events of a write.

import (
	"strings"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// trigger is what happened to one node, with the access lists that decide which connections may learn of it.
type trigger struct {
	kind       wire.EventType
	path       string
	acl        *acl
	parent     string // "" if the parent's children did not change
	parentList *acl
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
		out = t.fire(out, onData, x.kind, x.path, x.acl)
		out = t.fireAncestors(out, x)
		if x.kind == wire.EventDeleted {
			out = t.fire(out, onChildren, x.kind, x.path, x.acl)
		}
		if x.parent != "" {
			t.stamp++
			out = t.fire(out, onChildren, wire.EventChildrenChanged, x.parent, x.parentList)
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
		t.removeModes(which, w, standard)
		if done {
			return out
		}
		w = next
	}
}

// fireAncestors notifies the connections that watch an ancestor recursively.
func (t *Tree) fireAncestors(out []Fired, x *trigger) []Fired {
	tb := &t.tables[onData]
	if tb.recursive == 0 {
		return out
	}
	for path := x.path; path != rootPath; {
		path = path[:strings.LastIndexByte(path, '/')]
		if path == "" {
			path = rootPath
		}
		head := tb.heads[path]
		for w := head; w != nil; {
			if w.modes&recursive != 0 {
				out = t.notify(out, w.by, x.kind, x.path, x.acl)
			}
			if w = w.next; w == head {
				break
			}
		}
	}
	return out
}

// notify adds an event for one connection, unless the connection has it already or may not read the node.
func (t *Tree) notify(out []Fired, by *watcher, kind wire.EventType, path string, list *acl) []Fired {
	if by.stamp == t.stamp {
		return out
	}
	by.stamp = t.stamp
	if !t.allowed(by.caller, list, wire.PermRead) {
		return out
	}
	return append(out, Fired{
		Watcher: by.id,
		Event:   wire.Event{Type: kind, State: wire.StateSyncConnected, Path: path},
		Zxid:    t.tx.zxid,
	})
}
