package segment

// Appending.

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

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
	tails   map[*List]Tail
	touched map[*List]bool // lists that were appended to, whose end the transaction checks
}

// NewTxn returns a transaction that begins with guards.
func (s *Store) NewTxn(guards ...zk.Op) *Txn {
	t := &Txn{store: s, tails: make(map[*List]Tail), touched: make(map[*List]bool), size: 1024, Packet: s.Packet}
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
	for l := range t.touched {
		if l.Change != "" {
			ops = append(ops, zk.SetOp(l.Change, nil, -1))
		}
	}
	return ops
}

// Follow makes the transaction assume that the lists end where prev leaves them. It is for one that is sent behind prev
// before the answer to prev has come.
func (t *Txn) Follow(prev *Txn) { t.tails = prev.tails }

// Same returns the list of the transaction that stands for the same nodes as l, and l if there is none.
func (t *Txn) Same(l *List) *List {
	for x := range t.tails {
		if x.Dir == l.Dir {
			return x
		}
	}
	return l
}

// Find makes the end of a list known to the transaction.
func (t *Txn) Find(ctx context.Context, sess *zk.Session, l *List) error {
	if _, ok := t.tails[l]; ok {
		return nil
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
func (t *Txn) Assume(l *List, tail Tail) { t.tails[l] = tail }

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
	tail := t.tails[l]
	large := len(data) > SmallItem
	full := tail.count >= t.store.Items || large && !tail.large
	if !t.touched[l] {
		t.touched[l] = true
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
	t.tails[l] = tail
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
		for l, tail := range t.tails {
			if ok && path.Dir(dir) == l.Dir && n == tail.segment {
				l.learn(Tail{segment: n, count: seq + 1, large: tail.large})
			}
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
	for l := range t.tails {
		l.forget()
	}
	return true
}
