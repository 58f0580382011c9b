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
func (t *Tree) EphemeralCount() int {
	count := 0
	for _, s := range t.sessions {
		count += len(s.nodes)
	}
	return count
}

// Ephemerals returns the sorted paths of the ephemeral nodes of every session that has any.
func (t *Tree) Ephemerals() map[int64][]string {
	out := map[int64][]string{}
	for id, s := range t.sessions {
		if len(s.nodes) == 0 {
			continue
		}
		paths := make([]string, len(s.nodes))
		for i, n := range s.nodes {
			paths[i] = n.path
		}
		slices.Sort(paths)
		out[id] = paths
	}
	return out
}

// WatchSummary counts the watches on data and existence: the connections that have any, the paths and the watches.
func (t *Tree) WatchSummary() (connections, paths, total int) {
	tb := &t.tables[onData]
	return tb.watchers, len(tb.heads), tb.count
}

// WatchCount returns the number of all watches, those on children included. A persistent watch counts as two, one on
// data and one on children.
func (t *Tree) WatchCount() int { return t.tables[onData].count + t.tables[onChildren].count }

// WatchesByPath returns the sorted connections that watch each path's data or existence.
func (t *Tree) WatchesByPath() map[string][]WatcherID {
	out := map[string][]WatcherID{}
	for id, by := range t.watchers {
		for path := range by.watches[onData] {
			out[path] = append(out[path], id)
		}
	}
	for _, ids := range out {
		slices.Sort(ids)
	}
	return out
}

// WatchesByWatcher returns the sorted paths whose data or existence each connection watches.
func (t *Tree) WatchesByWatcher() map[WatcherID][]string {
	out := map[WatcherID][]string{}
	for id, by := range t.watchers {
		if len(by.watches[onData]) > 0 {
			out[id] = slices.Sorted(maps.Keys(by.watches[onData]))
		}
	}
	return out
}
