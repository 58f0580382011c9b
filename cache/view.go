package cache

// One version of a cache's contents.

import "iter"

// An Entry is the state of a node. What ZooKeeper changes without telling watches is left out: the access control list,
// and what a Stat says about children.
type Entry struct {
	Path           string
	Data           []byte // a copy; nil if the node has null data, or with Config.NoData
	Size           int    // of the data, in bytes, also if it is not kept
	Czxid          int64  // the transaction that created the node
	Mzxid          int64  // the last one that set its data
	Ctime          int64  // in milliseconds since 1970 by the server's clock
	Mtime          int64
	Version        int32 // counts changes of the data
	EphemeralOwner int64 // the session of an ephemeral node, or 0
}

// A View is one version of a cache's contents. It never changes, so what is read from it always fits together. Its
// methods may be called from several goroutines at once. A View needs memory for what has changed since, as long as it
// is used.
type View struct {
	root  string
	nodes table
	zxid  int64
	exact bool
}

// Zxid returns a transaction up to which the view has all changes. It is 0 before the first synchronization.
func (v *View) Zxid() int64 { return v.zxid }

// Exact reports whether the nodes were in exactly this state, all at once, right after transaction Zxid. It is false
// only while nodes change so fast that the cache cannot catch up. Each node is then at least as new as Zxid, but some
// may be newer than others.
func (v *View) Exact() bool { return v.exact }

// Len returns the number of nodes.
func (v *View) Len() int { return v.nodes.n }

// Get returns the state of a node. It returns false if there is no such node, or if the cache does not keep it.
func (v *View) Get(path string) (Entry, bool) {
	rel, ok := within(v.root, path)
	if !ok {
		return Entry{}, false
	}
	r, ok := v.nodes.get(rel)
	if !ok {
		return Entry{}, false
	}
	return r.entry(path), true
}

// Children yields the children of a node, ordered by name.
func (v *View) Children(path string) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		rel, ok := within(v.root, path)
		if !ok {
			return
		}
		v.nodes.children(rel, func(c *cursor) bool { return yield(v.at(c)) })
	}
}

// All yields all nodes. The children of a node come one after the other, and after the node itself.
func (v *View) All() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		c := v.nodes.cursor()
		for ok := c.start(0, 0); ok; ok = c.next() {
			if !yield(v.at(c)) {
				return
			}
		}
	}
}

// at returns the entry at a cursor.
func (v *View) at(c *cursor) Entry {
	r := c.record()
	return r.entry(join(v.root, relative(c.key)))
}

func (r *record) entry(path string) Entry {
	e := Entry{
		Path: path, Size: r.size, Czxid: r.czxid, Mzxid: r.mzxid, Ctime: r.ctime, Mtime: r.mtime,
		Version: r.version, EphemeralOwner: r.owner,
	}
	if !r.null && r.size == len(r.data) {
		e.Data = append([]byte{}, r.data...)
	}
	return e
}
