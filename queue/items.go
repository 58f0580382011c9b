package queue

// Listing what is ready.

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// Items yields the items that are ready, in the order in which they would be taken, and takes none. It reads a part
// of them at a time, so it may or may not yield items that are put or taken meanwhile. It leaves out items that
// consumers have claimed, and may leave out items whose claim is divided meanwhile. It may yield an item twice that
// goes back behind the others meanwhile.
func (q *Queue) Items(ctx context.Context) iter.Seq2[Peeked, error] {
	return func(yield func(Peeked, error) bool) {
		err := q.reader.eachReady(ctx, func(p Peeked) bool { return yield(p, nil) })
		if err != nil && !errors.Is(err, errEnough) {
			yield(Peeked{}, q.failed("list", err))
		}
	}
}

// errEnough ends a walk whose caller has seen enough.
var errEnough = errors.New("queue: enough")

// eachReady calls f with every item that is ready, in order, until it returns false.
func (r reader) eachReady(ctx context.Context, f func(Peeked) bool) error {
	var priorities []int
	err := r.retryRead(ctx, func(sess *zk.Session) error {
		names, _, err := sess.Children(ctx, r.layout.path(dirReady))
		priorities = segment.Numbers(names, parsePriority)
		return err
	})
	for _, p := range priorities {
		if err == nil {
			err = r.eachReadyOf(ctx, p, f)
		}
	}
	return err
}

// eachReadyOf is eachReady for one priority: what was given back or left behind comes before what the cursor has not
// reached.
func (r reader) eachReadyOf(ctx context.Context, priority int, f func(Peeked) bool) error {
	var claims []claim
	err := r.retryRead(ctx, func(sess *zk.Session) (err error) {
		claims, err = r.layout.listClaims(ctx, sess)
		return err
	})
	if err != nil {
		return err
	}
	for i := range claims {
		c := &claims[i]
		if c.priority != priority || !c.free {
			continue
		}
		s, err := r.readRange(ctx, c)
		if err != nil {
			return err
		}
		if err := r.eachOf(ctx, priority, c.segment, s.items(), f); err != nil {
			return err
		}
	}
	return r.eachBehindCursor(ctx, priority, f)
}

// readRange returns the range of a claim: an empty one if the claim is gone.
func (r reader) readRange(ctx context.Context, c *claim) (itemRange, error) {
	s := itemRange{Last: -1}
	err := r.retryRead(ctx, func(sess *zk.Session) error {
		data, _, err := sess.Get(ctx, c.path)
		if errors.Is(err, zk.NoNode) {
			return nil
		}
		if got, ok := parseRange(data); err == nil && ok {
			s = got
		}
		return err
	})
	return s, err
}

// eachBehindCursor calls f with the items of a priority behind the cursor.
func (r reader) eachBehindCursor(ctx context.Context, priority int, f func(Peeked) bool) error {
	ready := r.layout.readyList(priority)
	var at segment.Cursor
	var segments []int
	err := r.retryRead(ctx, func(sess *zk.Session) error {
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
		err := r.retryRead(ctx, func(sess *zk.Session) error {
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
		if err := r.eachOf(ctx, priority, n, items, f); err != nil {
			return err
		}
	}
	return nil
}

// eachOf calls f with a segment's items that exist.
func (r reader) eachOf(ctx context.Context, priority, n int, items []int, f func(Peeked) bool) error {
	dir := r.layout.readyList(priority).Segment(n)
	for chunk := range slices.Chunk(items, segment.ReadChunk) {
		found, err := r.readStored(ctx, dir, chunk)
		if err != nil {
			return err
		}
		for _, x := range found {
			put := x.created // when its node was created
			if x.rec.Enqueued > 0 {
				put = x.rec.Enqueued
			}
			p := Peeked{
				ID: x.rec.ID.String(), Body: x.rec.Body, Headers: x.rec.Headers, Priority: priority,
				EnqueuedAt: time.UnixMilli(put), ready: time.UnixMilli(x.created),
			}
			if x.rec.Reason == "" && !f(p) {
				return errEnough
			}
		}
	}
	return nil
}
