package queue

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// Items yields the items that are ready, in the order in which they would be taken, and takes none. It reads a part of them at a time, so that
// items that are put or taken meanwhile may be there or not. Items that consumers have claimed are left out,
// and so may be some whose claim is divided anew meanwhile. One that comes back behind the others meanwhile may be
// yielded twice.
func (q *Queue) Items(ctx context.Context) iter.Seq2[Peeked, error] {
	return func(yield func(Peeked, error) bool) {
		err := q.eachReady(ctx, func(p Peeked) bool { return yield(p, nil) })
		if err != nil && !errors.Is(err, errEnough) {
			yield(Peeked{}, q.failed("list", err))
		}
	}
}

// errEnough ends a walk whose caller has seen enough.
var errEnough = errors.New("queue: enough")

// eachReady calls f with every item that is ready, in order, until it returns false.
func (q *Queue) eachReady(ctx context.Context, f func(Peeked) bool) error {
	var lines []int
	err := q.look(ctx, func(sess *zk.Session) error {
		names, _, err := sess.Children(ctx, q.path(dirReady))
		lines = segment.Numbers(names, parseLine)
		return err
	})
	for _, p := range lines {
		if err == nil {
			err = q.eachReadyOf(ctx, p, f)
		}
	}
	return err
}

// eachReadyOf is eachReady for one priority: what was given back or left behind comes before what the line's cursor stands before.
func (q *Queue) eachReadyOf(ctx context.Context, priority int, f func(Peeked) bool) error {
	var claims []claim
	err := q.look(ctx, func(sess *zk.Session) (err error) {
		claims, err = q.listClaims(ctx, sess)
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
		s, err := q.readSpan(ctx, c)
		if err != nil {
			return err
		}
		if err := q.eachOf(ctx, priority, c.segment, s.items(), f); err != nil {
			return err
		}
	}
	return q.eachOfLine(ctx, priority, f)
}

// readSpan returns what a claim is for: nothing if it is gone.
func (q *Queue) readSpan(ctx context.Context, c *claim) (span, error) {
	s := span{Last: -1}
	err := q.look(ctx, func(sess *zk.Session) error {
		data, _, err := sess.Get(ctx, c.path)
		if errors.Is(err, zk.NoNode) {
			return nil
		}
		if got, ok := parseSpan(data); err == nil && ok {
			s = got
		}
		return err
	})
	return s, err
}

// eachOfLine calls f with the items behind a line's cursor.
func (q *Queue) eachOfLine(ctx context.Context, priority int, f func(Peeked) bool) error {
	line := q.line(priority)
	var at segment.Cursor
	var segments []int
	err := q.look(ctx, func(sess *zk.Session) error {
		data, _, err := sess.Get(ctx, line.Dir)
		if errors.Is(err, zk.NoNode) {
			return nil
		}
		if err != nil {
			return err
		}
		at, _ = segment.ParseCursor(data)
		segments, err = line.Segments(ctx, sess)
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
		err := q.look(ctx, func(sess *zk.Session) error {
			stat, ok, err := sess.Exists(ctx, line.Segment(n))
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
		if err := q.eachOf(ctx, priority, n, items, f); err != nil {
			return err
		}
	}
	return nil
}

// eachOf calls f with those of a segment's items that are there.
func (q *Queue) eachOf(ctx context.Context, priority, n int, items []int, f func(Peeked) bool) error {
	dir := q.line(priority).Segment(n)
	for chunk := range slices.Chunk(items, segment.ReadChunk) {
		graves, err := q.readGraves(ctx, dir, chunk)
		if err != nil {
			return err
		}
		for _, x := range graves {
			put := x.died // when its node was made
			if x.rec.Enqueued > 0 {
				put = x.rec.Enqueued
			}
			p := Peeked{
				ID: x.rec.ID.String(), Body: x.rec.Body, Headers: x.rec.Headers, Priority: priority,
				EnqueuedAt: time.UnixMilli(put), ready: time.UnixMilli(x.died),
			}
			if x.rec.Reason == "" && !f(p) {
				return errEnough
			}
		}
	}
	return nil
}
