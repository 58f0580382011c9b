package segment

// Appending.

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// OpSize is the most that an operation takes in a request beside its path and its data: head, lengths, flags, an open
// access list, and some room for a prefix of the client's paths.
const OpSize = 128

// Txn collects appends to lists as operations of one transaction. The caller's own operations, its guards, come first.
type Txn struct {
	Packet int // how large the request may be, in bytes

	store   *Store
	guards  []zk.Op
	appends []zk.Op
	size    int // of the request, in bytes, at most
	items   int
	ends    map[string]end   // of lists, by their paths
	absent  map[string]bool  // paths of lists that Txn.Make is to make; nil if Look has found none
	touched map[string]*List // that were appended to, by their paths: the transaction checks their ends
}

// end is where a list ends.
type end struct {
	list *List
	tail Tail
}

// NewTxn returns a transaction that begins with guards.
func (s *Store) NewTxn(guards ...zk.Op) *Txn {
	t := &Txn{
		store: s, size: 1024, Packet: s.Packet, ends: make(map[string]end), touched: make(map[string]*List),
	}
	for _, op := range guards {
		t.Guard(op)
	}
	return t
}

// Guard adds an operation of the caller's, behind those that it has added before.
func (t *Txn) Guard(op zk.Op) {
	t.guards = append(t.guards, op)
	t.size += OpSize + len(op.Path()) + len(op.Data())
}

// Guards returns how many operations of the caller's there are.
func (t *Txn) Guards() int { return len(t.guards) }

// Items returns how many items the transaction appends.
func (t *Txn) Items() int { return t.items }

// Size returns about how large the request is, in bytes.
func (t *Txn) Size() int { return t.size }

// Ops returns the operations to send: the guards, the appends, and for each list a change of its change node.
func (t *Txn) Ops() []zk.Op {
	ops := slices.Concat(t.guards, t.appends)
	for _, l := range t.touched {
		if l.Change != "" {
			ops = append(ops, zk.SetOp(l.Change, nil, -1))
		}
	}
	return ops
}

// Follow makes the transaction assume that the lists end where prev leaves them. It is for one that is sent behind prev
// before the answer to prev has come.
func (t *Txn) Follow(prev *Txn) { t.ends, t.absent = prev.ends, prev.absent }

// Look makes the ends of lists known to the transaction as far as a few requests for all of them tell. It saves Find
// its requests for each of them.
func (t *Txn) Look(ctx context.Context, sess *zk.Session, lists []*List) error {
	unknown := make(map[string]*List)
	var dirs []string
	for _, l := range lists {
		if _, ok := t.ends[l.Dir]; !ok && !t.absent[l.Dir] && unknown[l.Dir] == nil && l.known().segment == 0 {
			unknown[l.Dir] = l
			dirs = append(dirs, l.Dir)
		}
	}
	if len(dirs) < 2 {
		return nil
	}
	// A server that lags behind would show ends that have moved, again and again.
	if err := sess.Sync(ctx, dirs[0]); err != nil {
		return err
	}
	type open struct {
		list    *List
		segment int
	}
	segments := make(map[string]open)
	var paths []string
	for dir, list := range attempt.Each(sess, dirs, (*zk.Batch).Children) {
		l := unknown[dir]
		c, err := list.Get(ctx)
		switch n := last(c.Names); {
		case errors.Is(err, zk.NoNode):
			if l.Made {
				if t.absent == nil {
					t.absent = make(map[string]bool)
				}
				t.absent[dir] = true
			}
		case err != nil:
			return err
		case n > 0 && l.hasChangeNode(c.Names):
			paths = append(paths, l.Segment(n))
			segments[l.Segment(n)] = open{l, n}
		}
	}
	for path, node := range attempt.Each(sess, paths, (*zk.Batch).Get) {
		s := segments[path]
		d, err := node.Get(ctx)
		switch {
		case errors.Is(err, zk.NoNode): // Find looks again
		case err != nil:
			return err
		case d.Stat.Version == 0:
			s.list.learn(Tail{segment: s.segment, count: Creations(d.Stat), large: Large(d.Data)})
			t.Assume(s.list, s.list.known())
		}
	}
	return nil
}

// Find makes the end of a list known to the transaction. It returns zk.NoNode if Make is to make the list.
func (t *Txn) Find(ctx context.Context, sess *zk.Session, l *List) error {
	if _, ok := t.ends[l.Dir]; ok {
		return nil
	}
	if t.absent[l.Dir] {
		return zk.NoNode
	}
	tail, err := l.Find(ctx, sess)
	if err == nil {
		t.Assume(l, tail)
	}
	return err
}

// Make adds the creation of a list to the guards, with an empty first segment.
func (t *Txn) Make(l *List) {
	tail := Tail{segment: l.first()}
	t.Guard(t.store.CreateOp(l.Dir, Cursor{Segment: 1}.Encode()))
	t.Guard(t.store.CreateOp(l.Segment(tail.segment), tail.data()))
	t.size += 2 * t.store.ACLSize()
	t.Assume(l, tail)
}

// Assume makes the transaction assume that a list ends at tail.
func (t *Txn) Assume(l *List, tail Tail) { t.ends[l.Dir] = end{l, tail} }

// Fits reports whether one more item of the given size fits into the packet: with the seal of a segment, the next
// segment, and the change of the change node.
func (t *Txn) Fits(l *List, size int) bool {
	const more = 4
	return t.size+size+more*(OpSize+len(l.Dir)+t.store.ACLSize()+32) <= t.Packet
}

func (t *Txn) add(op zk.Op, size int) {
	t.appends = append(t.appends, op)
	t.size += OpSize + size
}

// Append adds an item to the end of a list, which Find or Assume has made known.
func (t *Txn) Append(l *List, data []byte) {
	e := t.ends[l.Dir]
	tail := e.tail
	large := len(data) > SmallItem
	full := tail.count >= t.store.Items || large && !tail.large
	if t.touched[l.Dir] == nil {
		t.touched[l.Dir] = e.list
		t.size += OpSize + len(l.Change)
		if !full { // else the seal checks the same
			t.add(zk.CheckOp(l.Segment(tail.segment), 0), len(l.Dir)+12)
		}
	}
	if full {
		t.add(zk.SetOp(l.Segment(tail.segment), tail.data(), 0), len(l.Dir)+24)
		tail = Tail{segment: tail.segment + 1, large: large}
		t.add(t.store.CreateOp(l.Segment(tail.segment), tail.data()), len(l.Dir)+24+t.store.ACLSize())
	}
	tail.count++
	t.items++
	t.ends[l.Dir] = end{e.list, tail}
	t.add(zk.CreateNodeOp(zk.Node{
		Path: l.Segment(tail.segment) + "/", Data: data, Mode: zk.PersistentSequential, ACL: t.store.ACL,
	}), len(l.Dir)+12+len(data)+t.store.ACLSize())
}

// Done learns from the transaction's results where the lists end now.
func (t *Txn) Done(results []zk.Result) {
	for i, r := range results {
		dir, name := path.Split(r.Path)
		seq, ok := ParseItem(name)
		if i < len(t.guards) || !ok {
			continue
		}
		dir = strings.TrimSuffix(dir, "/")
		n, ok := ParseName(path.Base(dir))
		if e, known := t.ends[path.Dir(dir)]; ok && known && n == e.tail.segment {
			e.list.learn(Tail{segment: n, count: seq + 1, large: e.tail.large})
		}
	}
}

// Stale reports whether err says that the server refused the transaction because the lists no longer end where it
// assumed. Then it forgets these ends, and the caller makes a new transaction.
func (t *Txn) Stale(err error) bool {
	failed, ok := errors.AsType[*zk.MultiError](err)
	if !ok || failed.Index < len(t.guards) {
		return false
	}
	switch failed.Err {
	case zk.BadVersion, zk.NodeExists:
	case zk.NoNode:
		t.store.Missing()
	default:
		return false
	}
	for _, e := range t.ends {
		e.list.forget()
	}
	return true
}
