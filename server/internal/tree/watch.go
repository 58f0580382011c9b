package tree

// Watches.

import (
	"container/list"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// mode is a set of the ways to watch a path.
type mode uint8

const (
	standard   mode = 1 << iota // fires once
	persisting                  // fires every time
	recursive                   // fires every time, also for everything below
	anyMode    = standard | persisting | recursive
)

// The two tables of watches. Watches of getData, exists and recursive ones are in the first, those of getChildren in
// the second, and persistent ones in both.
const (
	onData = iota
	onChildren
)

// watch is one connection's watch of one path in one table. The watches of a path form a ring in the order in which
// they were set.
type watch struct {
	path       string
	by         *watcher
	modes      mode
	prev, next *watch
}

type table struct {
	heads    map[string]*watch // the first watch of each path
	count    int               // watches
	watchers int               // connections that have a watch here
}

// deep is the recursive watches of a path, apart from its others: every change below the path looks at all of these.
type deep struct{ watches list.List }

// watchCost is about how many bytes a watch takes beside its path: itself and its entries in two maps.
const watchCost = 200

// watcher is a connection that has set a watch.
type watcher struct {
	id      WatcherID
	caller  *Caller
	watches [2]map[string]*watch     // by path, one map per table
	count   int                      // of watches
	bytes   int                      // in their paths
	deep    map[string]*list.Element // the recursive ones by path, in the tree's deep
	stamp   uint64
	cut     bool // gets no events any more
}

// watch sets a watch of c, which the caller has checked with mayWatch. The nil Caller has no connection to notify.
func (t *Tree) watch(c *Caller, which int, path string, m mode) {
	if c == nil {
		return
	}
	by := t.watchers[c.Watcher]
	if by == nil {
		by = &watcher{id: c.Watcher}
		t.watchers[c.Watcher] = by
	}
	by.caller = c
	tb := &t.tables[which]
	w := by.watches[which][path]
	if w == nil {
		if by.watches[which] == nil {
			by.watches[which] = map[string]*watch{}
		}
		if len(by.watches[which]) == 0 {
			tb.watchers++
		}
		w = &watch{path: path, by: by}
		by.watches[which][path] = w
		by.count++
		by.bytes += len(path)
		c.Kept.Add(int64(len(path)) + watchCost)
		tb.add(w)
	}
	if m == recursive && w.modes&recursive == 0 {
		t.watchDeep(w)
	}
	w.modes |= m
}

func (t *Tree) watchDeep(w *watch) {
	d := t.deep[w.path]
	if d == nil {
		d = new(deep)
		t.deep[w.path] = d
		if n := t.nodes[w.path]; n != nil {
			t.deepAt[n] = d
		}
	}
	if w.by.deep == nil {
		w.by.deep = map[string]*list.Element{}
	}
	w.by.deep[w.path] = d.watches.PushBack(w)
}

func (t *Tree) unwatchDeep(w *watch) {
	d := t.deep[w.path]
	d.watches.Remove(w.by.deep[w.path])
	delete(w.by.deep, w.path)
	if d.watches.Len() == 0 {
		delete(t.deep, w.path)
		delete(t.deepAt, t.nodes[w.path])
	}
}

func (tb *table) add(w *watch) {
	tb.count++
	head := tb.heads[w.path]
	if head == nil {
		w.prev, w.next = w, w
		tb.heads[w.path] = w
		return
	}
	w.prev, w.next = head.prev, head
	head.prev.next, head.prev = w, w
}

// removeModes removes modes from w, and w from its table when no mode is left.
func (t *Tree) removeModes(which int, w *watch, m mode) {
	tb := &t.tables[which]
	if w.modes&m&recursive != 0 {
		t.unwatchDeep(w)
	}
	w.modes &^= m
	if w.modes != 0 {
		return
	}
	tb.count--
	switch {
	case w.next == w:
		delete(tb.heads, w.path)
	case tb.heads[w.path] == w:
		tb.heads[w.path] = w.next
	}
	w.prev.next, w.next.prev = w.next, w.prev
	w.prev, w.next = nil, nil
	delete(w.by.watches[which], w.path)
	w.by.count--
	w.by.bytes -= len(w.path)
	w.by.caller.Kept.Add(-int64(len(w.path)) - watchCost)
	if len(w.by.watches[which]) == 0 {
		tb.watchers--
	}
}

// RemoveWatcher removes at most n watches of a connection. It returns how many, and whether more are left. Removing a
// hundred thousand at a time would take too long.
func (t *Tree) RemoveWatcher(id WatcherID, n int) (removed int, more bool) {
	by := t.watchers[id]
	if by == nil {
		return 0, false
	}
	for which := range t.tables {
		for _, w := range by.watches[which] {
			if removed == n {
				return removed, true
			}
			t.removeModes(which, w, anyMode)
			removed++
		}
	}
	delete(t.watchers, id)
	return removed, false
}

func (t *Tree) addWatch(c *Caller, req wire.Record) (wire.Record, wire.Code) {
	r, ok := req.(*wire.AddWatchRequest)
	if !ok || r == nil {
		return nil, wire.MarshallingError
	}
	switch r.Mode {
	case wire.WatchPersistent:
		if !t.mayWatch(c, 2, 2*len(r.Path)) {
			return nil, wire.BadArguments
		}
		t.watch(c, onData, r.Path, persisting)
		t.watch(c, onChildren, r.Path, persisting)
	case wire.WatchPersistentRecursive:
		if !t.mayWatch(c, 1, len(r.Path)) {
			return nil, wire.BadArguments
		}
		t.watch(c, onData, r.Path, recursive)
	default:
		return nil, wire.MarshallingError
	}
	return &wire.ErrorResponse{}, wire.OK
}

// findWatches serves checkWatches and, if remove, removeWatches. It returns NoWatcher if c has no such watch.
func (t *Tree) findWatches(c *Caller, req wire.Record, remove bool) wire.Code {
	r, ok := req.(*wire.WatcherTypeRequest)
	if !ok || r == nil {
		return wire.MarshallingError
	}
	var wanted [2]mode
	switch r.Type {
	case wire.WatcherChildren:
		wanted[onChildren] = standard
	case wire.WatcherData:
		wanted[onData] = standard
	case wire.WatcherAny:
		wanted = [2]mode{anyMode, anyMode}
	case wire.WatcherPersistent:
		wanted = [2]mode{persisting, persisting}
	case wire.WatcherPersistentRecursive:
		wanted[onData] = recursive
	default:
		return wire.MarshallingError
	}
	code := wire.NoWatcher
	if c == nil || t.watchers[c.Watcher] == nil {
		return code
	}
	for which, m := range wanted {
		w := t.watchers[c.Watcher].watches[which][r.Path]
		if w == nil || w.modes&m == 0 {
			continue
		}
		code = wire.OK
		if remove {
			t.removeModes(which, w, m)
		}
	}
	return code
}

// setWatches restores the watches of a client that lost its connection. Where something has changed since the last zxid
// that the client has seen, it returns an event instead of setting the watch; as for every event, not if c may not read
// the node. It returns BadArguments, and sets none, if these are more watches than c may have.
func (t *Tree) setWatches(c *Caller, req wire.Record) (wire.Code, []Fired) {
	r, ok := req.(*wire.SetWatchesRequest)
	if !ok || r == nil {
		return wire.MarshallingError, nil
	}
	if c == nil {
		return wire.OK, nil
	}
	if more, bytes := demand(r); !t.mayWatch(c, more, bytes) {
		return wire.BadArguments, nil
	}
	var events []Fired
	missed := func(typ wire.EventType, path string, n *node) {
		if n != nil && !t.allowed(c, n.acl, wire.PermRead) {
			return
		}
		events = append(events, Fired{
			Watcher: c.Watcher,
			Event:   wire.Event{Type: typ, State: wire.StateSyncConnected, Path: path},
			Zxid:    -1,
		})
	}
	for _, path := range r.Data {
		switch n := t.lookup(path); {
		case n == nil:
			missed(wire.EventDeleted, path, nil)
		case n.mzxid > r.RelativeZxid:
			missed(wire.EventDataChanged, path, n)
		default:
			t.watch(c, onData, path, standard)
		}
	}
	for _, path := range r.Exist {
		if n := t.lookup(path); n != nil {
			missed(wire.EventCreated, path, n)
		} else {
			t.watch(c, onData, path, standard)
		}
	}
	for _, path := range r.Child {
		switch n := t.lookup(path); {
		case n == nil:
			missed(wire.EventDeleted, path, nil)
		case n.pzxid > r.RelativeZxid:
			missed(wire.EventChildrenChanged, path, n)
		default:
			t.watch(c, onChildren, path, standard)
		}
	}
	for _, path := range r.Persistent {
		t.watch(c, onData, path, persisting)
		t.watch(c, onChildren, path, persisting)
	}
	for _, path := range r.PersistentRecur {
		t.watch(c, onData, path, recursive)
	}
	return wire.OK, events
}

// TakeWatches removes n paths from a request that sets more watches than that, and returns a request for these. It
// returns nil for any other request.
func TakeWatches(req wire.Record, n int) *wire.SetWatchesRequest {
	r, ok := req.(*wire.SetWatchesRequest)
	if !ok || r == nil {
		return nil
	}
	if Watches(r) <= n {
		return nil
	}
	part := &wire.SetWatchesRequest{RelativeZxid: r.RelativeZxid, Two: r.Two}
	take := func(from, to *[]string) {
		k := min(n, len(*from))
		*to, *from = (*from)[:k], (*from)[k:]
		n -= k
	}
	take(&r.Data, &part.Data)
	take(&r.Exist, &part.Exist)
	take(&r.Child, &part.Child)
	take(&r.Persistent, &part.Persistent)
	take(&r.PersistentRecur, &part.PersistentRecur)
	return part
}

// Watches returns the most watches that a request may set anew after a reconnect.
func Watches(req wire.Record) int {
	r, ok := req.(*wire.SetWatchesRequest)
	if !ok || r == nil {
		return 0
	}
	return len(r.Data) + len(r.Exist) + len(r.Child) + 2*len(r.Persistent) + len(r.PersistentRecur)
}

// demand returns the same, and how many bytes are in their paths.
func demand(r *wire.SetWatchesRequest) (n, bytes int) {
	for _, list := range [][]string{r.Data, r.Exist, r.Child, r.Persistent, r.Persistent, r.PersistentRecur} {
		for _, path := range list {
			bytes += len(path)
		}
	}
	return Watches(r), bytes
}
