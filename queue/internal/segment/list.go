// Package segment stores the items of a queue: lists of segments, the records in them, and their names.
package segment

// Lists of segments.

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"path"
	"slices"
	"sync"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// SmallItem is the largest item, in bytes of its node's data, of a segment of small items. Many of those are read in
// one reply. Larger items live in segments of large items.
const SmallItem = 4000

// A segment's data says how large its items may be.
const (
	smallSegment = "small"
	largeSegment = "large"
)

// Large reports whether a segment with this data may hold items that are larger than SmallItem.
func Large(data []byte) bool { return string(data) == largeSegment }

// Class returns the data of a segment, or "" if another program has written it.
func Class(data string) string {
	if data == smallSegment || data == largeSegment {
		return data
	}
	return ""
}

// ChangeName is the name of a list's change node, if that is a child of the list: the node that every append sets, so
// that clients can watch it.
const ChangeName = "bell"

// Store is what all lists of one queue share.
type Store struct {
	ACL     []zk.ACL // of the nodes that are created
	Packet  int      // the largest request that the servers accept, in bytes
	Items   int      // how many items a segment takes before it is sealed
	Missing func()   // called when a node above the lists turns out to be missing

	lists sync.Map // path to *List
}

// List is a list of segments: the ready items of one priority, a bucket of delayed items, or the dead letters. A
// segment is a node whose children are items. Items are only ever appended to the last segment, which is open: its
// version is 0. A client that finds it full seals it, by setting its data, and creates the next one, in one
// transaction. Every append checks in its own transaction that the version is 0, so that nothing is ever added to a
// sealed segment, nor to one that was removed.
type List struct {
	Dir    string // its node
	Change string // the node that an append sets, for those who watch it; "" for none

	// Temporary says that the list is dropped when it is empty, and may be created again.
	Temporary bool
	// Made says that the list's node is created together with something else, by Txn.Make: Find returns zk.NoNode if
	// there is none.
	Made bool

	store *Store

	mu   sync.Mutex // guards what follows
	tail Tail
}

// Tail is what is known of a list's end. It may be out of date: then the server refuses the append, and the client
// looks again.
type Tail struct {
	segment int // its number, from 1; 0 if nothing is known
	count   int // items that were ever added to it
	large   bool
}

func (t Tail) data() []byte {
	if t.large {
		return []byte(largeSegment)
	}
	return []byte(smallSegment)
}

// List returns the list at dir, always the same one as long as the store keeps it.
func (s *Store) List(dir, change string, temporary bool) *List {
	return s.keep(&List{Dir: dir, Change: change, Temporary: temporary, store: s})
}

// MadeList returns the list at dir, like List: a temporary one, which Txn.Make makes.
func (s *Store) MadeList(dir string) *List {
	return s.keep(&List{Dir: dir, Temporary: true, Made: true, store: s})
}

// keep returns the list that the store keeps at the path of l, or keeps l. Goroutines share it.
func (s *Store) keep(l *List) *List {
	kept, ok := s.lists.Load(l.Dir)
	if !ok {
		kept, _ = s.lists.LoadOrStore(l.Dir, l)
	}
	return kept.(*List)
}

// ForgetTemporary forgets all temporary lists. They are made anew when they are asked for again.
func (s *Store) ForgetTemporary() {
	s.lists.Range(func(dir, l any) bool {
		if l.(*List).Temporary {
			s.lists.Delete(dir)
		}
		return true
	})
}

// CreateOp returns the operation that creates a persistent node with the store's access list.
func (s *Store) CreateOp(path string, data []byte) zk.Op {
	return zk.CreateNodeOp(zk.Node{Path: path, Data: data, Mode: zk.Persistent, ACL: s.ACL})
}

// ACLSize returns how many bytes the access list takes in each creation.
func (s *Store) ACLSize() int {
	n := 0
	for _, a := range s.ACL {
		n += 12 + len(a.ID.Scheme) + len(a.ID.ID)
	}
	return n
}

// Segment returns the path of the n-th segment.
func (l *List) Segment(n int) string { return l.Dir + "/" + Name(n) }

// Item returns the path of an item.
func (l *List) Item(segment, seq int) string { return l.Segment(segment) + "/" + ItemName(seq) }

func (l *List) known() Tail {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tail
}

// learn records what an answer has shown of the list's end.
func (l *List) learn(t Tail) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.segment > l.tail.segment || t.segment == l.tail.segment && t.count > l.tail.count {
		l.tail = t
	}
}

// forget drops what is known, because the server says otherwise.
func (l *List) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tail = Tail{}
}

// Segments returns the numbers of the list's segments in order, nil if the list does not exist.
func (l *List) Segments(ctx context.Context, sess *zk.Session) ([]int, error) {
	names, _, err := l.children(ctx, sess)
	return Numbers(names, ParseName), err
}

// children returns the names of the list's children, and whether the list exists.
func (l *List) children(ctx context.Context, sess *zk.Session) ([]string, bool, error) {
	names, _, err := sess.Children(ctx, l.Dir)
	if errors.Is(err, zk.NoNode) {
		return nil, false, nil
	}
	return names, err == nil, err
}

// Items returns the numbers of the items of the n-th segment in order, nil if that does not exist.
func (l *List) Items(ctx context.Context, sess *zk.Session, n int) ([]int, error) {
	names, _, err := sess.Children(ctx, l.Segment(n))
	if errors.Is(err, zk.NoNode) {
		return nil, nil
	}
	return Numbers(names, ParseItem), err
}

// Fill tells how far a segment is filled and emptied.
type Fill struct {
	Segment int // its number
	Created int // how many items were ever added to it
	Left    int // how many of them are there
}

// Gone returns how many items are not there any more.
func (f Fill) Gone() int { return f.Created - f.Left }

// Fills are those of a list's segments, in order.
type Fills []Fill

// Find returns that of the n-th segment, and whether it is there.
func (fs Fills) Find(n int) (Fill, bool) {
	i, ok := slices.BinarySearchFunc(fs, n, func(f Fill, n int) int { return cmp.Compare(f.Segment, n) })
	if !ok {
		return Fill{}, false
	}
	return fs[i], true
}

// Left returns how many items the list has.
func (fs Fills) Left() int {
	total := 0
	for _, f := range fs {
		total += f.Left
	}
	return total
}

// Fills tells how far the list is filled and emptied. It reads no item, only how many children each segment has, and
// had.
func (l *List) Fills(ctx context.Context, sess *zk.Session) (Fills, error) {
	numbers, err := l.Segments(ctx, sess)
	if err != nil || len(numbers) == 0 {
		return nil, err
	}
	list := make(Fills, 0, len(numbers))
	next := 0
	for _, look := range attempt.Each(sess, l.paths(numbers), (*zk.Batch).Exists) {
		n := numbers[next]
		next++
		e, err := look.Get(ctx)
		if err != nil {
			return nil, err
		}
		if e.Exists {
			list = append(list, Fill{Segment: n, Created: Creations(e.Stat), Left: int(e.Stat.NumChildren)})
		}
	}
	return list, nil
}

// Sweep removes those of the segments that are sealed and empty. The server refuses what is not.
func (l *List) Sweep(ctx context.Context, sess *zk.Session, segments []int) {
	remove := func(b *zk.Batch, path string) *zk.Future[struct{}] { return b.Delete(path, 1) }
	for _, gone := range attempt.Each(sess, l.paths(segments), remove) {
		_, _ = gone.Get(ctx) // the next one does what was not done
	}
}

func (l *List) paths(segments []int) []string {
	paths := make([]string, len(segments))
	for i, n := range segments {
		paths[i] = l.Segment(n)
	}
	return paths
}

// Find returns the list's end. It creates the list if it does not exist, and what another client has removed of it.
func (l *List) Find(ctx context.Context, sess *zk.Session) (Tail, error) {
	if t := l.known(); t.segment > 0 {
		return t, nil
	}
	for sealed := -1; ; {
		// A server that lags behind would show an end that has moved, again and again.
		if err := sess.Sync(ctx, l.Dir); err != nil {
			return Tail{}, err
		}
		names, exists, err := l.children(ctx, sess)
		if err != nil {
			return Tail{}, err
		}
		n := last(names)
		switch {
		case !exists && l.Made:
			return Tail{}, zk.NoNode
		case !exists:
			err = l.create(ctx, sess)
		case n == 0, n == sealed, !l.hasChangeNode(names):
			err = l.Mend(ctx, sess)
			sealed = -1 // what has that number by now may be open
		default:
			var data []byte
			var stat zk.Stat
			data, stat, err = sess.Get(ctx, l.Segment(n))
			switch {
			case errors.Is(err, zk.NoNode): // removed since it was listed
				err = nil
			case err == nil && stat.Version == 0:
				l.learn(Tail{segment: n, count: Creations(stat), large: Large(data)})
				return l.known(), nil
			case err == nil:
				sealed = n // since it was listed, and the next was created with that: unless the next list shows none
			}
		}
		if err != nil {
			return Tail{}, err
		}
	}
}

// last returns the number of the last segment among names, 0 if there is none.
func last(names []string) int {
	if list := Numbers(names, ParseName); len(list) > 0 {
		return list[len(list)-1]
	}
	return 0
}

// hasChangeNode reports whether names, the list's children, include its change node; true if that is elsewhere.
func (l *List) hasChangeNode(names []string) bool {
	return path.Dir(l.Change) != l.Dir || slices.Contains(names, ChangeName)
}

// create creates the list with its first segment. If another client is quicker, that is success.
func (l *List) create(ctx context.Context, sess *zk.Session) error {
	ops := []zk.Op{l.store.CreateOp(l.Dir, Cursor{Segment: 1}.Encode())}
	if !l.hasChangeNode(nil) {
		ops = append(ops, l.store.CreateOp(l.Change, nil))
	}
	ops = append(ops, l.store.CreateOp(l.Segment(l.first()), []byte(smallSegment)))
	_, err := sess.Multi(ctx, ops...)
	return l.created(err)
}

// created returns the error of a transaction that creates nodes of the list, nil if another client was quicker.
func (l *List) created(err error) error {
	switch {
	case errors.Is(err, zk.NodeExists), errors.Is(err, zk.BadVersion):
		return nil
	case errors.Is(err, zk.NoNode):
		l.store.Missing()
	}
	return err
}

// first returns the number of a new list's first segment. A temporary list that was dropped may be created again, and a
// consumer that has read items of the former one may still be about to move them, by their paths. So no two share a
// path.
func (l *List) first() int {
	if l.Temporary {
		return 1 + rand.N(1<<60)
	}
	return 1
}

// Mend creates what another client has removed by hand of a list that exists: its change node, or the open segment
// behind all others. The dead letters, whose node the queue creates with its other nodes, get their first segment so.
//
// An open segment must be the last one, and must not stand where the list's cursor has been: consumers wait at an open
// segment, and puts would go to another, or into places that count as claimed. So the new one stands behind all
// segments and behind the cursor, and no other client may have moved either since Mend looked. A cursor tells of every
// move: what stood behind the last segment that Mend sees, and is gone again, was claimed before. Two clients that mend
// at the same time exclude each other, because each sets the node that has the cursor; so does a request that arrives
// late, when the cursor has moved on.
// The version of a list's node begins again when another client removes the list, so the last segment is checked, too.
func (l *List) Mend(ctx context.Context, sess *zk.Session) error {
	data, stat, err := sess.Get(ctx, l.Dir)
	if err != nil {
		return l.created(err)
	}
	names, exists, err := l.children(ctx, sess)
	if err != nil || !exists {
		return err
	}
	ops := []zk.Op{zk.SetOp(l.Dir, data, stat.Version)}
	if !l.hasChangeNode(names) {
		ops = append(ops, l.store.CreateOp(l.Change, nil))
	}
	n := last(names)
	open := false
	var version int32
	if n > 0 {
		_, stat, err := sess.Get(ctx, l.Segment(n))
		switch {
		case err == nil:
			open = stat.Version == 0
			version = stat.Version
		case errors.Is(err, zk.NoNode):
			return nil // it was sealed, and emptied: there is another by now
		default:
			return err
		}
	}
	if !open {
		at, _ := ParseCursor(data) // the dead letters have none, nor has a bucket that is being emptied
		next := max(n+1, at.Segment+1, l.first())
		if n > 0 {
			ops = append(ops, zk.CheckOp(l.Segment(n), version))
		}
		ops = append(ops, l.store.CreateOp(l.Segment(next), []byte(smallSegment)))
	}
	if len(ops) > 1 {
		_, err = sess.Multi(ctx, ops...)
	}
	return l.created(err)
}

// Drop removes an empty list: its last segment, and its node. The server refuses if a client has put something
// meanwhile.
func (l *List) Drop(ctx context.Context, sess *zk.Session, segment int) error {
	_, err := sess.Multi(ctx, zk.DeleteOp(l.Segment(segment), -1), zk.DeleteOp(l.Dir, -1))
	l.forget()
	return err
}
