package queue

import (
	"context"
	"errors"
	"fmt"
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
	if err := d.listLines(ctx); err != nil {
		return false, err
	}
	claims, err := q.listClaims(ctx, d.sess)
	if err != nil {
		return false, err
	}
	q.mu.Lock()
	d.claims = len(claims)
	q.mu.Unlock()
	for _, p := range d.lines {
		if has && p > last.priority {
			break
		}
		for i := range claims {
			c := &claims[i]
			if c.priority != p || !c.free || has && c.place.compare(last) >= 0 {
				continue
			}
			if ok, err := d.adopt(ctx, c); ok || err != nil {
				return ok, err
			}
		}
		if has && p >= limit.priority {
			continue // what its line holds comes later
		}
		if ok, err := d.claimFrom(ctx, p, !more); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
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

// claimFrom claims the next items of a line. It reports false if there are none; then, if wanted, an alarm is set that was so before the last look.
func (d *desk) claimFrom(ctx context.Context, priority int, arm bool) (bool, error) {
	line := d.q.line(priority)
	d.q.mu.Lock()
	quiet := !d.bells[priority].rung()
	d.q.mu.Unlock()
	if quiet {
		return false, nil
	}
	found, err := d.claimNext(ctx, line, priority)
	if found {
		d.q.mu.Lock()
		d.more(priority)
		d.q.mu.Unlock()
	}
	if found || err != nil || !arm {
		return found, err
	}
	_, _, w, err := d.sess.GetW(ctx, line.bell)
	if errors.Is(err, zk.NoNode) {
		return false, nil // somebody is removing the line; the alarm on the list of lines tells of a new one
	}
	if err != nil {
		return false, err
	}
	if found, err := d.claimNext(ctx, line, priority); found || err != nil {
		w.Close()
		d.q.mu.Lock()
		d.more(priority)
		d.q.mu.Unlock()
		return found, err
	}
	d.q.mu.Lock()
	d.bells[priority] = &alarm{watch: w}
	d.q.mu.Unlock()
	return false, nil
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
			w, err := d.claim(line, place{priority, at.segment, at.item}, end, string(data) == largeSegment, stat.Version)
			if err != nil {
				return false, err
			}
			if at.segment > from.segment {
				d.tidy(line, at.segment)
			}
			return d.fill(w, string(data))
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

// claim claims the items of a segment from a place up to end, or as many as there is room for: it moves the line's cursor behind them, on
// condition that nobody else has moved it, and makes a claim's node, in one transaction.
func (d *desk) claim(line *chain, at place, end int, large bool, version int32) (*window, error) {
	q := d.q
	q.mu.Lock()
	room, mark := d.room(), d.markAt(at)
	serial := d.nextSerial()
	q.mu.Unlock()
	if large {
		room = min(room, maxLarge)
	}
	n := min(room, end-at.item)
	s := span{First: at.item, Last: at.item + n - 1, Handed: at.item + min(n, mark) - 1}
	w := d.window(line, at, s, serial)
	return w, d.make(w, zk.SetData(line.dir, cursor{at.segment, at.item + n}.encode(), version))
}

func (d *desk) window(line *chain, at place, s span, serial string) *window {
	return &window{
		d: d, path: d.q.path(dirClaims, claimName(at, d.id, serial)), line: line, place: at,
		claimed: time.Now(), size: s.Last - s.First + 1, pen: make(chan struct{}, 1), span: s,
	}
}

// make makes a claim's node in one transaction with other operations. It returns errAgain if somebody else was quicker.
func (d *desk) make(w *window, ops ...zk.Op) error {
	q := d.q
	ops = append([]zk.Op{zk.Check(d.node, -1), q.create(w.path, w.span.encode(), zk.Persistent)}, ops...)
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
		case refused && (errors.Is(failed, zk.BadVersion) || errors.Is(failed, zk.NoNode)):
			return errAgain
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

// adopt takes over what was given back, or left behind by a consumer that is gone. What was handed out there counts as tried.
func (d *desk) adopt(ctx context.Context, c *claim) (bool, error) {
	q := d.q
	path := q.path(dirClaims, c.name)
	data, stat, err := d.sess.Get(ctx, path)
	if errors.Is(err, zk.NoNode) {
		return false, nil // somebody else was quicker
	}
	if err != nil {
		return false, err
	}
	old, ok := parseSpan(data)
	if !ok {
		return false, nil // not ours; it is in nobody's way
	}
	tried, rest := old.split()
	q.mu.Lock()
	room := d.room()
	s := tried
	if tried.empty() {
		s, rest.First = rest, min(rest.Last, rest.First+room-1)+1
		s.Last, rest.Handed = rest.First-1, rest.First-1
	}
	at := place{c.priority, c.segment, s.First}
	s.Handed = s.First + min(d.markAt(at), s.Last-s.First+1) - 1
	mine, back := d.nextSerial(), d.nextSerial()
	q.mu.Unlock()
	ops := []zk.Op{takeOver(path, stat.Version)}
	if !rest.empty() {
		rest.Handed = rest.First - 1
		behind := place{c.priority, c.segment, rest.First}
		ops = append(ops, q.create(q.path(dirClaims, claimName(behind, nobody, back)), rest.encode(), zk.Persistent))
	}
	w := d.window(q.line(c.priority), at, s, mine)
	if err := d.make(w, ops...); err != nil {
		return false, err
	}
	q.mu.Lock()
	d.dirty = true // there may be more where this came from, before what else is claimed
	q.mu.Unlock()
	return d.fill(w, "")
}

// fill reads a claim's items. It reports false if none of them is there any more; then the claim is removed. Class is what the segment's data
// says, "" if that is not known yet.
func (d *desk) fill(w *window, class string) (bool, error) {
	stock, err := d.read(w.line.segment(w.segment), class, w.span.items())
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
