package cache

// Tables: nodes in the order of their parents and names, in immutable versions that share what they have in common.

import (
	"bytes"
	"slices"
	"sort"
	"strings"
)

// maxBranch is how many leaves a branch has at most.
const maxBranch = 256

// A table maps keys to records, in order. A copy of a table is a version of its own that later changes do not affect:
// a change copies the leaf and the branch that it is in, once per edit.
//
// The key of a node is its path relative to the root of the cache, with a zero byte in place of the last slash, or
// before the name if the root is the parent. So the children of a node are next to each other, and their keys share
// the parent's path, which is then stored once per leaf.
type table struct {
	branches []*branch
	n        int
	base     base
}

type branch struct {
	edit   *edit
	leaves []*leaf
}

// An edit makes changes to a table. What it has copied belongs to it until the next version begins.
type edit struct {
	base        base
	bytes, rest []byte // scratch space
}

// A builder is a table that is being changed. It has one owner.
type builder struct {
	table
	ed  *edit
	key []byte // scratch space
	own bool   // table.branches is not shared with a version
}

func newBuilder() *builder { return &builder{ed: new(edit)} }

// version returns the table as it is now. Later changes of the builder do not affect it.
func (t *builder) version() table {
	t.ed = &edit{base: t.ed.base, bytes: t.ed.bytes, rest: t.ed.rest}
	t.own = false
	return t.table
}

// appendKey appends the key of the node with the given relative path.
func appendKey(b []byte, rel string) []byte {
	if rel == "" {
		return b
	}
	i := strings.LastIndexByte(rel, '/')
	if i < 0 {
		return append(append(b, 0), rel...)
	}
	return append(append(append(b, rel[:i]...), 0), rel[i+1:]...)
}

// relative returns the relative path of the node with the given key.
func relative(key []byte) string {
	switch i := bytes.IndexByte(key, 0); {
	case i < 0:
		return ""
	case i == 0:
		return string(key[1:])
	default:
		b := make([]byte, len(key))
		copy(b, key)
		b[i] = '/'
		return string(b)
	}
}

// locate returns the leaf in which key is, or would be. The table must not be empty.
func (t *table) locate(key []byte) (bi, li int) {
	bi = sort.Search(len(t.branches), func(i int) bool { return t.branches[i].leaves[0].first > string(key) }) - 1
	bi = max(bi, 0)
	leaves := t.branches[bi].leaves
	li = sort.Search(len(leaves), func(i int) bool { return leaves[i].first > string(key) }) - 1
	return bi, max(li, 0)
}

// get returns the record of a node. Its data shares memory with the table.
func (t *table) get(rel string) (record, bool) {
	var space [128]byte
	return t.find(appendKey(space[:0], rel))
}

// hasParent reports whether the parent of a node is there, or the node is the root.
func (t *table) hasParent(rel string) bool {
	if rel == "" {
		return true
	}
	_, ok := t.get(rel[:max(0, strings.LastIndexByte(rel, '/'))])
	return ok
}

func (t *table) find(key []byte) (record, bool) {
	if t.n == 0 {
		return record{}, false
	}
	bi, li := t.locate(key)
	l := t.branches[bi].leaves[li]
	s := l.seek(key)
	if !s.found {
		return record{}, false
	}
	return decodeRecord(s.rest, t.base, l.big), true
}

// change returns an owned branch and leaf.
func (t *builder) change(bi, li int) (*branch, *leaf) {
	if !t.own {
		t.branches, t.own = slices.Clone(t.branches), true
	}
	br := t.branches[bi]
	if br.edit != t.ed {
		br = &branch{edit: t.ed, leaves: slices.Clone(br.leaves)}
		t.branches[bi] = br
	}
	l := br.leaves[li].own(t.ed)
	br.leaves[li] = l
	return br, l
}

// put stores a record, and returns the one that was there before, without its data. It changes nothing if that is of
// the same state of the node.
func (t *builder) put(rel string, r *record) (before record, had bool) {
	t.key = appendKey(t.key[:0], rel)
	key := t.key
	if t.n == 0 {
		t.begin(key, r)
		return record{}, false
	}
	bi, li := t.locate(key)
	old := t.branches[bi].leaves[li]
	s := old.seek(key)
	if s.found {
		before, had = decodeRecord(s.rest, t.base, old.big), true
		before.data = nil // in place, and about to change
		if before.czxid == r.czxid && before.mzxid == r.mzxid {
			return before, true
		}
	}
	br, l := t.change(bi, li)
	if !s.found {
		t.n++
	}
	if s.last && len(l.b)+len(key)+len(r.data) > maxLeaf && len(r.data) <= maxInline {
		// Behind a full leaf: a new one, so that a tree that is loaded in order has full leaves.
		l.b = slices.Clip(l.b)
		l = &leaf{edit: t.ed, b: make([]byte, 0, maxLeaf)}
		l.put(spot{last: true}, key, r, t.ed)
		t.insert(bi, li+1, br, l)
		return before, had
	}
	l.put(s, key, r, t.ed)
	if len(l.b) > maxLeaf {
		if right := l.split(t.ed); right != nil {
			t.insert(bi, li+1, br, right)
		}
	}
	return before, had
}

// begin stores the first record of an empty table.
func (t *builder) begin(key []byte, r *record) {
	if !t.base.set {
		t.base = base{set: true, zxid: r.czxid, ctime: r.ctime}
		t.ed.base = t.base
	}
	l := &leaf{edit: t.ed}
	l.put(spot{last: true}, key, r, t.ed)
	t.branches = []*branch{{edit: t.ed, leaves: []*leaf{l}}}
	t.n, t.own = 1, true
}

// insert adds a leaf to an owned branch, and splits that if it is full.
func (t *builder) insert(bi, li int, br *branch, l *leaf) {
	br.leaves = slices.Insert(br.leaves, li, l)
	if len(br.leaves) <= maxBranch {
		return
	}
	at := len(br.leaves) / 2
	if li == len(br.leaves)-1 {
		at = li // loaded in order
	}
	right := &branch{edit: t.ed, leaves: slices.Clone(br.leaves[at:])}
	br.leaves = slices.Clip(br.leaves[:at])
	t.branches = slices.Insert(t.branches, bi+1, right)
}

// remove removes a node, and reports whether it was there.
func (t *builder) remove(rel string) bool {
	t.key = appendKey(t.key[:0], rel)
	return t.removeKey(t.key)
}

func (t *builder) removeKey(key []byte) bool {
	if t.n == 0 {
		return false
	}
	bi, li := t.locate(key)
	s := t.branches[bi].leaves[li].seek(key)
	if !s.found {
		return false
	}
	br, l := t.change(bi, li)
	s = l.seek(key) // the entry refers to the leaf before
	l.remove(s, t.ed)
	t.n--
	switch {
	case l.n == 0:
		br.leaves = slices.Delete(br.leaves, li, li+1)
		if len(br.leaves) == 0 {
			t.branches = slices.Delete(t.branches, bi, bi+1)
		}
	case len(l.b) < maxLeaf/4 && li+1 < len(br.leaves):
		if next := br.leaves[li+1]; len(l.b)+len(next.b) < maxLeaf*3/4 && len(l.big)+len(next.big) == 0 {
			l.absorb(next)
			br.leaves = slices.Delete(br.leaves, li+1, li+2)
		}
	}
	return true
}

// removeTree removes a node and all nodes below it.
func (t *builder) removeTree(rel string) {
	t.remove(rel)
	t.removeBelow(rel)
}

// removeBelow removes all nodes below a node.
func (t *builder) removeBelow(rel string) {
	if rel == "" {
		root, had := t.get("")
		if t.n == 0 || had && t.n == 1 {
			return
		}
		root.data = slices.Clone(root.data)
		t.branches, t.n, t.own = nil, 0, true
		if had {
			t.put("", &root)
		}
		return
	}
	t.removeRange(rel + "\x00")
	t.removeRange(rel + "/")
}

// removeRange removes all keys with a prefix.
func (t *builder) removeRange(prefix string) {
	const atOnce = 1024
	for {
		var keys [][]byte
		c := t.cursor()
		for ok := c.seek([]byte(prefix)); ok && len(keys) < atOnce && c.below(prefix); ok = c.next() {
			keys = append(keys, slices.Clone(c.key))
		}
		for _, key := range keys {
			t.removeKey(key)
		}
		if len(keys) < atOnce {
			return
		}
	}
}
