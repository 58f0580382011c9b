package queue

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

const (
	// maxSorted is how many delayed items are looked at together, and moved in the order of their times.
	maxSorted = 2000
	// fewDelayed is up to how many are moved without a word: of several consumers that do so at the same time the
	// servers refuse all but one.
	fewDelayed = 20
	// lookAgain is when what could not be read is looked at again.
	lookAgain = time.Minute
)

// promote moves what is due into the lines, and learns when the next item is due.
//
// Buckets are emptied in the order of their times, the widest of those that begin together first, together with those
// that lie within its time: so all that is due is known before any of it arrives. If that is too much at once, the
// wide bucket's items go to narrower ones, and what is due in the narrowest arrives in parts.
//
// One consumer does it at a time, so that many do not all read the same. It writes its name into the first bucket, and
// again with every transaction; the others look again when it has not done so for a while, and go on. That is for
// speed only: an item's node is deleted in the transaction that makes the new one, so that of two that move an item
// one is refused.
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

// emptyAll empties the buckets, which are in order, as far as their time has begun. It ends early, with again set,
// when they are to be listed anew.
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
	c       *segment.List
	segment int
	last    bool
	small   bool
	items   []int
	left    bool // something stays in it
}

// delayedItem is an item of a bucket, on its way.
type delayedItem struct {
	path string
	to   *segment.List
	due  int64
	rec  *segment.Record // what it becomes; nil for a large one, which is read again when it is moved
	dead bool            // it goes to the dead letters
}

// emptyGroup moves what it can out of the first bucket and those within its time, and removes those in which nothing
// is left. It reports false if another consumer is at it.
func (m *mover) emptyGroup(ctx context.Context, group []bucket) (bool, error) {
	first := m.d.q.bucket(group[0])
	taken, version, err := m.taken(ctx, first)
	if err != nil || taken {
		return false, err
	}
	shelves, whole, err := m.list(ctx, group)
	if err != nil {
		return false, err
	}
	n := 0
	for _, s := range shelves {
		n += len(s.items)
	}
	if m.sign != first.Dir {
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
	d, count := m.d, 0
	for _, b := range group {
		c := d.q.bucket(b)
		segments, err := c.Segments(ctx, d.sess)
		if err != nil {
			return nil, false, err
		}
		for i, n := range segments {
			if count > maxSorted {
				return shelves, false, nil
			}
			s := &shelf{b: b, c: c, segment: n, last: i == len(segments)-1}
			batch := d.sess.Batch()
			class, names := batch.Get(c.Segment(n)), batch.Children(c.Segment(n))
			batch.Send()
			data, err := class.Get(ctx)
			if err == nil {
				var list zk.Children
				list, err = names.Get(ctx)
				s.items = segment.Numbers(list.Names, segment.ParseItem)
			}
			if err != nil && !errors.Is(err, zk.NoNode) { // somebody is quicker
				return nil, false, err
			}
			s.small = !segment.Large(data.Data)
			count += len(s.items)
			shelves = append(shelves, s)
		}
	}
	return shelves, true, nil
}

// look reads a segment's items, and returns those that are to be moved: into their lines what is due, unless it is to
// be split among narrower buckets, to the dead letters what is no item, and where it belongs what lies in a bucket
// that is too wide for it.
func (m *mover) look(ctx context.Context, s *shelf, split bool) ([]*delayedItem, error) {
	q := m.d.q
	size := segment.ReadChunk
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
			x := &delayedItem{path: s.c.Segment(s.segment) + "/" + segment.ItemName(chunk[i]), due: node.Stat.Ctime}
			rec, err := segment.DecodeRecord(node.Data)
			stays := false
			switch {
			case err != nil:
				x.dead, x.to = true, q.deadLetters()
				stays = len(node.Data) > q.largest() // it is in nobody's way
			default:
				x.due = rec.DueAt(node.Stat.Ctime)
				switch to := bucketFor(x.due, x.due-now); {
				case x.due > now:
					x.to = q.bucket(to)
					if stays = to == s.b; stays {
						m.sooner(x.due)
					}
				case split:
					x.to = q.bucket(bucketOf(x.due, s.b.kind-1))
				default:
					x.to = q.line(rec.Priority)
				}
			}
			if stays {
				s.left = true
				continue
			}
			if len(node.Data) <= segment.SmallItem {
				x.rec = x.become(node, now)
			}
			m.again = m.again || x.to.Temporary
			moving = append(moving, x)
		}
	}
	return moving, nil
}

// become returns what the item is when it has moved.
func (x *delayedItem) become(node *zk.Data, now int64) *segment.Record {
	rec, err := segment.DecodeRecord(node.Data)
	if err != nil {
		return &segment.Record{
			ID: segment.NewID(), Enqueued: node.Stat.Ctime, Reason: segment.ErrRecord.Error(), Body: node.Data,
		}
	}
	rec.Delay, rec.Due = 0, 0
	if x.to.Temporary {
		rec.Due, rec.Delay = x.due, max(1, x.due-now)
	}
	if rec.Enqueued == 0 {
		rec.Enqueued = node.Stat.Ctime
	}
	return rec
}

// read reads items. What is not there any more is nil, and so is what cannot be read, because of its permissions or
// its size: that stays, and the others go on without it.
func (m *mover) read(ctx context.Context, s *shelf, items []int) ([]*zk.Data, error) {
	d := m.d
	nodes, err := d.q.store.Read(ctx, d.sess, s.c.Segment(s.segment), items, !s.small)
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
