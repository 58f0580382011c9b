package queue

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

const (
	// maxSorted is how many delayed items are looked at together, and moved in the order of their times.
	maxSorted = 2000
	// fewDelayed is up to how many are moved without a word: of several consumers that do so at the same time the servers refuse all but one.
	fewDelayed = 20
	// moverWait is for how long consumers leave a bucket to one that has said that it empties it, and has not moved anything since.
	moverWait = 2 * time.Second
	// lookAgain is when what could not be read is looked at again.
	lookAgain = time.Minute
	// minPacket is to what the size of a transaction falls that moves items, on connections that break.
	minPacket = 16 << 10
)

// promote moves what is due into the lines, and learns when the next item is due.
//
// Buckets are emptied in the order of their times, the widest of those that begin together first, together with those that lie within its time: so
// all that is due is known before any of it arrives. If that is too much at once, the wide bucket's items go to narrower ones, and what is due in
// the narrowest arrives in parts.
//
// One consumer does it at a time, so that many do not all read the same. It writes its name into the first bucket, and again with every
// transaction; the others look again when it has not done so for a while, and go on. That is for speed only: an item's node is
// deleted in the transaction that makes the new one, so that of two that move an item one is refused.
func (d *desk) promote(ctx context.Context) error {
	q := d.q
	m := &mover{d: d, passed: make(map[bucket]bool)}
	for {
		names, stat, err := d.sess.Children(ctx, q.path(dirDelayed))
		if err != nil {
			return err
		}
		var buckets []bucket
		for _, name := range names {
			if b, ok := parseBucket(name); ok && !m.passed[b] {
				buckets = append(buckets, b)
			}
		}
		if len(buckets) > 0 {
			if err := d.askTime(ctx); err != nil {
				return err
			}
		}
		q.mu.Lock()
		due := d.nextDue
		q.mu.Unlock()
		switch now := q.clock.now(); {
		case now < d.moveAfter:
			q.mu.Lock()
			d.nextDue = d.moveAfter
			q.mu.Unlock()
			return nil
		case !m.again && stat.Version == d.delays && (due == 0 || now < due):
			return nil // nothing was put since, and nothing is due
		}
		slices.SortFunc(buckets, bucket.compare)
		if err := m.emptyAll(ctx, buckets); err != nil {
			return err
		}
		if !m.again {
			q.mu.Lock()
			d.nextDue = m.next
			q.mu.Unlock()
			d.delays = stat.Version
			return nil
		}
	}
}

// mover is a consumer that moves delayed items.
type mover struct {
	d      *desk
	next   int64           // when the next of what stays is due, 0 if nothing is
	again  bool            // the buckets are others now
	passed map[bucket]bool // which were looked at, and keep something
	sign   string          // the bucket that says that we are at it; "" for none
}

// sooner books that something is due at the given time.
func (m *mover) sooner(at int64) {
	if at > 0 && (m.next == 0 || at < m.next) {
		m.next = at
	}
}

// emptyAll empties the buckets, which are in order, as far as their time has begun. It ends early, with again set, when they are to be listed anew.
func (m *mover) emptyAll(ctx context.Context, buckets []bucket) error {
	m.again = false
	for len(buckets) > 0 && !m.again {
		first := buckets[0]
		if now := m.d.q.clock.now(); first.start > now {
			m.sooner(first.start)
			return nil
		}
		n := 1
		for n < len(buckets) && buckets[n].start < first.end() && buckets[n].start <= m.d.q.clock.now() {
			n++
		}
		if mine, err := m.emptyGroup(ctx, buckets[:n]); err != nil || !mine {
			return err
		}
		buckets = buckets[n:]
	}
	return nil
}

// shelf is a bucket's segment.
type shelf struct {
	b       bucket
	c       *chain
	segment int
	last    bool
	small   bool
	items   []int
	left    bool // something stays in it
}

// delayedItem is an item of a bucket, on its way.
type delayedItem struct {
	path string
	to   *chain
	due  int64
	rec  *record // what it becomes; nil for a large one, which is read again when it is moved
	dead bool    // it goes to the dead letters
}

// emptyGroup moves what it can out of the first bucket and those within its time, and removes those in which nothing is left. It reports false
// if another consumer is at it.
func (m *mover) emptyGroup(ctx context.Context, group []bucket) (bool, error) {
	first := m.d.q.bucket(group[0])
	sign, version, err := m.busy(ctx, first)
	if err != nil || sign {
		return !sign, err
	}
	shelves, whole, err := m.list(ctx, group)
	if err != nil {
		return false, err
	}
	n := 0
	for _, s := range shelves {
		n += len(s.items)
	}
	if m.sign != first.dir {
		m.sign = ""
		if n > fewDelayed {
			if ok, err := m.announce(ctx, first, version); err != nil || !ok {
				return false, err
			}
		}
	}
	split := !whole && group[0].kind > 0 // what is due now arrives when what is in the others is known
	if !whole {
		shelves = slices.DeleteFunc(shelves, func(s *shelf) bool { return s.b != group[0] })
		group = group[:1]
	}
	var moving []*delayedItem
	for _, s := range shelves {
		some, err := m.look(ctx, s, split)
		if err != nil {
			return false, err
		}
		moving = append(moving, some...)
	}
	if err := m.moveAll(ctx, moving); err != nil {
		return false, err
	}
	if !whole {
		m.again = true
		if len(moving) == 0 {
			m.passed[group[0]] = true // nothing of it could be moved: the others go on without it
		}
	}
	return true, m.clear(ctx, group, shelves)
}

// list lists the items of buckets, up to about maxSorted: then it reports that those are not all.
func (m *mover) list(ctx context.Context, group []bucket) (shelves []*shelf, whole bool, err error) {
	d, n := m.d, 0
	for _, b := range group {
		c := d.q.bucket(b)
		segments, err := c.segments(ctx, d.sess)
		if err != nil {
			return nil, false, err
		}
		for i, segment := range segments {
			if n > maxSorted {
				return shelves, false, nil
			}
			s := &shelf{b: b, c: c, segment: segment, last: i == len(segments)-1}
			batch := d.sess.Batch()
			class, names := batch.Get(c.segment(segment)), batch.Children(c.segment(segment))
			batch.Send()
			data, err := class.Get(ctx)
			if err == nil {
				var list zk.Children
				list, err = names.Get(ctx)
				s.items = numbers(list.Names, parseItem)
			}
			if err != nil && !errors.Is(err, zk.NoNode) { // somebody is quicker
				return nil, false, err
			}
			s.small = string(data.Data) != largeSegment
			n += len(s.items)
			shelves = append(shelves, s)
		}
	}
	return shelves, true, nil
}

// look reads a segment's items, and returns those that are to be moved: into their lines what is due, unless it is to be split among narrower
// buckets, to the dead letters what is no item, and where it belongs what lies in a bucket that is too wide for it.
func (m *mover) look(ctx context.Context, s *shelf, split bool) ([]*delayedItem, error) {
	q := m.d.q
	size := readChunk
	if !s.small {
		size = maxLarge
	}
	var moving []*delayedItem
	for chunk := range slices.Chunk(s.items, size) {
		nodes, err := m.read(ctx, s, chunk)
		if err != nil {
			return nil, err
		}
		now := q.clock.now()
		for i, node := range nodes {
			if node == nil {
				continue
			}
			x := &delayedItem{path: s.c.segment(s.segment) + "/" + itemName(chunk[i]), due: node.Stat.Ctime}
			rec, err := decodeRecord(node.Data)
			stays := false
			switch {
			case err != nil:
				x.dead, x.to = true, q.graveyard()
				stays = len(node.Data) > q.largest() // it is in nobody's way
			default:
				x.due = rec.dueAt(node.Stat.Ctime)
				switch to := bucketFor(x.due, x.due-now); {
				case x.due > now:
					x.to = q.bucket(to)
					if stays = to == s.b; stays {
						m.sooner(x.due)
					}
				case split:
					x.to = q.bucket(bucketOf(x.due, s.b.kind-1))
				default:
					x.to = q.line(rec.priority)
				}
			}
			if stays {
				s.left = true
				continue
			}
			if len(node.Data) <= smallItem {
				x.rec = x.become(node, now)
			}
			m.again = m.again || q.isBucket(x.to)
			moving = append(moving, x)
		}
	}
	return moving, nil
}

// become returns what the item is when it has moved.
func (x *delayedItem) become(node *zk.Data, now int64) *record {
	rec, err := decodeRecord(node.Data)
	if err != nil {
		return &record{id: newID(), enqueued: node.Stat.Ctime, reason: errRecord.Error(), body: node.Data}
	}
	rec.delay, rec.due = 0, 0
	if x.to.q.isBucket(x.to) {
		rec.due, rec.delay = x.due, max(1, x.due-now)
	}
	if rec.enqueued == 0 {
		rec.enqueued = node.Stat.Ctime
	}
	return rec
}

// isBucket reports whether a chain is of delayed items.
func (q *Queue) isBucket(c *chain) bool { return c.bell == q.path(dirDelayed) }

// read reads items. What is not there any more is nil, and so is what cannot be read, because of its permissions or its size: that stays, and
// the others go on without it.
func (m *mover) read(ctx context.Context, s *shelf, items []int) ([]*zk.Data, error) {
	d := m.d
	nodes, err := d.q.readNodes(ctx, d.sess, s.c.segment(s.segment), items, s.small)
	switch {
	case err == nil:
		return nodes, nil
	case ctx.Err() != nil, errors.Is(err, zk.ErrConnectionLost):
		return nil, err
	case d.err() != nil:
		return nil, d.err()
	case len(items) == 1:
		s.left = true
		m.sooner(d.q.clock.now() + lookAgain.Milliseconds())
		return []*zk.Data{nil}, nil
	}
	half := len(items) / 2
	some, err := m.read(ctx, s, items[:half])
	if err != nil {
		return nil, err
	}
	others, err := m.read(ctx, s, items[half:])
	return slices.Concat(some, others), err
}

// moveAll moves items: those of each chain in the order of their times.
func (m *mover) moveAll(ctx context.Context, items []*delayedItem) error {
	slices.SortStableFunc(items, func(a, b *delayedItem) int {
		return cmp.Or(cmp.Compare(a.to.dir, b.to.dir), cmp.Compare(a.due, b.due))
	})
	for len(items) > 0 {
		// One chain a transaction: bells and ends of more would not fit into a packet that one large item fills.
		n := slices.IndexFunc(items, func(x *delayedItem) bool { return x.to.dir != items[0].to.dir })
		if n < 0 {
			n = len(items)
		}
		moved, err := m.move(ctx, items[:n])
		if err != nil {
			return err
		}
		items = items[moved:]
	}
	return nil
}

// move moves as many items as fit into one transaction to their chain, and returns how many. It returns errAgain if it is not known to have: then
// the items' nodes tell, when they are read again.
func (m *mover) move(ctx context.Context, items []*delayedItem) (int, error) {
	d, q := m.d, m.d.q
	to := items[0].to
	p := q.newPlan()
	p.packet = cmp.Or(d.packet, p.packet)
	if err := p.at(d.ctx, d.sess, to); err != nil {
		return 0, err
	}
	var guards []zk.Op
	if m.sign != "" {
		guards = append(guards, zk.SetData(m.sign, d.moverSign(), -1))
		p.size += opSize + len(m.sign)
	}
	signs := len(guards)
	for i, x := range items {
		if x.rec == nil {
			data, stat, err := d.sess.Get(ctx, x.path)
			if errors.Is(err, zk.NoNode) {
				return 0, errAgain
			}
			if err != nil {
				return 0, err
			}
			x.rec = x.become(&zk.Data{Data: data, Stat: stat}, q.clock.now())
		}
		data := x.rec.encode()
		if i > 0 && (i == readChunk || !p.fits(to, len(data)+opSize+len(x.path))) {
			break
		}
		guards = append(guards, zk.DeleteOp(x.path, -1))
		p.size += opSize + len(x.path)
		p.append(to, data)
	}
	p.guards = len(guards)
	p.ops = slices.Concat(guards, p.ops)
	p.ring()
	results, err := d.sess.Multi(d.ctx, p.ops...)
	d.moveBroke(err)
	failed, refused := errors.AsType[*zk.MultiError](err)
	switch {
	case err == nil:
		p.done(results)
		if signs > 0 {
			q.clock.saw(results[0].Stat.Mtime)
		}
		n := len(guards) - signs
		for _, x := range items[:n] {
			if hook := q.cfg.Hooks.Dead; hook != nil && x.dead {
				hook(d.ctx, x.rec.name(), x.rec.reason)
			}
		}
		return n, nil
	case p.stale(err), refused && failed.Index < p.guards && errors.Is(failed, zk.NoNode), errors.Is(err, zk.ErrConnectionLost):
		return 0, errAgain
	case d.err() != nil:
		return 0, d.err()
	default:
		return 0, err
	}
}

// moveBroke books whether the connection broke under a transaction that moves items. If it does so repeatedly, the servers may not accept requests of this size:
// the next are smaller, and what is ready does not wait for them.
func (d *desk) moveBroke(err error) {
	if err == nil || zk.OutcomeOf(err) != zk.Unknown {
		d.breaks, d.moveAfter = 0, 0
		return
	}
	const some = 3
	if d.breaks++; d.breaks < some {
		return
	}
	d.packet = max(min(minPacket, d.q.cfg.MaxPacket), cmp.Or(d.packet, d.q.cfg.MaxPacket)/2)
	pause := min(10*time.Second, 100*time.Millisecond<<min(d.breaks-some, 10))
	d.moveAfter = d.q.clock.now() + pause.Milliseconds()
}

// moverSign is what a bucket's node says while a consumer empties it.
func (d *desk) moverSign() []byte { return []byte("mover " + d.id) }

// busy reports whether another consumer is emptying a bucket. Otherwise it returns the version of the bucket's node.
func (m *mover) busy(ctx context.Context, c *chain) (bool, int32, error) {
	data, stat, err := m.d.sess.Get(ctx, c.dir)
	if errors.Is(err, zk.NoNode) {
		return false, 0, errAgain // it was emptied just now
	}
	if err != nil {
		return false, 0, err
	}
	age := m.d.q.clock.now() - stat.Mtime
	wait := moverWait.Milliseconds()
	// A time that lies far ahead is that of a server whose clock was ahead: it says nothing.
	if _, cursor := parseCursor(data); cursor || string(data) == string(m.d.moverSign()) || age >= wait || age <= -wait {
		return false, stat.Version, nil
	}
	m.sooner(stat.Mtime + wait)
	return true, 0, nil
}

// announce tells the others that we empty a bucket, unless another consumer has done so just now.
func (m *mover) announce(ctx context.Context, c *chain, version int32) (bool, error) {
	stat, err := m.d.sess.Set(ctx, c.dir, m.d.moverSign(), version)
	switch {
	case errors.Is(err, zk.BadVersion):
		m.sooner(m.d.q.clock.now() + moverWait.Milliseconds())
		return false, nil
	case errors.Is(err, zk.NoNode):
		return false, errAgain
	case err != nil:
		return false, err
	}
	m.d.q.clock.saw(stat.Mtime)
	m.sign = c.dir
	return true, nil
}

// clear removes the buckets in which nothing is left, and what is empty of the others. The first bucket goes last, because it says that we are at it.
func (m *mover) clear(ctx context.Context, group []bucket, shelves []*shelf) error {
	d := m.d
	for _, b := range slices.Backward(group) {
		kept, empty, last := false, true, 0
		for _, s := range shelves {
			if s.b != b {
				continue
			}
			empty = false
			switch {
			case s.left:
				kept = true
			case s.last:
				last = s.segment
			default:
				// Refused if something is in it that is no item: then so is the removal of the bucket.
				_ = d.sess.Delete(ctx, s.c.segment(s.segment), -1)
			}
		}
		if kept {
			m.passed[b] = true
		}
		if empty { // somebody has removed its segments
			_ = d.sess.Delete(ctx, d.q.bucket(b).dir, -1)
		}
		if kept || last == 0 {
			continue
		}
		err := d.q.bucket(b).drop(ctx, d.sess, last)
		switch {
		case err == nil, errors.Is(err, zk.NoNode):
		case errors.Is(err, zk.NotEmpty):
			m.passed[b] = true // something is in it: no item, which stays, or one that was put just now, which has rung the bell
		default:
			return err
		}
	}
	return nil
}
