package queue

// Finding and claiming items.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// fetcher is the part of a consumer that looks for items, claims them, and moves delayed ones. Only the goroutine of
// serve uses it.
type fetcher struct {
	co *consumer

	priorities []int   // that have ready lists
	orphans    []claim // claims of consumers that were gone when the list of consumers last changed
	consumers  int     // how many consumers there were then
	spread     int     // how many consumers try to claim at the same time, by estimate: see metOthers

	limit *limit // of a queue with a rate, as the current step has found it; nil: there is none

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
	d := f.co.d
	defer func() {
		d.mu.Lock()
		f.co.fetching = false
		f.co.dirty = f.co.dirty || err != nil // it still has to look
		d.mu.Unlock()
	}()
	d.mu.Lock()
	limit, has := f.co.best()
	var last place
	if has {
		// Before the end of our ranges there may be something that was given back, or left behind, and comes first.
		last = f.co.last()
	}
	if !more {
		f.co.fetching, f.co.dirty = true, false
	}
	has = has && !more
	trying := d.takers.trying()
	d.mu.Unlock()
	if trying {
		// A taker that does not want to wait learns what is true now, not what a server that lags behind believes.
		if err := f.co.sess.Sync(ctx, d.layout.root); err != nil {
			return false, err
		}
	}
	if err := f.promote(ctx); err != nil {
		return false, err
	}
	look := func() (found, armed bool, err error) {
		if err := f.listPriorities(ctx); err != nil {
			return false, false, err
		}
		claims, err := f.leftBehind(ctx)
		if err != nil {
			return false, false, err
		}
		for _, p := range f.priorities {
			if has && p > last.priority {
				break
			}
			mine := slices.DeleteFunc(slices.Clone(claims), func(c claim) bool {
				return c.priority != p || has && c.place.compare(last) >= 0
			})
			if found, err = f.adoptAny(ctx, mine); found || err != nil {
				return found, armed, err
			}
			if has && p >= limit.priority {
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

// leftBehind returns the claims that may be taken over, in the order of their places: free ones, and those whose
// owner is gone.
//
// It only asks which owners are gone if the list of consumers has changed since it last asked. It sets the watch on
// that list before it lists the claims, so that a consumer that goes later fires the watch, and the claims of one
// that went before are seen. Consumers are listed once more after the claims: see listClaims.
func (f *fetcher) leftBehind(ctx context.Context) ([]claim, error) {
	d := f.co.d
	d.mu.Lock()
	known := !f.co.left.hasFired()
	d.mu.Unlock()
	if !known {
		_, _, w, err := f.co.sess.ChildrenW(ctx, d.layout.path(dirConsumers))
		if err != nil {
			return nil, err
		}
		b := f.co.sess.Batch()
		claims, consumers := b.Children(d.layout.path(dirClaims)), b.Children(d.layout.path(dirConsumers))
		b.Send()
		list, live, err := d.layout.owned(ctx, claims, consumers)
		if err != nil {
			w.Close()
			return nil, err
		}
		f.orphans = slices.DeleteFunc(list, func(c claim) bool { return !c.free })
		f.consumers = max(1, live)
		if f.spread = min(f.spread, f.consumers); f.spread == 0 {
			f.spread = max(1, f.consumers/4) // consumers that come together meet
		}
		d.mu.Lock()
		f.co.left = &watch{w: w}
		d.mu.Unlock()
	}
	names, _, err := f.co.sess.Children(ctx, d.layout.path(dirFree))
	free, err := d.layout.freed(zk.Children{Names: names}, err)
	d.mu.Lock()
	f.co.claims = len(free)
	d.mu.Unlock()
	return inPlace(append(free, f.orphans...)), err
}

// listPriorities learns which priorities have ready lists, and sets a watch for others.
func (f *fetcher) listPriorities(ctx context.Context) error {
	f.co.d.mu.Lock()
	known := !f.co.newPriority.hasFired()
	f.co.d.mu.Unlock()
	if known {
		return nil
	}
	names, _, w, err := f.co.sess.ChildrenW(ctx, f.co.d.layout.path(dirReady))
	if err != nil {
		return err
	}
	f.priorities = segment.Numbers(names, parsePriority)
	f.co.d.mu.Lock()
	f.co.newPriority = &watch{w: w}
	stale := f.co.keepOnly(f.priorities)
	f.co.d.mu.Unlock()
	closeAll(stale)
	return nil
}

// claimFrom claims the next items of a ready list. It returns false if there are none; then it sets a watch, if arm
// says so, and reports that: the caller looks once more.
func (f *fetcher) claimFrom(ctx context.Context, priority int, arm bool) (found, set bool, err error) {
	ready := f.co.d.layout.readyList(priority)
	f.co.d.mu.Lock()
	quiet := !f.co.changes[priority].hasFired()
	f.co.d.mu.Unlock()
	if quiet {
		return false, false, nil
	}
	found, err = f.claimNext(ctx, ready, priority)
	if found {
		f.co.d.mu.Lock()
		f.co.noteMore(priority)
		f.co.d.mu.Unlock()
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
		f.co.d.mu.Lock()
		f.co.noteMore(priority)
		f.co.d.mu.Unlock()
		return found, false, err
	}
	f.co.d.mu.Lock()
	f.co.changes[priority] = &watch{w: w}
	f.co.d.mu.Unlock()
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
			l, err := f.claimBehind(ready, place{priority, at.Segment, at.Item}, end, string(data), stat.Version)
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
	f.co.d.background(func() {
		list, err := ready.Segments(f.co.ctx, f.co.sess)
		if err != nil {
			return // the next consumer that moves the cursor does it
		}
		b := f.co.sess.Batch()
		for _, s := range list {
			if s < n {
				b.Delete(ready.Segment(s), 1)
			}
		}
		b.Send()
	})
}

// claimBehind claims the items of a segment from a place up to end, or as many as there is room for: it moves the
// ready list's cursor behind them, on condition that no other consumer has moved it, and creates a claim's node, in
// one transaction.
//
// All consumers share the cursor, and one that finds it moved has asked in vain. So a consumer that has met others
// here moves it further, and makes free claims of what it does not need: as many as consumers need at the same time,
// each of which is taken by itself.
func (f *fetcher) claimBehind(ready *segment.List, at place, end int, class string, version int32) (*lease, error) {
	d := f.co.d
	d.mu.Lock()
	room := f.mayClaim(f.co.room())
	if segment.Large([]byte(class)) {
		room = min(room, maxLarge)
	}
	s := itemRange{First: at.item, Last: end - 1, Class: class}
	var free []itemRange
	if f.spread > 1 && f.co.claims < maxPutBack/2 {
		free = s.from(at.item + room).upTo(at.item + room*(1+min(2*f.spread, f.maxParts())) - 1).cut(room)
	}
	s = s.upTo(at.item + room - 1)
	next := s.Last + 1
	if len(free) > 0 {
		next = free[len(free)-1].Last + 1
	}
	l := f.newLease(ready, at, s)
	cursor := segment.Cursor{Segment: at.segment, Item: next}
	ops := append([]zk.Op{zk.SetOp(ready.Dir, cursor.Encode(), version)}, f.makeFree(ready, at, free)...)
	d.mu.Unlock()
	return l, f.make(l, ops...)
}

// makeFree returns the operations that create free claims, and change the ready list's change node: waiting consumers
// may have looked for free claims before, and at the cursor afterwards.
func (f *fetcher) makeFree(ready *segment.List, at place, free []itemRange) []zk.Op {
	var ops []zk.Op
	for _, s := range free {
		path := f.co.freePath(place{at.priority, at.segment, s.First})
		ops = append(ops, f.co.d.layout.store.CreateOp(path, s.encode()))
	}
	if len(free) > 0 {
		ops = append(ops, zk.SetOp(ready.Change, nil, -1))
	}
	return ops
}

// maxParts is how many free claims one transaction may create: those that fit into a packet, and no more than are
// taken while they are fresh.
func (f *fetcher) maxParts() int {
	each := 3*segment.OpSize + len(f.co.d.layout.root) + f.co.d.layout.store.ACLSize()
	return max(1, min(64, (f.co.d.cfg.MaxPacket-headroom)/each))
}

// newLease returns what is to be a claim of a range that begins at a place. It marks those of its items that are
// about to be delivered. The caller holds the dispatcher's mutex.
func (f *fetcher) newLease(ready *segment.List, at place, s itemRange) *lease {
	s.Delivered = s.First + min(f.co.markAt(at), s.size()) - 1
	f.co.seen[ready] = max(f.co.seen[ready], at.segment)
	return &lease{
		co: f.co, path: f.co.d.layout.path(dirClaims, claimName(at, f.co.id, f.co.nextSerial())), list: ready,
		place: at, asked: time.Now(), size: s.size(), writing: make(chan struct{}, 1),
		leaseState: leaseState{claimed: s},
	}
}

// errTaken says that another consumer was quicker to claim the same.
var errTaken = fmt.Errorf("%w, and has claimed the same", errAgain)

// make creates a claim's node in one transaction with other operations, the first of which is refused if another
// consumer was quicker: then it returns errTaken.
func (f *fetcher) make(l *lease, ops ...zk.Op) error {
	d := f.co.d
	ops = append([]zk.Op{zk.CheckOp(f.co.node, -1), d.layout.store.CreateOp(l.path, l.claimed.encode())}, ops...)
	own := len(ops)
	d.mu.Lock()
	ops = append(ops, zk.CheckOp(d.layout.path(dirGate), f.co.version))
	d.mu.Unlock()
	if f.limit != nil {
		ops = append(ops, f.limit.op(d, l.size))
	}
	for {
		results, err := f.co.sess.Multi(f.co.ctx, ops...)
		if err == nil {
			l.token = results[0].Zxid
			return nil
		}
		failed, refused := errors.AsType[*zk.MultiError](err)
		switch {
		case refused && failed.Index == 0:
			f.co.Gone(f.co.node)
			return f.co.err()
		case refused && failed.Index == 1 && errors.Is(failed, zk.NoNode):
			d.recheckNodes()
			return errAgain
		case refused && failed.Index >= own && errors.Is(failed, zk.BadVersion): // another consumer has used the rate
			if failed.Index == own {
				f.forgetGate()
			}
			return errAgain
		case refused && failed.Index == 2 && (errors.Is(failed, zk.BadVersion) || errors.Is(failed, zk.NoNode)):
			f.metOthers()
			return errTaken
		case refused && errors.Is(failed, zk.NoNode): // another client has removed the change node, or the directory
			d.recheckNodes()
			return cmp.Or(l.list.Mend(f.co.ctx, f.co.sess), errAgain)
		case f.co.err() != nil:
			return f.co.err()
		case !errors.Is(err, zk.ErrConnectionLost):
			return err
		}
		// No other consumer creates a node of this name: it tells whether we have.
		there, err := f.co.exist(l.path)
		if err != nil {
			return err
		}
		if there[0].Exists {
			l.token = there[0].Stat.Czxid
			return nil
		}
	}
}

// exist tells which nodes exist, after everything that this session has sent before was done or never will be.
func (co *consumer) exist(paths ...string) ([]zk.Existence, error) {
	for {
		b := co.sess.Batch()
		passed := line.Barrier(b, co.node)
		looks := make([]*zk.Future[zk.Existence], len(paths))
		for i, path := range paths {
			looks[i] = b.Exists(path)
		}
		b.Send()
		there := make([]zk.Existence, len(paths))
		err := passed(co.ctx)
		for i := 0; i < len(looks) && err == nil; i++ {
			there[i], err = looks[i].Get(co.ctx)
		}
		if err == nil {
			return there, nil
		}
		if err := co.err(); err != nil {
			return nil, err
		}
		if !errors.Is(err, zk.ErrConnectionLost) {
			return nil, err
		}
	}
}

// maxTries is how many claims a consumer tries to take over before it lists them anew: the list grows old.
const maxTries = 3

// adoptAny takes over one of the claims, which are in the order of their places: the first that exists; or, if others
// take some at the same time, one of the first few.
func (f *fetcher) adoptAny(ctx context.Context, claims []claim) (bool, error) {
	for tries := 0; len(claims) > 0; {
		i := rand.IntN(min(f.spread, len(claims)))
		ok, err := f.adopt(ctx, &claims[i])
		switch {
		case errors.Is(err, errTaken):
			if tries++; tries == maxTries {
				return false, err
			}
		case ok || err != nil:
			if ok && tries == 0 {
				f.metNone()
			}
			return ok, err
		}
		claims = slices.Delete(claims, i, i+1)
	}
	return false, nil
}

// metOthers records that another consumer was quicker, and metNone that none was. Consumers that meet others choose
// among as many claims as will keep them apart. A consumer that is alone always takes the first.
func (f *fetcher) metOthers() { f.spread = min(2*f.spread, f.consumers) }

func (f *fetcher) metNone() { f.spread = max(1, f.spread-(f.spread+7)/8) }

// adopt takes over a claim that was given back, or left behind by a consumer that is gone. Items that were delivered
// there count as tried. What there is no room for becomes free claims, as many as there are consumers.
func (f *fetcher) adopt(ctx context.Context, c *claim) (bool, error) {
	d := f.co.d
	data, stat, err := f.co.sess.Get(ctx, c.path)
	if errors.Is(err, zk.NoNode) {
		f.adopted(c)
		f.metOthers()
		return false, errTaken
	}
	if err != nil {
		return false, err
	}
	old, ok := parseRange(data)
	if !ok {
		f.adopted(c)
		return false, nil // not a claim; it is in no consumer's way
	}
	left := func(itemRange) bool { return true }
	if c.owner != freeOwner {
		if left, err = f.unfinished(ctx, c, &old); err != nil {
			return false, err
		}
	}
	s, rest := old.split()
	if s.empty() {
		s, rest = rest, itemRange{Last: -1}
	}
	d.mu.Lock()
	room := f.mayClaim(f.co.room())
	parts := max(1, min(f.consumers, f.maxParts()/2))
	var free []itemRange
	for _, s := range []itemRange{s.from(s.First + room), rest} {
		free = append(free, s.cut(max(room, (s.size()+parts-1)/parts))...)
	}
	free = slices.DeleteFunc(free, func(s itemRange) bool { return !left(s) })
	s = s.upTo(s.First + room - 1)
	ready := d.layout.readyList(c.priority)
	l := f.newLease(ready, place{c.priority, c.segment, s.First}, s)
	ops := append([]zk.Op{takeOver(c.path, stat.Version)}, f.makeFree(ready, l.place, free)...)
	d.mu.Unlock()
	if err := f.make(l, ops...); err != nil {
		return false, err // it may still exist: its owner has written it meanwhile
	}
	f.adopted(c)
	d.mu.Lock()
	// Other claims may come before what was claimed ahead: more that was left behind with this one, and items that its
	// owner gave back, which are claims of their own. A consumer that keeps apart from others leaves those to them.
	f.co.dirty = f.co.dirty || f.spread == 1 && (len(f.co.leases) > 0 || len(l.claimed.Except) > 0)
	d.mu.Unlock()
	return f.fill(l)
}

// unfinished makes a range that a consumer has left behind begin with the first item that it has not finished, if
// there is one, and returns a function that tells whether something is left of a part of it. No other consumer
// finishes what that one had claimed, so an item that does not exist now never will.
func (f *fetcher) unfinished(ctx context.Context, c *claim, s *itemRange) (func(itemRange) bool, error) {
	items, err := f.co.d.layout.readyList(c.priority).Items(ctx, f.co.sess, c.segment)
	if err != nil {
		return nil, err
	}
	if i, _ := slices.BinarySearch(items, s.First); i < len(items) && items[i] <= s.Last {
		s.First = items[i]
	}
	return func(s itemRange) bool {
		i, _ := slices.BinarySearch(items, s.First)
		return i < len(items) && items[i] <= s.Last
	}, nil
}

// adopted forgets a claim of a consumer that is gone, after it was taken over.
func (f *fetcher) adopted(c *claim) {
	f.orphans = slices.DeleteFunc(f.orphans, func(o claim) bool { return o.path == c.path })
}

// fill reads a claim's items. It returns false if none of them exists any more; then it removes the claim. If an item
// cannot be read, it gives back that item and those behind it.
func (f *fetcher) fill(l *lease) (bool, error) {
	buffer, err := f.read(l.list.Segment(l.segment), l.claimed.Class, l.claimed.items())
	if unread, ok := errors.AsType[*unreadError](err); ok {
		l.buffer = buffer
		err = l.giveBack(f.co.ctx, unread.seq)
		if err == nil && len(buffer) == 0 {
			return false, unread
		}
		if err != nil && zk.OutcomeOf(err) != zk.Unknown {
			f.co.returner.returnLater(l)
		}
	}
	if err == nil {
		err = f.co.certify()
	}
	if err != nil {
		return false, err
	}
	d := f.co.d
	var good, bad []bufferedItem
	for _, s := range buffer {
		tries := s.rec.Attempts + l.claimed.Tries
		if s.rec.Priority == corrupt || d.cfg.MaxAttempts > 0 && tries >= d.cfg.MaxAttempts {
			bad = append(bad, s)
		} else {
			good = append(good, s)
		}
	}
	d.mu.Lock()
	l.filled = time.Now()
	l.buffer, l.open = good, len(bad)
	f.co.open += len(bad)
	l.nodeGone = len(buffer) == 0
	if len(good) > 0 {
		f.co.add(l)
		f.co.returner.restart()
	}
	f.co.updateOwnership()
	d.mu.Unlock()
	if len(buffer) == 0 {
		l.deleteNode()
		return false, errAgain
	}
	var failed []error
	for _, s := range bad {
		it := l.item(s)
		it.attempt-- // it is not delivered
		reason := fmt.Sprintf("%d attempts did not finish it, and the last consumer that had it is gone", it.attempt)
		if s.rec.Priority == corrupt {
			reason = segment.ErrRecord.Error()
		}
		failed = append(failed, it.moveToDead(reason)) // one that cannot be moved is in no consumer's way
	}
	if err := errors.Join(failed...); err != nil {
		return false, err
	}
	if len(good) == 0 {
		return false, errAgain
	}
	return true, nil
}
