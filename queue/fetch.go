package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// fetch looks for items that come before those that are claimed already, and claims the first of them. It reports whether it has.
//
// With more, it claims what comes behind those, too, if there is any.
//
// It reads with ctx, which ends when nobody wants anything any more, and writes under the desk's own life: a claim that was sent is
// seen through.
//
// What it meets that others take at the same time it looks for once more: somebody has given it back, or claimed it.
func (d *desk) fetch(ctx context.Context, more bool) (found bool, err error) {
	q := d.q
	defer func() {
		q.mu.Lock()
		d.looking = false
		d.dirty = d.dirty || err != nil // what was to be looked at still is
		q.mu.Unlock()
	}()
	q.mu.Lock()
	limit, has := d.best()
	last := limit // up to the end of our parts there may be something that was given back, or left behind, and comes first
	for _, w := range d.windows {
		if end := (place{w.priority, w.segment, w.stock[len(w.stock)-1].seq}); end.compare(last) > 0 {
			last = end
		}
	}
	if !more {
		d.looking, d.dirty = true, false
	}
	has = has && !more
	trying := false
	for _, t := range q.takers {
		trying = trying || t.try
	}
	q.mu.Unlock()
	if trying {
		// Who does not want to wait is told what stands now, not what a server that lags behind believes.
		if err := d.sess.Sync(ctx, q.root); err != nil {
			return false, err
		}
	}
	if err := d.promote(ctx); err != nil {
		return false, err
	}
	look := func() (found, armed bool, err error) {
		if err := d.listLines(ctx); err != nil {
			return false, false, err
		}
		claims, err := d.leftBehind(ctx)
		if err != nil {
			return false, false, err
		}
		for _, p := range d.lines {
			if has && p > last.priority {
				break
			}
			mine := slices.DeleteFunc(slices.Clone(claims), func(c claim) bool {
				return c.priority != p || has && c.place.compare(last) >= 0
			})
			if found, err = d.adoptAny(ctx, mine); found || err != nil {
				return found, armed, err
			}
			if has && p >= limit.priority {
				continue // what its line holds comes later
			}
			found, set, err := d.claimFrom(ctx, p, !more)
			if armed = armed || set; found || err != nil {
				return found, armed, err
			}
		}
		return false, armed, nil
	}
	for tries := 1; ; tries++ {
		found, armed, err := look()
		switch {
		case errors.Is(err, errTaken) && tries < maxTries: // by somebody who may have made claims of nobody
		case err == nil && !found && armed:
			// Between our look at what was left behind and the alarm something may have been given back, and nothing would
			// tell us.
		default:
			return found, err
		}
	}
}

// leftBehind returns the claims that may be taken over, in the order of their places: those of nobody, and those
// whose owner has gone.
//
// Who has gone is only asked when the list of consumers has changed since it was asked last. The alarm on it is set
// before the claims are listed, so that whoever goes later sets it off, and the claims of whoever went before are
// seen. Consumers are listed once more after the claims: see listClaims.
func (d *desk) leftBehind(ctx context.Context) ([]claim, error) {
	q := d.q
	q.mu.Lock()
	known := !d.gone.rung()
	q.mu.Unlock()
	if !known {
		_, _, w, err := d.sess.ChildrenW(ctx, q.path(dirConsumers))
		if err != nil {
			return nil, err
		}
		b := d.sess.Batch()
		claims, consumers := b.Children(q.path(dirClaims)), b.Children(q.path(dirConsumers))
		b.Send()
		list, crowd, err := q.owned(ctx, claims, consumers)
		if err != nil {
			w.Close()
			return nil, err
		}
		d.orphans = slices.DeleteFunc(list, func(c claim) bool { return !c.free })
		d.crowd = max(1, crowd)
		if d.spread = min(d.spread, d.crowd); d.spread == 0 {
			d.spread = max(1, d.crowd/4) // those who come together meet
		}
		q.mu.Lock()
		d.gone = &alarm{watch: w}
		q.mu.Unlock()
	}
	names, _, err := d.sess.Children(ctx, q.path(dirFree))
	free, err := q.freed(zk.Children{Names: names}, err)
	q.mu.Lock()
	d.claims = len(free)
	q.mu.Unlock()
	return inPlace(append(free, d.orphans...)), err
}

// listLines learns which priorities have lines, and sets an alarm for others.
func (d *desk) listLines(ctx context.Context) error {
	d.q.mu.Lock()
	known := !d.newLine.rung()
	d.q.mu.Unlock()
	if known {
		return nil
	}
	names, _, w, err := d.sess.ChildrenW(ctx, d.q.path(dirReady))
	if err != nil {
		return err
	}
	d.lines = numbers(names, parseLine)
	d.q.mu.Lock()
	d.newLine = &alarm{watch: w}
	stale := d.retain(d.lines)
	d.q.mu.Unlock()
	closeAll(stale)
	return nil
}

// claimFrom claims the next items of a line. It reports false if there are none; then, if wanted, it sets an alarm,
// and says so: who waits for that looks once more.
func (d *desk) claimFrom(ctx context.Context, priority int, arm bool) (found, set bool, err error) {
	line := d.q.line(priority)
	d.q.mu.Lock()
	quiet := !d.bells[priority].rung()
	d.q.mu.Unlock()
	if quiet {
		return false, false, nil
	}
	found, err = d.claimNext(ctx, line, priority)
	if found {
		d.q.mu.Lock()
		d.more(priority)
		d.q.mu.Unlock()
	}
	if found || err != nil || !arm {
		return found, false, err
	}
	_, _, w, err := d.sess.GetW(ctx, line.bell)
	if errors.Is(err, zk.NoNode) {
		return false, false, nil // somebody is removing the line; the alarm on the list of lines tells of a new one
	}
	if err != nil {
		return false, false, err
	}
	if found, err := d.claimNext(ctx, line, priority); found || err != nil {
		w.Close()
		d.q.mu.Lock()
		d.more(priority)
		d.q.mu.Unlock()
		return found, false, err
	}
	d.q.mu.Lock()
	d.bells[priority] = &alarm{watch: w}
	d.q.mu.Unlock()
	return false, true, nil
}

// claimNext claims the items behind the line's cursor: as many as are wanted, of one segment.
func (d *desk) claimNext(ctx context.Context, line *chain, priority int) (bool, error) {
	data, stat, err := d.sess.Get(ctx, line.dir)
	if errors.Is(err, zk.NoNode) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	from, ok := parseCursor(data)
	if !ok {
		return false, fmt.Errorf("%w: the data of %s is no cursor", ErrNotQueue, line.dir)
	}
	for at := from; ; {
		data, seg, err := d.sess.Get(ctx, line.segment(at.segment))
		if errors.Is(err, zk.NoNode) {
			next, err := d.after(ctx, line, at.segment)
			if err != nil || next == 0 {
				return false, err
			}
			at = cursor{segment: next}
			continue
		}
		if err != nil {
			return false, err
		}
		if end := creations(seg); at.item < end {
			w, err := d.claimBehind(line, place{priority, at.segment, at.item}, end, string(data), stat.Version)
			if err != nil {
				return false, err
			}
			if at.segment > from.segment {
				d.tidy(line, at.segment)
			}
			return d.fill(w)
		}
		if seg.Version == 0 {
			return false, nil // open: whatever comes next comes here
		}
		at = cursor{segment: at.segment + 1}
	}
}

// after returns the first segment of a line behind the n-th, 0 if there is none. Segments are only ever missing where they were
// drained and removed before.
func (d *desk) after(ctx context.Context, line *chain, n int) (int, error) {
	list, err := line.segments(ctx, d.sess)
	for _, s := range list {
		if s > n {
			return s, err
		}
	}
	return 0, err
}

// tidy removes what is empty of a line's segments before the n-th, without waiting for it.
func (d *desk) tidy(line *chain, n int) {
	d.q.background(func() {
		list, err := line.segments(d.ctx, d.sess)
		if err != nil {
			return // the next one that moves the cursor does it
		}
		b := d.sess.Batch()
		for _, s := range list {
			if s < n {
				b.Delete(line.segment(s), 1)
			}
		}
		b.Send()
	})
}

// claimBehind claims the items of a segment from a place up to end, or as many as there is room for: it moves the
// line's cursor behind them, on condition that nobody else has moved it, and makes a claim's node, in one
// transaction.
//
// The cursor is one for all, and a consumer that finds it moved has asked in vain. So one that has met others here
// moves it further, and makes claims of nobody of what it does not need: these are as many as consumers need at the
// same time, and each is taken by itself.
func (d *desk) claimBehind(line *chain, at place, end int, class string, version int32) (*window, error) {
	q := d.q
	q.mu.Lock()
	room := d.room()
	if class == largeSegment {
		room = min(room, maxLarge)
	}
	s := span{First: at.item, Last: end - 1, Class: class}
	var free []span
	if d.spread > 1 && d.claims < maxPutBack/2 {
		free = s.from(at.item + room).upTo(at.item + room*(1+min(2*d.spread, d.maxParts())) - 1).cut(room)
	}
	s = s.upTo(at.item + room - 1)
	next := s.Last + 1
	if len(free) > 0 {
		next = free[len(free)-1].Last + 1
	}
	w := d.window(line, at, s)
	ops := append([]zk.Op{zk.SetOp(line.dir, cursor{at.segment, next}.encode(), version)}, d.makeFree(line, at, free)...)
	q.mu.Unlock()
	return w, d.make(w, ops...)
}

// makeFree returns the operations that make claims of nobody, and ring the line's bell: who waits may have looked for
// such claims before, and at the cursor afterwards. The caller holds the queue's mutex.
func (d *desk) makeFree(line *chain, at place, free []span) []zk.Op {
	var ops []zk.Op
	for _, s := range free {
		path := d.freePath(place{at.priority, at.segment, s.First})
		ops = append(ops, d.q.create(path, s.encode(), zk.Persistent))
	}
	if len(free) > 0 {
		ops = append(ops, zk.SetOp(line.bell, nil, -1))
	}
	return ops
}

// maxParts is how many claims of nobody one transaction may make: those that fit into a packet, and no more than are
// taken while they are fresh.
func (d *desk) maxParts() int {
	each := 3*opSize + len(d.q.root) + d.q.aclSize()
	return max(1, min(64, (d.q.cfg.MaxPacket-headroom)/each))
}

// window returns what is to be a claim of a span that begins at a place. Those of its items that are about to be
// handed out are marked. The caller holds the queue's mutex.
func (d *desk) window(line *chain, at place, s span) *window {
	s.Handed = s.First + min(d.markAt(at), s.size()) - 1
	d.seen[line] = max(d.seen[line], at.segment)
	return &window{
		d: d, path: d.q.path(dirClaims, claimName(at, d.id, d.nextSerial())), line: line, place: at,
		asked: time.Now(), size: s.size(), pen: make(chan struct{}, 1), span: s,
	}
}

// errTaken says that somebody else was quicker to claim the same.
var errTaken = fmt.Errorf("%w, and has claimed the same", errAgain)

// make makes a claim's node in one transaction with other operations, the first of which is refused if somebody else
// was quicker: then it returns errTaken.
func (d *desk) make(w *window, ops ...zk.Op) error {
	q := d.q
	ops = append([]zk.Op{zk.CheckOp(d.node, -1), q.create(w.path, w.span.encode(), zk.Persistent)}, ops...)
	for {
		results, err := d.sess.Multi(d.ctx, ops...)
		if err == nil {
			w.token = results[0].Zxid
			return nil
		}
		failed, refused := errors.AsType[*zk.MultiError](err)
		switch {
		case refused && failed.Index == 0:
			d.Gone(d.node)
			return d.err()
		case refused && failed.Index == 1 && errors.Is(failed, zk.NoNode):
			q.forget()
			return errAgain
		case refused && failed.Index == 2 && (errors.Is(failed, zk.BadVersion) || errors.Is(failed, zk.NoNode)):
			d.crowded()
			return errTaken
		case refused && errors.Is(failed, zk.NoNode): // somebody has removed the bell, or the directory
			q.forget()
			return cmp.Or(w.line.mend(d.ctx, d.sess), errAgain)
		case d.err() != nil:
			return d.err()
		case !errors.Is(err, zk.ErrConnectionLost):
			return err
		}
		// Nobody else makes a node of this name: it tells whether we have.
		there, err := d.look(w.path)
		if err != nil {
			return err
		}
		if there[0].Exists {
			w.token = there[0].Stat.Czxid
			return nil
		}
	}
}

// look tells whether nodes are there, after everything that this session has sent before was done or never will be.
func (d *desk) look(paths ...string) ([]zk.Existence, error) {
	for {
		b := d.sess.Batch()
		passed := line.Barrier(b, d.node)
		looks := make([]*zk.Future[zk.Existence], len(paths))
		for i, path := range paths {
			looks[i] = b.Exists(path)
		}
		b.Send()
		there := make([]zk.Existence, len(paths))
		err := passed(d.ctx)
		for i := 0; i < len(looks) && err == nil; i++ {
			there[i], err = looks[i].Get(d.ctx)
		}
		if err == nil {
			return there, nil
		}
		if err := d.err(); err != nil {
			return nil, err
		}
		if !errors.Is(err, zk.ErrConnectionLost) {
			return nil, err
		}
	}
}

// maxTries is how many claims a consumer tries to take over before it lists them anew: the list grows old.
const maxTries = 3

// adoptAny takes over one of the claims, which are in the order of their places: the first that is there; or, if
// others take some at the same time, one of the first few.
func (d *desk) adoptAny(ctx context.Context, claims []claim) (bool, error) {
	for tries := 0; len(claims) > 0; {
		i := rand.IntN(min(d.spread, len(claims)))
		ok, err := d.adopt(ctx, &claims[i])
		switch {
		case errors.Is(err, errTaken):
			if tries++; tries == maxTries {
				return false, err
			}
		case ok || err != nil:
			if ok && tries == 0 {
				d.calm()
			}
			return ok, err
		}
		claims = slices.Delete(claims, i, i+1)
	}
	return false, nil
}

// crowded books that somebody else was quicker, and calm that nobody was. Consumers that meet others choose among so
// many claims as will keep them apart. One that is alone is always the first to take the first.
func (d *desk) crowded() { d.spread = min(2*d.spread, d.crowd) }

func (d *desk) calm() { d.spread = max(1, d.spread-(d.spread+7)/8) }

// adopt takes over what was given back, or left behind by a consumer that is gone. What was handed out there counts
// as tried. What there is no room for goes back, in as many parts as there are consumers.
func (d *desk) adopt(ctx context.Context, c *claim) (bool, error) {
	q := d.q
	data, stat, err := d.sess.Get(ctx, c.path)
	if errors.Is(err, zk.NoNode) {
		d.adopted(c)
		d.crowded()
		return false, errTaken
	}
	if err != nil {
		return false, err
	}
	old, ok := parseSpan(data)
	if !ok {
		d.adopted(c)
		return false, nil // not ours; it is in nobody's way
	}
	left := func(span) bool { return true }
	if c.owner != nobody {
		if left, err = d.unfinished(ctx, c, &old); err != nil {
			return false, err
		}
	}
	s, rest := old.split()
	if s.empty() {
		s, rest = rest, span{Last: -1}
	}
	q.mu.Lock()
	room := d.room()
	parts := max(1, min(d.crowd, d.maxParts()/2))
	var free []span
	for _, s := range []span{s.from(s.First + room), rest} {
		free = append(free, s.cut(max(room, (s.size()+parts-1)/parts))...)
	}
	free = slices.DeleteFunc(free, func(s span) bool { return !left(s) })
	s = s.upTo(s.First + room - 1)
	line := q.line(c.priority)
	w := d.window(line, place{c.priority, c.segment, s.First}, s)
	ops := append([]zk.Op{takeOver(c.path, stat.Version)}, d.makeFree(line, w.place, free)...)
	q.mu.Unlock()
	if err := d.make(w, ops...); err != nil {
		return false, err // it may be there still: its owner has written it meanwhile
	}
	d.adopted(c)
	q.mu.Lock()
	// There may be more where this came from, before what else is claimed, and what was given back of this is another
	// claim, which may come first. A consumer that keeps apart from others leaves that to them.
	d.dirty = d.dirty || d.spread == 1 && (len(d.windows) > 0 || len(w.span.Except) > 0)
	q.mu.Unlock()
	return d.fill(w)
}

// unfinished makes what a consumer has left behind begin with the first item that it has not finished, if there is
// one, and returns a function that tells whether something is left of a part of it. Nobody else finishes what it had
// claimed, so what is not there now never will be.
func (d *desk) unfinished(ctx context.Context, c *claim, s *span) (func(span) bool, error) {
	names, _, err := d.sess.Children(ctx, d.q.line(c.priority).segment(c.segment))
	if err != nil && !errors.Is(err, zk.NoNode) {
		return nil, err
	}
	items := numbers(names, parseItem)
	if i, _ := slices.BinarySearch(items, s.First); i < len(items) && items[i] <= s.Last {
		s.First = items[i]
	}
	return func(s span) bool {
		i, _ := slices.BinarySearch(items, s.First)
		return i < len(items) && items[i] <= s.Last
	}, nil
}

// adopted forgets a claim of a consumer that is gone, which has been taken over.
func (d *desk) adopted(c *claim) {
	d.orphans = slices.DeleteFunc(d.orphans, func(o claim) bool { return o.path == c.path })
}

// fill reads a claim's items. It reports false if none of them is there any more; then the claim is removed. What
// cannot be read is given back, with what stands behind it.
func (d *desk) fill(w *window) (bool, error) {
	stock, err := d.read(w.line.segment(w.segment), w.span.Class, w.span.items())
	if unread, ok := errors.AsType[*unreadError](err); ok {
		w.stock = stock
		err = w.giveBack(d.ctx, unread.seq)
		if err == nil && len(stock) == 0 {
			return false, unread
		}
		if err != nil && zk.OutcomeOf(err) != zk.Unknown {
			d.owe(w)
		}
	}
	if err == nil {
		err = d.certify()
	}
	if err != nil {
		return false, err
	}
	q := d.q
	var good, bad []stocked
	for _, s := range stock {
		tries := s.rec.attempts + w.span.Tries
		if s.rec.priority == corrupt || q.cfg.MaxAttempts > 0 && tries >= q.cfg.MaxAttempts {
			bad = append(bad, s)
		} else {
			good = append(good, s)
		}
	}
	q.mu.Lock()
	w.filled = time.Now()
	w.stock, w.open = good, len(bad)
	d.open += len(bad)
	w.settled = len(stock) == 0
	if len(good) > 0 {
		d.add(w)
	}
	d.weigh()
	q.mu.Unlock()
	if len(stock) == 0 {
		w.clear()
		return false, errAgain
	}
	var failed []error
	for _, s := range bad {
		it := &Item{q: q, d: d, w: w, seq: s.seq, rec: s.rec, created: s.created, attempt: s.rec.attempts + w.span.Tries}
		reason := fmt.Sprintf("%d attempts did not finish it, and the last consumer that had it is gone", it.attempt)
		if s.rec.priority == corrupt {
			reason = errRecord.Error()
		}
		failed = append(failed, it.bury(reason)) // one that cannot be is in nobody's way
	}
	if err := errors.Join(failed...); err != nil {
		return false, err
	}
	if len(good) == 0 {
		return false, errAgain
	}
	return true, nil
}
