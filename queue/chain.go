package queue

import (
	"context"
	"errors"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/seed-a3166700/turnstile/zk"
)

// smallItem is the size of item, in bytes of a node's data, up to which many are read in one reply. Larger ones live in segments that say so.
const smallItem = 4000

// A segment's data says how large its items may be.
const (
	smallSegment = "small"
	largeSegment = "large"
)

// chain is a list of segments, each a node whose children are items: a line of the ready items of one priority, a bucket of delayed
// ones, or the dead letters. Items are only ever appended to the last segment, which is open: its version is 0. Who finds it full seals it,
// by setting its data, and makes the next, in one transaction. Every append checks in its own transaction that the version is 0, so
// that nothing is ever added to a sealed segment, nor to one that was removed.
type chain struct {
	q    *Queue
	dir  string
	bell string // the node that an append rings

	mu   sync.Mutex // guards what follows
	tail tail
}

// tail is what is known of a chain's end. It may be out of date: then an append is refused, and looks again.
type tail struct {
	segment int // its number, from 1; 0 if nothing is known
	count   int // items that were ever added to it
	large   bool
}

func (q *Queue) chain(dir, bell string) *chain {
	c, ok := q.chains.Load(dir)
	if !ok {
		c, _ = q.chains.LoadOrStore(dir, &chain{q: q, dir: dir, bell: bell})
	}
	return c.(*chain)
}

// line returns the chain of the ready items of a priority.
func (q *Queue) line(priority int) *chain {
	dir := q.path(dirReady, lineName(priority))
	return q.chain(dir, dir+"/"+bellName)
}

// graveyard returns the chain of the dead letters.
func (q *Queue) graveyard() *chain { return q.chain(q.path(dirDead), "") }

func (c *chain) segment(n int) string { return c.dir + "/" + segmentName(n) }

func (c *chain) known() tail {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tail
}

// learn books what an answer has shown of the chain's end.
func (c *chain) learn(t tail) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.segment > c.tail.segment || t.segment == c.tail.segment && t.count > c.tail.count {
		c.tail = t
	}
}

// forget drops what is known, because the server says otherwise.
func (c *chain) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tail = tail{}
}

// segments lists the numbers of a chain's segments in order, nil if there is no such chain.
func (c *chain) segments(ctx context.Context, sess *zk.Session) ([]int, error) {
	names, _, err := c.children(ctx, sess)
	return numbers(names, parseSegment), err
}

// children lists the names of a chain's nodes, and reports whether there is such a chain.
func (c *chain) children(ctx context.Context, sess *zk.Session) ([]string, bool, error) {
	names, _, err := sess.Children(ctx, c.dir)
	if errors.Is(err, zk.NoNode) {
		return nil, false, nil
	}
	return names, err == nil, err
}

// find looks for the chain's end. It makes the chain if it is not there, and what somebody has removed of it.
func (c *chain) find(ctx context.Context, sess *zk.Session) (tail, error) {
	if t := c.known(); t.segment > 0 {
		return t, nil
	}
	for sealed := -1; ; {
		// A server that lags behind would show an end that has moved, again and again.
		if err := sess.Sync(ctx, c.dir); err != nil {
			return tail{}, err
		}
		names, there, err := c.children(ctx, sess)
		if err != nil {
			return tail{}, err
		}
		list := numbers(names, parseSegment)
		n := 0
		if len(list) > 0 {
			n = list[len(list)-1]
		}
		switch {
		case !there:
			err = c.make(ctx, sess)
		case n == 0, n == sealed, !c.hasBell(names):
			err = c.mend(ctx, sess)
			sealed = -1 // what has that number by now may be open
		default:
			var data []byte
			var stat zk.Stat
			data, stat, err = sess.Get(ctx, c.segment(n))
			switch {
			case errors.Is(err, zk.NoNode): // removed since we have listed
				err = nil
			case err == nil && stat.Version == 0:
				c.learn(tail{segment: n, count: creations(stat), large: string(data) == largeSegment})
				return c.known(), nil
			case err == nil:
				sealed = n // since we have listed, and the next was made with it: unless the next list shows none
			}
		}
		if err != nil {
			return tail{}, err
		}
	}
}

// hasBell reports whether the chain's bell is among its children, or is no child of it.
func (c *chain) hasBell(names []string) bool {
	return path.Dir(c.bell) != c.dir || slices.Contains(names, bellName)
}

// make makes the chain with its first segment. That somebody else is quicker is fine.
func (c *chain) make(ctx context.Context, sess *zk.Session) error {
	ops := []zk.Op{c.q.create(c.dir, cursor{segment: 1}.encode(), zk.Persistent)}
	if !c.hasBell(nil) {
		ops = append(ops, c.q.create(c.bell, nil, zk.Persistent))
	}
	ops = append(ops, c.q.create(c.segment(c.first()), []byte(smallSegment), zk.Persistent))
	_, err := sess.Multi(ctx, ops...)
	return c.made(err)
}

// made returns the error of a transaction that makes nodes of the chain, nil if somebody else was quicker.
func (c *chain) made(err error) error {
	switch {
	case errors.Is(err, zk.NodeExists), errors.Is(err, zk.BadVersion):
		return nil
	case errors.Is(err, zk.NoNode):
		c.q.forget()
	}
	return err
}

// first returns the number of a new chain's first segment. A bucket that was dropped may be made again, and a consumer
// that has read items of the former one may still be about to move them, by their paths. So no two share a path.
func (c *chain) first() int {
	if c.q.isBucket(c) {
		return 1 + rand.N(1<<60)
	}
	return 1
}

// mend makes what somebody has removed by hand of a chain that is there: its bell, or the open segment behind all
// others. The dead letters, whose chain the queue makes with its other nodes, get their first segment so.
//
// An open segment must be the last one, and must not stand where the line's cursor has been: those who claim wait at
// an open one, and puts would go to another, or into places that count as claimed. So the new one stands behind all
// segments and behind the cursor, and nobody else may have moved either since we have looked. A cursor tells of every
// move: what stood behind the last segment that we see, and is gone again, was claimed before. Two who mend at the
// same time exclude each other, because each sets the node that has the cursor; so does one whose request arrives
// late, when the cursor has moved on.
// The version of a line's node begins again when somebody removes the line, so the last segment is checked, too.
func (c *chain) mend(ctx context.Context, sess *zk.Session) error {
	data, stat, err := sess.Get(ctx, c.dir)
	if err != nil {
		return c.made(err)
	}
	names, there, err := c.children(ctx, sess)
	if err != nil || !there {
		return err
	}
	ops := []zk.Op{zk.SetOp(c.dir, data, stat.Version)}
	if !c.hasBell(names) {
		ops = append(ops, c.q.create(c.bell, nil, zk.Persistent))
	}
	n := 0
	if list := numbers(names, parseSegment); len(list) > 0 {
		n = list[len(list)-1]
	}
	open := false
	var version int32
	if n > 0 {
		_, last, err := sess.Get(ctx, c.segment(n))
		switch {
		case err == nil:
			open = last.Version == 0
			version = last.Version
		case errors.Is(err, zk.NoNode):
			return nil // it was sealed, and emptied: there is another by now
		default:
			return err
		}
	}
	if !open {
		at, _ := parseCursor(data) // the dead letters have none, nor has a bucket that is emptied
		next := max(n+1, at.segment+1, c.first())
		if n > 0 {
			ops = append(ops, zk.CheckOp(c.segment(n), version))
		}
		ops = append(ops, c.q.create(c.segment(next), []byte(smallSegment), zk.Persistent))
	}
	if len(ops) > 1 {
		_, err = sess.Multi(ctx, ops...)
	}
	return c.made(err)
}

// drop removes a chain that is empty: its last segment, and the chain. It is refused if somebody has put something meanwhile.
func (c *chain) drop(ctx context.Context, sess *zk.Session, segment int) error {
	_, err := sess.Multi(ctx, zk.DeleteOp(c.segment(segment), -1), zk.DeleteOp(c.dir, -1))
	c.forget()
	return err
}

// plan collects appends to chains, as operations of one transaction. Zero or more operations of the caller stand before them.
type plan struct {
	q      *Queue
	ops    []zk.Op
	size   int // of the request, in bytes, at most
	packet int // how large it may be
	tails  map[*chain]tail
	first  map[*chain]bool // its end was checked
	guards int             // operations of the caller
	items  int
}

// opSize is what an operation takes at most beside its path and its data: head, lengths, flags, an open ACL, and some room for a prefix of
// the client's paths.
const opSize = 128

func (q *Queue) newPlan(guards ...zk.Op) *plan {
	p := &plan{
		q: q, tails: make(map[*chain]tail), first: make(map[*chain]bool),
		guards: len(guards), size: 1024, packet: q.cfg.MaxPacket,
	}
	for _, op := range guards {
		p.add(op, len(op.Path()))
	}
	return p
}

// aclSize is what the queue's access list takes in each creation.
func (q *Queue) aclSize() int {
	n := 0
	for _, a := range q.cfg.ACL {
		n += 12 + len(a.ID.Scheme) + len(a.ID.ID)
	}
	return n
}

func (p *plan) add(op zk.Op, size int) {
	p.ops = append(p.ops, op)
	p.size += opSize + size
}

// fits reports whether one more item of the given size fits into the packet: with the seal of a segment, the next, and the bell.
func (p *plan) fits(c *chain, size int) bool {
	const more = 4
	return p.size+size+more*(opSize+len(c.dir)+p.q.aclSize()+32) <= p.packet
}

// same returns the chain of the plan that stands for the same nodes as c, c if there is none.
func (p *plan) same(c *chain) *chain {
	for x := range p.tails {
		if x.dir == c.dir {
			return x
		}
	}
	return c
}

// append adds an item to the end of a chain. It needs p.at(c) before.
func (p *plan) append(c *chain, data []byte) {
	t := p.tails[c]
	large := len(data) > smallItem
	if !p.first[c] {
		p.first[c] = true
		p.size += opSize + len(c.bell)                        // for the bell
		if t.count < p.q.cfg.segment && (t.large || !large) { // else the seal checks the same
			p.add(zk.CheckOp(c.segment(t.segment), 0), len(c.dir)+12)
		}
	}
	if t.count >= p.q.cfg.segment || large && !t.large {
		p.add(zk.SetOp(c.segment(t.segment), t.data(), 0), len(c.dir)+24)
		t = tail{segment: t.segment + 1, large: large}
		p.add(p.q.create(c.segment(t.segment), t.data(), zk.Persistent), len(c.dir)+24+p.q.aclSize())
	}
	t.count++
	p.items++
	p.tails[c] = t
	p.add(p.q.create(c.segment(t.segment)+"/", data, zk.PersistentSequential), len(c.dir)+12+len(data)+p.q.aclSize())
}

func (t tail) data() []byte {
	if t.large {
		return []byte(largeSegment)
	}
	return []byte(smallSegment)
}

// at makes the end of a chain known to the plan.
func (p *plan) at(ctx context.Context, sess *zk.Session, c *chain) error {
	if _, ok := p.tails[c]; ok {
		return nil
	}
	t, err := c.find(ctx, sess)
	if err == nil {
		p.tails[c] = t
	}
	return err
}

// ring makes the transaction ring the bells of the chains that it has appended to.
func (p *plan) ring() {
	for c := range p.first {
		if c.bell != "" {
			p.ops = append(p.ops, zk.SetOp(c.bell, nil, -1))
		}
	}
}

// done learns from the transaction's success where the chains end now.
func (p *plan) done(results []zk.Result) {
	for i, r := range results {
		dir, name := path.Split(r.Path)
		seq, ok := parseItem(name)
		if i < p.guards || !ok {
			continue
		}
		dir = strings.TrimSuffix(dir, "/")
		n, ok := parseSegment(path.Base(dir))
		for c, t := range p.tails {
			if ok && path.Dir(dir) == c.dir && n == t.segment {
				c.learn(tail{segment: n, count: seq + 1, large: t.large})
			}
		}
	}
}

// stale reports whether the transaction was refused because the chains do not end any more where the plan thought; then they are looked for
// again, and the caller makes a new plan.
func (p *plan) stale(err error) bool {
	failed, ok := errors.AsType[*zk.MultiError](err)
	if !ok || failed.Index < p.guards {
		return false
	}
	switch failed.Err {
	case zk.BadVersion, zk.NodeExists:
	case zk.NoNode:
		p.q.forget()
	default:
		return false
	}
	for c := range p.tails {
		c.forget()
	}
	return true
}

// cursor is the data of a line: everything before it was claimed.
type cursor struct {
	segment int
	item    int // its number in the segment
}

func (c cursor) encode() []byte {
	return []byte(strconv.Itoa(c.segment) + " " + strconv.Itoa(c.item))
}

func parseCursor(data []byte) (cursor, bool) {
	a, b, _ := strings.Cut(string(data), " ")
	segment, err1 := strconv.Atoi(a)
	item, err2 := strconv.Atoi(b)
	return cursor{segment, item}, err1 == nil && err2 == nil && segment > 0 && item >= 0
}
