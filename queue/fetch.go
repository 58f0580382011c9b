package queue

// Finding items to claim.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-a3166700/turnstile/queue/internal/claims"
	"github.com/seed-a3166700/turnstile/queue/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// fetcher is the part of a consumer that looks for items, claims them, and moves delayed ones. Only the goroutine of
// serve uses it.
type fetcher struct {
	co       *claimant
	takers   *takers
	returner *returner
	bad      []claims.Buffered // what it has claimed and nothing delivers; its caller calls consumer.bury

	priorities []int   // that have ready lists
	orphans    []claim // claims of consumers that were gone when the list of consumers last changed
	consumers  int     // how many consumers there were then
	spread     int     // how many consumers try to claim at the same time, by estimate: see metOthers

	paused bool        // as the gate node says
	rate   *rateRecord // as the gate node says; nil: there is no limit
	gate   int32       // the version of the gate node: claims are made on condition of it; -1: of any
	limit  *limit      // of a queue with a rate, as the current step has found it; nil: there is none

	// Of the transactions that move delayed items.
	delays    int32 // the version of the delayed items' change node at the last look; -1: never
	packet    int   // how large the transactions may be, in bytes; 0: Config.MaxPacket
	breaks    int   // how often in a row the connection broke under one
	moveAfter int64 // when to try again
}

// fetch looks for items that come before the buffered ones, and claims the first of them. It reports whether it has.
// If more is set, it claims what comes behind those, too, if there is any.
//
// It reads with ctx, which ends when no taker wants anything any more, and writes under the consumer's own context: a
// claim that was sent is seen through.
//
// If other consumers take what it meets at the same time, it looks once more: one may have given something back, or
// claimed it.
func (f *fetcher) fetch(ctx context.Context, more bool) (found bool, err error) {
	// Before the end of our ranges there may be something that was given back, or left behind, and comes first.
	limit, last, has := f.co.claims.BeginFetch(more)
	defer func() { f.co.claims.EndFetch(err != nil) }()
	has = has && !more
	if f.takers.trying() {
		// A taker that does not want to wait learns what is true now, not what a server that lags behind believes.
		if err := f.co.sess.Sync(ctx, f.co.q.layout.root); err != nil {
			return false, err
		}
	}
	free, delays, err := f.glance(ctx)
	if err != nil {
		return false, err
	}
	if !f.noneDue(delays) {
		free = nil // what is due comes into ready lists, and that takes its time
		if err := f.promote(ctx); err != nil {
			return false, err
		}
	}
	look := func() (found, armed bool, err error) {
		if err := f.listPriorities(ctx); err != nil {
			return false, false, err
		}
		list, err := f.leftBehind(ctx, free)
		free = nil
		if err != nil {
			return false, false, err
		}
		for _, p := range f.priorities {
			if has && p > last.Priority {
				break
			}
			mine := slices.DeleteFunc(slices.Clone(list), func(c claim) bool {
				return c.Priority != p || has && c.Compare(last) >= 0
			})
			if found, err = f.adoptAny(ctx, mine); found || err != nil {
				return found, armed, err
			}
			if has && p >= limit.Priority {
				continue // what its ready list holds comes later
			}
			found, set, err := f.claimFrom(ctx, p, !more)
			if armed = armed || set; found || err != nil {
				return found, armed, err
			}
		}
		return false, armed, nil
	}
	for tries := 1; ; tries++ {
		found, armed, err := look()
		switch {
		case errors.Is(err, errTaken) && tries < maxTries: // by a consumer that may have made free claims
		case err == nil && !found && armed:
			// Between the listing of what was left behind and the setting of the watch something may have been given
			// back, and no watch would tell.
		default:
			return found, err
		}
	}
}

// glance returns the names of the free claims, and the version of the delayed items' change node, by one request: most
// often that is all that there is to see. It returns nil if the claims are to be listed after something else.
func (f *fetcher) glance(ctx context.Context) (free []string, delays int32, err error) {
	if !f.co.claims.Knows(claims.Consumers) {
		return nil, -1, nil
	}
	nodes, err := f.co.sess.MultiRead(ctx,
		zk.GetOp(f.co.q.layout.path(dirDelayed)), zk.ChildrenOp(f.co.q.layout.path(dirFree)))
	if errors.Is(err, zk.Unimplemented) {
		return nil, -1, nil
	}
	if err != nil {
		return nil, -1, err
	}
	if err := cmp.Or(nodes[0].Err, nodes[1].Err); err != nil {
		return nil, -1, err
	}
	return append([]string{}, nodes[1].Children...), nodes[0].Stat.Version, nil
}

// noneDue reports whether no delayed item is due, nor was any put since the last look: delays is the version of their
// change node, or -1.
func (f *fetcher) noneDue(delays int32) bool {
	return delays >= 0 && delays == f.delays && f.co.claims.NextDue() == 0
}

// listPriorities learns which priorities have ready lists, and sets a watch for others.
func (f *fetcher) listPriorities(ctx context.Context) error {
	if f.co.claims.Knows(claims.Priorities) {
		return nil
	}
	names, _, w, err := f.co.sess.ChildrenW(ctx, f.co.q.layout.path(dirReady))
	if err != nil {
		return err
	}
	f.priorities = segment.Numbers(names, parsePriority)
	closeAll(f.co.claims.WatchPriorities(w, f.priorities))
	return nil
}

// claimFrom claims the next items of a ready list. It returns false if there are none; then it sets a watch, if arm
// says so, and reports that: the caller looks once more.
func (f *fetcher) claimFrom(ctx context.Context, priority int, arm bool) (found, set bool, err error) {
	ready := f.co.q.layout.readyList(priority)
	if f.co.claims.KnowsEmpty(priority) {
		return false, false, nil
	}
	found, err = f.claimNext(ctx, ready, priority)
	if found {
		f.co.claims.NoteMore(priority)
	}
	if found || err != nil || !arm {
		return found, false, err
	}
	_, _, w, err := f.co.sess.GetW(ctx, ready.Change)
	if errors.Is(err, zk.NoNode) {
		// Another client is removing the list; the watch on the list of priorities tells of a new one.
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	if found, err := f.claimNext(ctx, ready, priority); found || err != nil {
		w.Close()
		f.co.claims.NoteMore(priority)
		return found, false, err
	}
	f.co.claims.WatchList(priority, w)
	return false, true, nil
}

// claimNext claims the items behind the ready list's cursor: as many as are wanted, of one segment.
func (f *fetcher) claimNext(ctx context.Context, ready *segment.List, priority int) (bool, error) {
	data, stat, err := f.co.sess.Get(ctx, ready.Dir)
	if errors.Is(err, zk.NoNode) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	from, ok := segment.ParseCursor(data)
	if !ok {
		return false, fmt.Errorf("%w: the data of %s is no cursor", ErrNotQueue, ready.Dir)
	}
	for at := from; ; {
		data, seg, err := f.co.sess.Get(ctx, ready.Segment(at.Segment))
		if errors.Is(err, zk.NoNode) {
			next, err := f.after(ctx, ready, at.Segment)
			if err != nil || next == 0 {
				return false, err
			}
			at = segment.Cursor{Segment: next}
			continue
		}
		if err != nil {
			return false, err
		}
		if end := segment.Creations(seg); at.Item < end {
			l, err := f.claimBehind(ready, claims.PlaceOf(priority, at), end, string(data), stat.Version)
			if err != nil {
				return false, err
			}
			if at.Segment > from.Segment {
				f.tidy(ready, at.Segment)
			}
			return f.fill(l)
		}
		if seg.Version == 0 {
			return false, nil // open: whatever comes next comes here
		}
		at = segment.Cursor{Segment: at.Segment + 1}
	}
}

// after returns the list's first segment behind the n-th, 0 if there is none. Segments are only ever missing where
// they were emptied and removed before.
func (f *fetcher) after(ctx context.Context, ready *segment.List, n int) (int, error) {
	list, err := ready.Segments(ctx, f.co.sess)
	for _, s := range list {
		if s > n {
			return s, err
		}
	}
	return 0, err
}

// tidy removes the list's empty segments before the n-th, without waiting.
func (f *fetcher) tidy(ready *segment.List, n int) {
	f.co.q.background(func() {
		list, err := ready.Segments(f.co.ctx, f.co.sess)
		if err == nil { // or the next consumer that moves the cursor does it
			before, _ := slices.BinarySearch(list, n)
			ready.Sweep(f.co.ctx, f.co.sess, list[:before])
		}
	})
}
