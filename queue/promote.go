package queue

// Moving delayed items when they are due.

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/queue/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

const (
	// maxSorted is how many delayed items are looked at together, and moved in the order of their times.
	maxSorted = 2000
	// fewDelayed is up to how many items are moved without an announcement: of several consumers that do so at the
	// same time the servers refuse all but one.
	fewDelayed = 20
	// rereadAfter is after how long items that could not be read are read again.
	rereadAfter = time.Minute
)

// promote moves what is due into the ready lists, and learns when the next item is due.
//
// It empties buckets in the order of their times, the widest of those that begin together first, together with those
// that lie within its time: so it knows all that is due before any of it arrives. If that is too much at once, the
// wide bucket's items go to narrower ones, and what is due in the narrowest arrives in parts.
//
// One consumer does it at a time, so that many do not all read the same. It writes its name into the first bucket,
// and again with every transaction; if it has not done so for a while, the others look again and go on. That is for
// speed only: the transaction that creates an item's new node deletes the old one, so if two consumers move an item
// the servers refuse one.
func (f *fetcher) promote(ctx context.Context) error {
	q := f.co.q
	m := &mover{co: f.co, f: f, passed: make(map[bucket]bool)}
	for {
		names, stat, err := f.co.sess.Children(ctx, q.layout.path(dirDelayed))
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
			if err := f.co.askTime(ctx); err != nil {
				return err
			}
		}
		due := f.co.claims.NextDue()
		switch now := q.clock.now(); {
		case now < f.moveAfter:
			f.co.claims.SetNextDue(f.moveAfter)
			return nil
		case !m.again && stat.Version == f.delays && (due == 0 || now < due):
			return nil // nothing was put since then, and nothing is due
		}
		slices.SortFunc(buckets, bucket.compare)
		if err := m.emptyAll(ctx, buckets); err != nil {
			return err
		}
		if !m.again {
			f.co.claims.SetNextDue(m.next)
			f.delays = stat.Version
			return nil
		}
	}
}

// mover is a consumer that moves delayed items.
type mover struct {
	f      *fetcher
	co     *claimant
	next   int64           // when the next of the items that stay is due, 0 if none is
	again  bool            // the buckets have changed
	passed map[bucket]bool // buckets that were looked at, and keep something
	marker string          // the bucket that names this consumer as the one that empties it; "" for none
}

// sooner records that something is due at the given time.
func (m *mover) sooner(at int64) {
	at = min(at, m.co.q.clock.now()+maxDelay.Milliseconds()) // another program's node may be due at any time
	if at > 0 && (m.next == 0 || at < m.next) {
		m.next = at
	}
}

// emptyAll empties the buckets, which are in order, as far as their time has begun. It ends early, with again set, if
// they are to be listed anew.
func (m *mover) emptyAll(ctx context.Context, buckets []bucket) error {
	m.again = false
	for len(buckets) > 0 && !m.again {
		first := buckets[0]
		if now := m.co.q.clock.now(); first.start > now {
			m.sooner(first.start)
			return nil
		}
		n := 1
		for n < len(buckets) && buckets[n].start < first.end() && buckets[n].start <= m.co.q.clock.now() {
			n++
		}
		if mine, err := m.emptyGroup(ctx, buckets[:n]); err != nil || !mine {
			return err
		}
		buckets = buckets[n:]
	}
	return nil
}

// bucketSegment is a segment of a bucket.
type bucketSegment struct {
	b       bucket
	c       *segment.List
	segment int
	last    bool
	small   bool
	items   []int
	left    bool // an item stays in it
}

// delayedItem is an item of a bucket that is to be moved.
type delayedItem struct {
	path string
	to   *segment.List
	due  int64
	rec  *segment.Record // what it becomes; nil for a large one, which is read again when it is moved
	dead bool            // it goes to the dead letters
}

// emptyGroup moves what it can out of the first bucket and those within its time, and removes the buckets that are
// empty then. It returns false if another consumer is emptying them.
func (m *mover) emptyGroup(ctx context.Context, group []bucket) (bool, error) {
	first := m.co.q.layout.bucket(group[0])
	taken, version, err := m.taken(ctx, first)
	if err != nil || taken {
		return false, err
	}
	segments, whole, err := m.list(ctx, group)
	if err != nil {
		return false, err
	}
	n := 0
	for _, s := range segments {
		n += len(s.items)
	}
	if m.marker != first.Dir {
		m.marker = ""
		if n > fewDelayed {
			if ok, err := m.announce(ctx, first, version); err != nil || !ok {
				return false, err
			}
		}
	}
	split := !whole && group[0].kind > 0 // what is due now arrives when what is in the others is known
	if !whole {
		segments = slices.DeleteFunc(segments, func(s *bucketSegment) bool { return s.b != group[0] })
		group = group[:1]
	}
	var moving []*delayedItem
	for _, s := range segments {
		some, err := m.choose(ctx, s, split)
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
			m.passed[group[0]] = true // none of it could be moved: the others go on without it
		}
	}
	return true, m.clear(ctx, group, segments)
}

// list lists the items of buckets, up to about maxSorted: if there are more, whole is false.
func (m *mover) list(ctx context.Context, group []bucket) (segments []*bucketSegment, whole bool, err error) {
	co, count := m.co, 0
	for _, b := range group {
		c := co.q.layout.bucket(b)
		numbers, err := c.Segments(ctx, co.sess)
		if err != nil {
			return nil, false, err
		}
		for i, n := range numbers {
			if count > maxSorted {
				return segments, false, nil
			}
			s := &bucketSegment{b: b, c: c, segment: n, last: i == len(numbers)-1}
			batch := co.sess.Batch()
			class, names := batch.Get(c.Segment(n)), batch.Children(c.Segment(n))
			batch.Send()
			data, err := class.Get(ctx)
			if err == nil {
				var list zk.Children
				list, err = names.Get(ctx)
				s.items = segment.Numbers(list.Names, segment.ParseItem)
			}
			if err != nil && !errors.Is(err, zk.NoNode) { // another consumer is quicker
				return nil, false, err
			}
			s.small = !segment.Large(data.Data)
			count += len(s.items)
			segments = append(segments, s)
		}
	}
	return segments, true, nil
}

// choose reads a segment's items, and returns those that are to be moved: items that are due into their ready lists,
// unless they are to be split among narrower buckets; nodes that are not items to the dead letters; and items in a
// bucket that is too wide for them to where they belong.
func (m *mover) choose(ctx context.Context, s *bucketSegment, split bool) ([]*delayedItem, error) {
	q := m.co.q
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
				x.dead, x.to = true, q.layout.deadLetters()
				stays = len(node.Data) > q.largest() // it is in no consumer's way
			default:
				x.due = rec.DueAt(node.Stat.Ctime)
				switch to := bucketFor(x.due, x.due-now); {
				case x.due > now:
					x.to = q.layout.bucket(to)
					if stays = to == s.b; stays {
						m.sooner(x.due)
					}
				case split:
					x.to = q.layout.bucket(bucketOf(x.due, s.b.kind-1))
				default:
					x.to = q.layout.readyList(rec.Priority)
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
	rec.Delay, rec.Due = 0, x.due
	if x.to.Temporary {
		rec.Delay = max(1, x.due-now)
	}
	if rec.Enqueued == 0 {
		rec.Enqueued = node.Stat.Ctime
	}
	return rec
}

// read reads items. An item that no longer exists is nil, and so is one that cannot be read, because of its
// permissions or its size: that stays, and the others go on without it.
func (m *mover) read(ctx context.Context, s *bucketSegment, items []int) ([]*zk.Data, error) {
	co := m.co
	nodes, err := segment.Read(ctx, co.sess, s.c.Segment(s.segment), items, !s.small)
	switch {
	case err == nil:
		return nodes, nil
	case ctx.Err() != nil, zk.Temporary(err):
		return nil, err
	case co.err() != nil:
		return nil, co.err()
	case len(items) == 1:
		s.left = true
		m.sooner(co.q.clock.now() + rereadAfter.Milliseconds())
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
