package cache

// Going through a table in order, and comparing two versions of it.

import (
	"bytes"
	"strings"
)

// A cursor is at an entry of a table.
type cursor struct {
	t      *table
	bi, li int
	key    []byte
	e      entry
}

func (t *table) cursor() *cursor { return &cursor{t: t} }

func (c *cursor) leaf() *leaf { return c.t.branches[c.bi].leaves[c.li] }

// done reports whether the cursor is behind the last entry.
func (c *cursor) done() bool { return c.bi >= len(c.t.branches) }

// start goes to the first entry of the leaf at bi and li, or of the next one. It returns false if there is none.
func (c *cursor) start(bi, li int) bool {
	c.bi, c.li, c.e, c.key = bi, li, entry{}, c.key[:0]
	if c.done() {
		return false
	}
	if c.li >= len(c.t.branches[c.bi].leaves) {
		return c.start(bi+1, 0)
	}
	c.e = c.leaf().entryAt(0)
	c.key = append(c.key[:0], c.e.suffix...)
	return true
}

// seek goes to the first entry whose key is not less than key, and returns false if there is none.
func (c *cursor) seek(key []byte) bool {
	if c.t.n == 0 {
		return false
	}
	bi, li := c.t.locate(key)
	s := c.t.branches[bi].leaves[li].seek(key)
	if s.last {
		return c.start(bi, li+1)
	}
	c.bi, c.li, c.e = bi, li, s.entry
	c.key = append(append(c.key[:0], key[:s.shared]...), s.suffix...) // it shares that much with the entry before
	return true
}

// next goes to the next entry, and returns false if there is none.
func (c *cursor) next() bool {
	l := c.leaf()
	if c.e.end >= len(l.b) {
		return c.start(c.bi, c.li+1)
	}
	c.e = l.entryAt(c.e.end)
	c.key = append(c.key[:c.e.shared], c.e.suffix...)
	return true
}

func (c *cursor) record() record { return decodeRecord(c.e.rest, c.t.base, c.leaf().big) }

// below reports whether the cursor's key begins with prefix.
func (c *cursor) below(prefix string) bool {
	return len(c.key) >= len(prefix) && string(c.key[:len(prefix)]) == prefix
}

// name returns the last element of the node's path.
func (c *cursor) name() string {
	return string(c.key[bytes.IndexByte(c.key, 0)+1:])
}

// children calls yield with a cursor at each child of a node, in the order of their names.
func (t *table) children(rel string, yield func(*cursor) bool) {
	prefix := rel + "\x00"
	c := t.cursor()
	for ok := c.seek([]byte(prefix)); ok && c.below(prefix); ok = c.next() {
		if !yield(c) {
			return
		}
	}
}

// compare calls yield for each node of which a and b have different states: with a cursor in a, in b, or in both. It
// skips what the versions share. It stops when yield returns false.
func compare(a, b *table, yield func(before, after *cursor) bool) {
	x, y := a.cursor(), b.cursor()
	okX, okY := x.start(0, 0), y.start(0, 0)
	for okX || okY {
		if okX && okY && x.e.at == 0 && y.e.at == 0 {
			switch {
			case x.li == 0 && y.li == 0 && x.t.branches[x.bi] == y.t.branches[y.bi]:
				okX, okY = x.start(x.bi+1, 0), y.start(y.bi+1, 0)
				continue
			case x.leaf() == y.leaf():
				okX, okY = x.start(x.bi, x.li+1), y.start(y.bi, y.li+1)
				continue
			}
		}
		var order int
		switch {
		case !okX:
			order = 1
		case !okY:
			order = -1
		default:
			order = bytes.Compare(x.key, y.key)
		}
		switch {
		case order < 0:
			if !yield(x, nil) {
				return
			}
			okX = x.next()
		case order > 0:
			if !yield(nil, y) {
				return
			}
			okY = y.next()
		default:
			p, q := x.record(), y.record()
			if (p.czxid != q.czxid || p.mzxid != q.mzxid) && !yield(x, y) {
				return
			}
			okX, okY = x.next(), y.next()
		}
	}
}

// join returns the path of a node below the root of a cache.
func join(root, rel string) string {
	switch {
	case rel == "":
		return root
	case root == "/":
		return root + rel
	default:
		return root + "/" + rel
	}
}

// within returns the relative path of a node, and false if path is no node's, or that of one that is neither root nor
// below it.
func within(root, path string) (string, bool) {
	if path == root {
		return "", true
	}
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(root, "/"))
	if !ok || !strings.HasPrefix(rest, "/") || strings.HasSuffix(rest, "/") || strings.Contains(rest, "//") {
		return "", false
	}
	return rest[1:], true
}
