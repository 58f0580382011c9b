package cache

// A leaf of a table: consecutive nodes in one block of bytes.

import (
	"encoding/binary"
	"slices"
)

// maxLeaf is the size of a leaf's block in bytes. Reading a node scans half a leaf on average, and a change copies one.
const maxLeaf = 2048

// A leaf has up to about maxLeaf bytes of consecutive entries. An entry leaves out the bytes that its key shares with
// the key before:
//
//	uvarint: how many bytes it shares
//	uvarint: length of the rest of the key
//	uvarint: length of the record
//	the rest of the key, and the record
//
// A leaf that belongs to a published table never changes.
type leaf struct {
	edit  *edit // the edit that may change it, if that is still open
	first string
	n     int
	b     []byte
	big   [][]byte // data that is too large for b; entries that are nil are free
}

// An entry is an entry of a leaf, and where it is.
type entry struct {
	at, end int    // in the leaf's b
	shared  int    // bytes of its key that are those of the key before
	suffix  []byte // the rest of its key
	rest    []byte // its record
}

func (l *leaf) entryAt(at int) entry {
	b := l.b[at:]
	var size [3]int
	i := 0
	for k := range size {
		if c := b[i]; c < 0x80 {
			size[k] = int(c)
			i++
			continue
		}
		v, n := binary.Uvarint(b[i:])
		size[k] = int(v)
		i += n
	}
	rest := i + size[1]
	end := rest + size[2]
	return entry{at: at, end: at + end, shared: size[0], suffix: b[i:rest:rest], rest: b[rest:end:end]}
}

// A spot is where a key is in a leaf, or where it would be.
type spot struct {
	entry
	found  bool
	last   bool // no entry is at or behind the key
	before int  // how many bytes the key shares with the entry before
	behind int  // how many bytes the key shares with the entry at the spot
}

// seek returns the first entry whose key is not less than key.
func (l *leaf) seek(key []byte) spot {
	m := 0 // how many bytes key shares with the entry before
	for at := 0; at < len(l.b); {
		e := l.entryAt(at)
		at = e.end
		if e.shared > m {
			continue // the entry differs from key where the one before does
		}
		if e.shared < m {
			return spot{entry: e, before: m, behind: e.shared}
		}
		c := common(e.suffix, key[m:])
		switch next := m + c; {
		case c == len(e.suffix) && next == len(key):
			return spot{entry: e, found: true, before: m, behind: next}
		case c < len(e.suffix) && (next == len(key) || e.suffix[c] > key[next]):
			return spot{entry: e, before: m, behind: next}
		default:
			m = next
		}
	}
	return spot{entry: entry{at: len(l.b), end: len(l.b)}, last: true, before: m}
}

// common returns how many leading bytes a and b share.
func common(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

func appendEntry(b []byte, shared int, suffix, rest []byte) []byte {
	b = binary.AppendUvarint(b, uint64(shared))
	b = binary.AppendUvarint(b, uint64(len(suffix)))
	b = binary.AppendUvarint(b, uint64(len(rest)))
	return append(append(b, suffix...), rest...)
}

// own returns a leaf with the same entries that ed may change.
func (l *leaf) own(ed *edit) *leaf {
	if l.edit == ed {
		return l
	}
	b := append(make([]byte, 0, max(len(l.b)+len(l.b)/16, 64)), l.b...)
	return &leaf{edit: ed, first: l.first, n: l.n, b: b, big: slices.Clone(l.big)}
}

// put stores a record at the spot that seek has returned for key. The leaf must be owned.
func (l *leaf) put(s spot, key []byte, r *record, ed *edit) {
	if s.found {
		l.release(s.rest)
	}
	ed.rest = r.append(ed.rest[:0], ed.base, l.keepBig(r))
	ed.bytes = appendEntry(ed.bytes[:0], s.before, key[s.before:], ed.rest)
	end := s.at
	switch {
	case s.found:
		end = s.end
	case !s.last: // the entry behind shares at least as many bytes with the new one
		ed.bytes = appendEntry(ed.bytes, s.behind, s.suffix[s.behind-s.shared:], s.entry.rest)
		end = s.end
	}
	if s.at == 0 {
		l.first = string(key)
	}
	if !s.found {
		l.n++
	}
	l.b = slices.Replace(l.b, s.at, end, ed.bytes...)
}

// remove removes the entry at a spot. The leaf must be owned.
func (l *leaf) remove(s spot, ed *edit) {
	l.release(s.rest)
	l.n--
	ed.bytes = ed.bytes[:0]
	end := s.end
	if s.end < len(l.b) {
		next := l.entryAt(s.end)
		end = next.end
		if next.shared > s.shared {
			ed.rest = append(append(ed.rest[:0], s.suffix[:next.shared-s.shared]...), next.suffix...)
			ed.bytes = appendEntry(ed.bytes, s.shared, ed.rest, next.rest)
		} else {
			ed.bytes = append(ed.bytes, l.b[next.at:next.end]...)
		}
		if s.at == 0 {
			l.first = string(l.entryKey(s, next))
		}
	}
	l.b = slices.Replace(l.b, s.at, end, ed.bytes...)
}

// entryKey returns the key of next, which follows the first entry of the leaf.
func (l *leaf) entryKey(first spot, next entry) []byte {
	return append(slices.Clone(first.suffix[:next.shared]), next.suffix...)
}

// keepBig stores the record's data among the big ones and returns its index, if it is too large for the block.
func (l *leaf) keepBig(r *record) int {
	if len(r.data) <= maxInline {
		return 0
	}
	for i, data := range l.big {
		if data == nil {
			l.big[i] = r.data
			return i
		}
	}
	l.big = append(l.big, r.data)
	return len(l.big) - 1
}

// release frees the big data of an encoded record.
func (l *leaf) release(rest []byte) {
	if i := bigIndex(rest); i >= 0 {
		l.big[i] = nil
	}
}

// split moves the second half of an owned leaf to a new one.
func (l *leaf) split(ed *edit) *leaf {
	key, at, n := []byte(nil), 0, 0
	for at < len(l.b)/2 || n == 0 {
		e := l.entryAt(at)
		key = append(key[:e.shared], e.suffix...)
		at = e.end
		n++
	}
	if at == len(l.b) { // one large entry at the end
		return nil
	}
	e := l.entryAt(at)
	key = append(key[:e.shared], e.suffix...)
	right := &leaf{edit: ed, first: string(key), n: l.n - n, big: slices.Clone(l.big)}
	right.b = make([]byte, 0, len(l.b)-at+len(key)+8)
	right.b = append(appendEntry(right.b, 0, key, e.rest), l.b[e.end:]...)
	l.b, l.n = append(make([]byte, 0, at+at/4), l.b[:at]...), n
	l.dropBig()
	right.dropBig()
	return right
}

// dropBig frees the big data that no entry refers to.
func (l *leaf) dropBig() {
	if len(l.big) == 0 {
		return
	}
	used := make([]bool, len(l.big))
	for at := 0; at < len(l.b); {
		e := l.entryAt(at)
		at = e.end
		if i := bigIndex(e.rest); i >= 0 {
			used[i] = true
		}
	}
	for i := range l.big {
		if !used[i] {
			l.big[i] = nil
		}
	}
}

// absorb appends the entries of the leaf behind. The leaf must be owned, and neither may have big data.
func (l *leaf) absorb(next *leaf) {
	var last []byte
	for at := 0; at < len(l.b); {
		e := l.entryAt(at)
		last = append(last[:e.shared], e.suffix...)
		at = e.end
	}
	e := next.entryAt(0)
	shared := common(last, e.suffix)
	l.b = appendEntry(l.b, shared, e.suffix[shared:], e.rest)
	l.b = append(l.b, next.b[e.end:]...)
	l.n += next.n
}
