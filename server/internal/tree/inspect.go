package tree

// Counts and listings for monitoring.

import (
	"iter"
	"maps"
	"slices"
)

// NodeCount returns the number of nodes, the root and the system nodes included.
func (t *Tree) NodeCount() int { return len(t.nodes) }

// DataSize returns the number of bytes in all paths and data.
func (t *Tree) DataSize() int64 { return t.size }

// SessionCount returns the number of sessions.
func (t *Tree) SessionCount() int { return len(t.sessions) }

// Sessions yields every session and its timeout in milliseconds, in order of their ids.
func (t *Tree) Sessions() iter.Seq2[int64, int32] {
	return func(yield func(int64, int32) bool) {
		for _, id := range slices.Sorted(maps.Keys(t.sessions)) {
			if s := t.sessions[id]; s != nil && !yield(id, s.timeout) {
				return
			}
		}
	}
}

// EphemeralCount returns the number of ephemeral nodes.
func (t *Tree) EphemeralCount() int { return t.ephemerals }

// Ephemerals appends the paths of up to n ephemeral nodes of a session, from number from on, and reports whether there
// are more. Nodes that come or go between two calls may be missing, or there twice.
func (t *Tree) Ephemerals(paths []string, session int64, from, n int) (out []string, more bool) {
	s := t.sessions[session]
	if s == nil || from >= len(s.nodes) {
		return paths, false
	}
	end := min(len(s.nodes), from+n)
	for _, n := range s.nodes[from:end] {
		paths = append(paths, n.path)
	}
	return paths, end < len(s.nodes)
}

// HasEphemerals reports whether a session has ephemeral nodes.
func (t *Tree) HasEphemerals(session int64) bool {
	s := t.sessions[session]
	return s != nil && len(s.nodes) > 0
}

// WatchSummary counts the watches on data and existence: the connections that have any, the paths and the watches.
func (t *Tree) WatchSummary() (connections, paths, total int) {
	tb := &t.tables[onData]
	return tb.watchers, len(tb.heads), tb.count
}

// WatchCount returns the number of all watches, those on children included. A persistent watch counts as two, one on
// data and one on children.
func (t *Tree) WatchCount() int { return t.tables[onData].count + t.tables[onChildren].count }

// Watchers returns the connections that watch the data or existence of any path, in no order.
func (t *Tree) Watchers() []WatcherID {
	var ids []WatcherID
	for id, by := range t.watchers {
		if len(by.watches[onData]) > 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// WatchedBy returns the paths whose data or existence a connection watches, in no order.
func (t *Tree) WatchedBy(id WatcherID) []string {
	by := t.watchers[id]
	if by == nil {
		return nil
	}
	paths := make([]string, 0, len(by.watches[onData]))
	for path := range by.watches[onData] {
		paths = append(paths, path)
	}
	return paths
}

// WatchersOf appends the connections that watch path's data or existence, if id is the first of them. So a list of all
// watches by their paths is the lists of all connections.
func (t *Tree) WatchersOf(out []WatcherID, path string, id WatcherID) []WatcherID {
	head := t.tables[onData].heads[path]
	if head == nil || head.by.id != id {
		return out
	}
	for w := head; ; {
		out = append(out, w.by.id)
		if w = w.next; w == head {
			return out
		}
	}
}
