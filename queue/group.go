package queue

// Groups: items of one key, one at a time and in order.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/queue/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// A group is busy while one of its items is ready, delayed or claimed: its head. Then the group has a list, in which
// the others wait. A put of an item whose group has no list creates the list, empty, in the transaction that makes the
// item ready; otherwise it appends the item to the list. The transaction that finishes the head for good (done, dead,
// or removed) moves the first item of the list to where ready items are, or, if none waits, deletes the list: the
// server refuses that if an item has been put meanwhile. So there is always exactly one head, or neither head nor list.
//
// The list's first segment has a random number: a list that comes again has no path of the former one.

// maxGroup is the longest name of a group, in bytes.
const maxGroup = 255

// groupPart returns the part of the directory of groups that a group's list is in, and the name of the list.
func groupPart(group string) (part, name string) {
	sum := sha256.Sum256([]byte(group))
	return hex.EncodeToString(sum[:1]), hex.EncodeToString(sum[1:17])
}

// group returns the list of the items that wait for the head of a group.
func (y *layout) group(group string) *segment.List {
	y.dropLists()
	part, name := groupPart(group)
	return y.store.MadeList(y.path(dirGroups, part, name))
}

// place makes a transaction ready to append an item, and returns the list to append it to.
func (b *base) place(ctx context.Context, sess *zk.Session, p *segment.Txn, r *segment.Record) (*segment.List, error) {
	if r.Group == "" {
		c := b.target(r)
		return c, p.Find(ctx, sess, c)
	}
	g := b.layout.group(r.Group)
	err := p.Find(ctx, sess, g)
	if err == nil {
		return g, nil
	}
	if !errors.Is(err, zk.NoNode) {
		return nil, err
	}
	if err := b.makeParts(ctx, sess, r.Group); err != nil {
		return nil, err
	}
	ready := b.layout.readyList(r.Priority)
	if err := p.Find(ctx, sess, ready); err != nil {
		return nil, err
	}
	p.Make(g)
	return ready, nil
}

// lookAhead makes a transaction, and those that follow it, ready for items of groups, with a few requests for all. It
// returns how many of the items it has looked at. What it has seen may have changed when an item is put: then the
// server refuses the transaction.
func (b *base) lookAhead(ctx context.Context, sess *zk.Session, p *segment.Txn, items []encodedItem) (int, error) {
	items = items[:min(len(items), maxLookAhead)]
	var groups []string
	var lists []*segment.List
	for i := range items {
		if group := items[i].rec.Group; group != "" {
			groups = append(groups, group)
			lists = append(lists, b.layout.group(group))
		}
	}
	if len(groups) == 0 {
		return len(items), nil
	}
	if err := p.Look(ctx, sess, lists); err != nil {
		return 0, err
	}
	return len(items), b.makeParts(ctx, sess, groups...)
}

// maxLookAhead is how many items a put looks at ahead: about as many as fit into a transaction.
const maxLookAhead = 1000

// groupChanged reports whether a transaction was refused because a group has become busy since place has looked, or the
// part of the directory that it is in was removed: then the caller makes a new one.
func (b *base) groupChanged(failed *zk.MultiError, p *segment.Txn) bool {
	if failed.Index >= p.Guards() {
		return false
	}
	if errors.Is(failed, zk.NoNode) {
		b.layout.parts.Clear()
		return true
	}
	return errors.Is(failed, zk.NodeExists)
}

// groupSize is how many bytes a request has more, at most, for an item with a group.
func (b *base) groupSize() int {
	const name = 64 // of the list, below the directory of groups, and of its segment
	return 3 * (segment.OpSize + len(b.layout.root) + name + b.layout.store.ACLSize())
}

// makeParts creates the parts of the directory of groups that some groups are in. It asks for each part once: if one is
// gone since, the server refuses the creation of a list in it.
func (b *base) makeParts(ctx context.Context, sess *zk.Session, groups ...string) error {
	var dirs []string
	for _, group := range groups {
		part, _ := groupPart(group)
		dir := b.layout.path(dirGroups, part)
		if _, ok := b.layout.parts.Load(dir); !ok && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	var missing []string
	for dir, look := range attempt.Each(sess, dirs, (*zk.Batch).Exists) {
		e, err := look.Get(ctx)
		if err != nil {
			return err
		}
		if !e.Exists {
			missing = append(missing, dir)
		}
	}
	create := func(batch *zk.Batch, dir string) *zk.Future[zk.Created] {
		return batch.CreateNode(b.layout.node(dir, nil, zk.Persistent))
	}
	for _, made := range attempt.Each(sess, missing, create) {
		if _, err := made.Get(ctx); err != nil && !errors.Is(err, zk.NodeExists) {
			return err
		}
	}
	for _, dir := range dirs {
		b.layout.parts.Store(dir, true)
	}
	return nil
}

// succession is what the transaction that finishes the head of a group does to the group.
type succession struct {
	ops     []zk.Op
	foreign int           // how many of the ops, from the front, delete nodes of other programs
	ready   []waitingItem // what becomes ready
}

// waitingItem is an item that waits in a group, and where it goes.
type waitingItem struct {
	to   *segment.List
	data []byte
}

// succeed returns what is to be done to a group whose head is finished for good. The server refuses it if the group
// changes meanwhile. What another program has put into the group's nodes goes with them: a list that stayed would keep
// the next items of the group waiting for a head that is gone.
func (b *base) succeed(ctx context.Context, sess *zk.Session, group string) (s succession, err error) {
	g := b.layout.group(group)
	if err := sess.Sync(ctx, g.Dir); err != nil { // a server that lags behind would show the same again and again
		return s, err
	}
	segments, others, err := sorted(ctx, sess, g.Dir, segment.ParseName)
	if err != nil || len(segments) == 0 {
		return s, err // another client has removed it: there is nothing to do
	}
	var foreign []zk.Op
	defer func() { s.ops, s.foreign = slices.Concat(foreign, s.ops), len(foreign) }()
	for _, n := range segments {
		items, others, err := sorted(ctx, sess, g.Segment(n), segment.ParseItem)
		if err != nil {
			return s, err
		}
		for _, seq := range items {
			data, stat, err := sess.Get(ctx, g.Item(n, seq))
			if errors.Is(err, zk.NoNode) {
				return s, errAgain // the group has changed since it was listed
			}
			if err != nil {
				return s, err
			}
			s.ops = append(s.ops, zk.DeleteOp(g.Item(n, seq), -1))
			rec, err := segment.DecodeRecord(data)
			if err != nil {
				// Not an item: a consumer that finds it in the ready list moves it to the dead letters.
				s.ready = append(s.ready, waitingItem{b.layout.readyList(0), data})
				continue
			}
			if rec.Enqueued == 0 {
				rec.Enqueued = stat.Ctime
			}
			s.ready = append(s.ready, waitingItem{b.layout.readyList(rec.Priority), rec.Encode()})
			return s, nil
		}
		foreign = append(foreign, others...)
		s.ops = append(s.ops, zk.DeleteOp(g.Segment(n), -1)) // refused if something has been put, or it is gone
	}
	foreign = append(foreign, others...)
	s.ops = append(s.ops, zk.DeleteOp(g.Dir, -1))
	return s, nil
}

// sorted returns the numbers that parse finds in the names of a node's children, in order, and the deletions of the
// other children. There are none if the node does not exist.
func sorted(
	ctx context.Context, sess *zk.Session, dir string, parse func(string) (int, bool),
) (numbers []int, others []zk.Op, err error) {
	names, _, err := sess.Children(ctx, dir)
	if errors.Is(err, zk.NoNode) {
		return nil, nil, nil
	}
	for _, name := range names {
		if _, ok := parse(name); !ok {
			others = append(others, zk.DeleteOp(dir+"/"+name, -1))
		}
	}
	return segment.Numbers(names, parse), others, err
}

// changed reports whether a transaction was refused, with the error failed, because of these operations: then the group
// has changed, and the caller makes a new one. They begin at an index.
func (s *succession) changed(failed *zk.MultiError, from int) bool {
	i := failed.Index - from
	return i >= 0 && i < len(s.ops) &&
		(errors.Is(failed, zk.NoNode) || i >= s.foreign && errors.Is(failed, zk.NotEmpty))
}

// append adds what becomes ready to a transaction.
func (s *succession) append(ctx context.Context, sess *zk.Session, p *segment.Txn) error {
	for _, x := range s.ready {
		if err := p.Find(ctx, sess, x.to); err != nil {
			return err
		}
		p.Append(x.to, x.data)
	}
	return nil
}

// eachGroup calls f with the list of every group that is busy.
func (r reader) eachGroup(ctx context.Context, f func(*segment.List) error) error {
	list := func(dir string) (names []string, err error) {
		err = r.do(ctx, func(sess *zk.Session) error {
			names, _, err = sess.Children(ctx, dir)
			if errors.Is(err, zk.NoNode) {
				return nil // it has been emptied since it was listed
			}
			return err
		})
		return names, err
	}
	parts, err := list(r.layout.path(dirGroups))
	if err != nil {
		return err
	}
	for _, part := range parts {
		groups, err := list(r.layout.path(dirGroups, part))
		if err != nil {
			return err
		}
		for _, name := range groups {
			if err := f(&segment.List{Dir: r.layout.path(dirGroups, part, name)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// eachWaiting calls f with every item that waits for the head of its group, group by group, in order.
func (r reader) eachWaiting(ctx context.Context, f func(located) bool) error {
	return r.eachGroup(ctx, func(g *segment.List) error {
		return r.eachStored(ctx, g, func(x *storedItem) bool {
			return x.corruptRecord() ||
				f(located{Peeked: x.peeked(Waiting, x.rec.Priority), path: x.path, key: x.rec.Key, version: x.version})
		})
	})
}

// waitingAtMost returns a number that countWaiting does not exceed, with one request: all nodes of groups, of which
// each that is busy has two beside its items. It returns zk.Unimplemented if the server is older than 3.6.
func (r reader) waitingAtMost(ctx context.Context, sess *zk.Session) (int, error) {
	return sess.DescendantCount(ctx, r.layout.path(dirGroups))
}

// countWaiting counts the items that wait for the heads of their groups. It asks for many groups at a time: each that
// is busy has a list, also if nothing waits in it.
func (r reader) countWaiting(ctx context.Context, sess *zk.Session) (total int, err error) {
	paths := []string{r.layout.path(dirGroups)}
	for range 3 { // the parts, the groups, and their segments
		if paths, err = childrenOf(ctx, sess, paths); err != nil {
			return 0, err
		}
	}
	for _, look := range attempt.Each(sess, paths, (*zk.Batch).Exists) {
		e, err := look.Get(ctx)
		if err != nil {
			return 0, err
		}
		total += int(e.Stat.NumChildren)
	}
	return total, nil
}

// childrenOf returns the paths of the children of those nodes that exist.
func childrenOf(ctx context.Context, sess *zk.Session, paths []string) (children []string, err error) {
	for path, list := range attempt.Each(sess, paths, (*zk.Batch).Children) {
		c, err := list.Get(ctx)
		if err != nil && !errors.Is(err, zk.NoNode) {
			return nil, err
		}
		for _, name := range c.Names {
			children = append(children, path+"/"+name)
		}
	}
	return children, nil
}
