package queue

// Listing items by their state.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/seed-a3166700/turnstile/queue/internal/claims"
	"github.com/seed-a3166700/turnstile/queue/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// Items yields the items that are in a state, and takes none: ready ones in the order in which they would be taken,
// delayed ones about in the order of their times, claimed ones in the order of their places, dead letters in the order
// in which they died, and those that wait for others of their group, group by group.
//
// It reads a part of them at a time, so it may or may not yield items that are put, taken or finished meanwhile, and
// may yield an item twice that moves meanwhile. Items whose claim is divided meanwhile may be left out. It leaves out
// those that cannot be read, because of their permissions or their size: the error about the first comes at the end.
func (q *Queue) Items(ctx context.Context, state State) iter.Seq2[Peeked, error] {
	return func(yield func(Peeked, error) bool) {
		err := q.reader.thorough(func(r reader) error {
			return r.each(ctx, state, func(x located) bool { return yield(x.Peeked, nil) })
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(Peeked{}, q.failed("list", err))
		}
	}
}

// located is an item and where it is.
type located struct {
	Peeked
	path    string
	key     string
	version int32
	at      claims.Place // of a ready or claimed one
}

// errEnough ends a walk whose caller has seen enough.
var errEnough = errors.New("enough")

// thorough calls walk with a reader that passes over items that cannot be read. If walk does not fail otherwise, it
// returns the error about the first of them.
func (r reader) thorough(walk func(reader) error) error {
	var unread error
	r.unread = &unread
	return cmp.Or(walk(r), unread)
}

// each calls f with every item in a state, until it returns false: then it returns errEnough.
func (r reader) each(ctx context.Context, state State, f func(located) bool) error {
	switch state {
	case Ready:
		return r.eachReady(ctx, f)
	case Delayed:
		return r.eachDelayed(ctx, f)
	case Claimed:
		return r.eachClaimed(ctx, f)
	case Waiting:
		return r.eachWaiting(ctx, f)
	case Dead:
		dead := r.layout.deadLetters()
		return r.eachStored(ctx, dead, func(x *storedItem) bool {
			return f(located{Peeked: x.peeked(Dead, x.rec.Priority), path: x.path, key: x.rec.Key, version: x.version})
		})
	}
	return fmt.Errorf("%w: no state %d", zk.BadArguments, state)
}

// priorities returns those that have a ready list.
func (r reader) priorities(ctx context.Context) (priorities []int, err error) {
	err = r.do(ctx, func(sess *zk.Session) error {
		names, _, err := sess.Children(ctx, r.layout.path(dirReady))
		priorities = segment.Numbers(names, parsePriority)
		return err
	})
	return priorities, err
}

// eachReady calls f with every item that is ready, in order.
func (r reader) eachReady(ctx context.Context, f func(located) bool) error {
	priorities, err := r.priorities(ctx)
	for _, p := range priorities {
		if err == nil {
			err = r.eachReadyOf(ctx, p, f)
		}
	}
	return err
}

// listClaims is layout.listClaims through broken connections.
func (r reader) listClaims(ctx context.Context) (list []claim, err error) {
	err = r.do(ctx, func(sess *zk.Session) (err error) {
		list, err = r.layout.listClaims(ctx, sess)
		return err
	})
	return list, err
}

// eachReadyOf is eachReady for one priority: what was given back or left behind comes before what the cursor has not
// reached.
func (r reader) eachReadyOf(ctx context.Context, priority int, f func(located) bool) error {
	list, err := r.listClaims(ctx)
	if err != nil {
		return err
	}
	for i := range list {
		c := &list[i]
		if c.Priority != priority || !c.free {
			continue
		}
		s, _, err := r.readRange(ctx, c)
		if err != nil {
			return err
		}
		if err := r.eachOf(ctx, c.Place, s.Items(), func(x located) bool {
			x.Attempts += s.TriesOf(x.at.Item, c.owner != freeOwner)
			return f(x)
		}); err != nil {
			return err
		}
	}
	return r.eachBehindCursor(ctx, priority, f)
}

// eachClaimed calls f with every item that a consumer has claimed.
func (r reader) eachClaimed(ctx context.Context, f func(located) bool) error {
	list, err := r.listClaims(ctx)
	if err != nil {
		return err
	}
	consumers := make(map[string]*Consumer)
	for i := range list {
		c := &list[i]
		if c.free {
			continue
		}
		if consumers[c.owner] == nil {
			if consumers[c.owner], err = r.consumer(ctx, c.owner); err != nil {
				return err
			}
		}
		s, _, err := r.readRange(ctx, c)
		if err != nil {
			return err
		}
		if err := r.eachOf(ctx, c.Place, s.Items(), func(x located) bool {
			x.State, x.Consumer, x.Delivered = Claimed, consumers[c.owner], x.at.Item <= s.Delivered
			x.Attempts += s.TriesOf(x.at.Item, true)
			return f(x)
		}); err != nil {
			return err
		}
	}
	return nil
}

// consumer returns what a consumer's node says, also if the consumer is gone.
func (r reader) consumer(ctx context.Context, id string) (*Consumer, error) {
	c := &Consumer{ID: id}
	err := r.do(ctx, func(sess *zk.Session) error {
		data, _, err := sess.Get(ctx, r.layout.path(dirConsumers, id))
		if errors.Is(err, zk.NoNode) {
			return nil
		}
		if err == nil {
			c = parseConsumer(id, data)
		}
		return err
	})
	return c, err
}

// readRange returns the range of a claim, and the version of its node: an empty range if the claim is gone.
func (r reader) readRange(ctx context.Context, c *claim) (claims.Range, int32, error) {
	s := claims.Range{Last: -1}
	var version int32
	err := r.do(ctx, func(sess *zk.Session) error {
		data, stat, err := sess.Get(ctx, c.path)
		if errors.Is(err, zk.NoNode) {
			return nil
		}
		if got, ok := claims.ParseRange(data); err == nil && ok {
			s, version = got, stat.Version
		}
		return err
	})
	return s, version, err
}

// eachBehindCursor calls f with the items of a priority behind the cursor.
func (r reader) eachBehindCursor(ctx context.Context, priority int, f func(located) bool) error {
	ready := r.layout.readyList(priority)
	var at segment.Cursor
	var segments []int
	err := r.do(ctx, func(sess *zk.Session) error {
		data, _, err := sess.Get(ctx, ready.Dir)
		if errors.Is(err, zk.NoNode) {
			return nil
		}
		if err != nil {
			return err
		}
		at, _ = segment.ParseCursor(data)
		segments, err = ready.Segments(ctx, sess)
		return err
	})
	if err != nil {
		return err
	}
	for _, n := range segments {
		if n < at.Segment {
			continue
		}
		from, end := 0, 0
		if n == at.Segment {
			from = at.Item
		}
		err := r.do(ctx, func(sess *zk.Session) error {
			stat, ok, err := sess.Exists(ctx, ready.Segment(n))
			if end = 0; ok {
				end = segment.Creations(stat)
			}
			return err
		})
		if err != nil {
			return err
		}
		var items []int
		for ; from < end; from++ {
			items = append(items, from)
		}
		if err := r.eachOf(ctx, claims.Place{Priority: priority, Segment: n}, items, f); err != nil {
			return err
		}
	}
	return nil
}

// eachOf calls f with those of the items of a ready list's segment that exist. They are ready as far as it knows.
func (r reader) eachOf(ctx context.Context, at claims.Place, items []int, f func(located) bool) error {
	dir := r.layout.readyList(at.Priority).Segment(at.Segment)
	return r.readStored(ctx, dir, items, func(x *storedItem) bool {
		return x.corruptRecord() || f(located{
			Peeked: x.peeked(Ready, at.Priority), path: x.path, key: x.rec.Key, version: x.version,
			at: at.At(x.seq),
		})
	})
}

// eachDelayed calls f with every item that is not due, or has not been moved: bucket by bucket.
func (r reader) eachDelayed(ctx context.Context, f func(located) bool) error {
	return r.eachBucket(ctx, false, func(b *segment.List) error {
		return r.eachStored(ctx, b, func(x *storedItem) bool {
			return x.corruptRecord() ||
				f(located{Peeked: x.peeked(Delayed, x.rec.Priority), path: x.path, key: x.rec.Key, version: x.version})
		})
	})
}

// eachStored calls f with the items of a list, segment by segment.
func (r reader) eachStored(ctx context.Context, list *segment.List, f func(*storedItem) bool) error {
	var segments []int
	err := r.do(ctx, func(sess *zk.Session) (err error) {
		segments, err = list.Segments(ctx, sess)
		return err
	})
	if err != nil {
		return err
	}
	for _, n := range segments {
		var items []int
		err := r.do(ctx, func(sess *zk.Session) (err error) {
			items, err = list.Items(ctx, sess, n)
			return err
		})
		if err != nil {
			return err
		}
		if err := r.readStored(ctx, list.Segment(n), items, f); err != nil {
			return err
		}
	}
	return nil
}

// readStored calls f with items of a segment, until it returns false: then it returns errEnough. It leaves out those
// that do not exist, and reads as many at a time as memory has room for, whatever their size.
func (r reader) readStored(ctx context.Context, dir string, items []int, f func(*storedItem) bool) error {
	if len(items) == 0 {
		return nil
	}
	large := false
	err := r.do(ctx, func(sess *zk.Session) error {
		class, _, err := sess.Get(ctx, dir)
		if errors.Is(err, zk.NoNode) {
			items = nil
			return nil
		}
		large = segment.Large(class)
		return err
	})
	if err != nil || len(items) == 0 {
		return err
	}
	size := segment.ReadChunk
	if large {
		size = maxLarge
	}
	if r.few {
		size = min(size, fewItems)
	}
	for chunk := range slices.Chunk(items, size) {
		if err := r.readChunk(ctx, dir, chunk, large, f); err != nil {
			return err
		}
	}
	return nil
}

// readChunk is readStored for items that are read in one reply or, if that is refused or too large, in several.
func (r reader) readChunk(ctx context.Context, dir string, items []int, large bool, f func(*storedItem) bool) error {
	var nodes []*zk.Data
	err := r.do(ctx, func(sess *zk.Session) (err error) {
		nodes, err = segment.Read(ctx, sess, dir, items, large)
		return err
	})
	half := len(items) / 2
	switch {
	case err == nil:
	case zk.OutcomeOf(err) != zk.Refused, half == 0 && r.unread == nil:
		return err
	case half == 0:
		*r.unread = cmp.Or(*r.unread, err)
	default:
		err := r.readChunk(ctx, dir, items[:half], large, f)
		if err == nil {
			err = r.readChunk(ctx, dir, items[half:], large, f)
		}
		return err
	}
	for i, node := range nodes {
		if node != nil && !f(newStored(dir, items[i], node)) {
			return errEnough
		}
	}
	return nil
}
