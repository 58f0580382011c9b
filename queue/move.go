package queue

// Moving items between lists.

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/queue/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

const (
	// moverWait is how long consumers leave a bucket to one that has announced that it empties it, and has not moved
	// anything since.
	moverWait = 2 * time.Second
	// minPacket is the smallest size to which transactions that move items shrink on connections that break.
	minPacket = 16 << 10
)

// moveAll moves items: those of each list in the order of their times.
func (m *mover) moveAll(ctx context.Context, items []*delayedItem) error {
	slices.SortStableFunc(items, func(a, b *delayedItem) int {
		return cmp.Or(cmp.Compare(a.to.Dir, b.to.Dir), cmp.Compare(a.due, b.due))
	})
	for len(items) > 0 {
		// One list per transaction: change nodes and ends of more would not fit into a packet that one large item
		// fills.
		n := slices.IndexFunc(items, func(x *delayedItem) bool { return x.to.Dir != items[0].to.Dir })
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

// move moves as many items as fit into one transaction to their list, and returns how many. It returns errAgain if it
// does not know: then the items' nodes tell, when they are read again.
func (m *mover) move(ctx context.Context, items []*delayedItem) (int, error) {
	co, q := m.co, m.co.q
	to := items[0].to
	p := q.layout.store.NewTxn()
	p.Packet = cmp.Or(m.f.packet, p.Packet)
	if err := p.Find(co.ctx, co.sess, to); err != nil {
		return 0, err
	}
	if m.marker != "" {
		p.Guard(zk.SetOp(m.marker, co.moverMark(), -1))
	}
	signs := p.Guards()
	for i, x := range items {
		if x.rec == nil {
			data, stat, err := co.sess.Get(ctx, x.path)
			if errors.Is(err, zk.NoNode) {
				return 0, errAgain
			}
			if err != nil {
				return 0, err
			}
			x.rec = x.become(&zk.Data{Data: data, Stat: stat}, q.clock.now())
		}
		data := x.rec.Encode()
		if i > 0 && (i == segment.ReadChunk || !p.Fits(to, len(data)+segment.OpSize+len(x.path))) {
			break
		}
		p.Guard(zk.DeleteOp(x.path, -1))
		p.Append(to, data)
	}
	results, err := co.sess.Multi(co.ctx, p.Ops()...)
	m.f.moveBroke(err)
	failed, refused := errors.AsType[*zk.MultiError](err)
	switch {
	case err == nil:
		p.Done(results)
		if signs > 0 {
			q.clock.saw(results[0].Stat.Mtime)
		}
		n := p.Guards() - signs
		for _, x := range items[:n] {
			if x.dead {
				q.died()
			}
			if hook := q.cfg.Hooks.Dead; hook != nil && x.dead {
				hook(co.ctx, x.rec.ID.String(), x.rec.Reason)
			}
		}
		return n, nil
	case p.Stale(err), errors.Is(err, zk.ErrConnectionLost):
		return 0, errAgain
	case refused && failed.Index < p.Guards() && errors.Is(failed, zk.NoNode):
		return 0, errAgain // another consumer was quicker
	case co.err() != nil:
		return 0, co.err()
	default:
		return 0, err
	}
}

// moveBroke records whether the connection broke under a transaction that moves items. If it does so repeatedly, the
// servers may not accept requests of this size: the next are smaller, and ready items do not wait for them.
func (f *fetcher) moveBroke(err error) {
	if err == nil || zk.OutcomeOf(err) != zk.Unknown {
		f.breaks, f.moveAfter = 0, 0
		return
	}
	const some = 3
	if f.breaks++; f.breaks < some {
		return
	}
	f.packet = max(min(minPacket, f.co.q.cfg.MaxPacket), cmp.Or(f.packet, f.co.q.cfg.MaxPacket)/2)
	pause := min(10*time.Second, 100*time.Millisecond<<min(f.breaks-some, 10))
	f.moveAfter = f.co.q.clock.now() + pause.Milliseconds()
}

// moverMark is the data of a bucket's node while this consumer empties it.
func (co *claimant) moverMark() []byte { return []byte("mover " + co.id) }

// taken reports whether another consumer is emptying a bucket. Otherwise it returns the version of the bucket's node.
func (m *mover) taken(ctx context.Context, c *segment.List) (bool, int32, error) {
	data, stat, err := m.co.sess.Get(ctx, c.Dir)
	if errors.Is(err, zk.NoNode) {
		return false, 0, errAgain // it was emptied just now
	}
	if err != nil {
		return false, 0, err
	}
	age, wait := m.co.q.clock.now()-stat.Mtime, moverWait.Milliseconds()
	_, cursor := segment.ParseCursor(data)
	switch {
	case cursor, string(data) == string(m.co.moverMark()), age >= wait:
		return false, stat.Version, nil
	case age <= -wait: // that server's clock was ahead: it says nothing
		return false, stat.Version, nil
	}
	m.sooner(stat.Mtime + wait)
	return true, 0, nil
}

// announce tells the other consumers that this one empties a bucket, unless another has done so just now.
func (m *mover) announce(ctx context.Context, c *segment.List, version int32) (bool, error) {
	stat, err := m.co.sess.Set(ctx, c.Dir, m.co.moverMark(), version)
	switch {
	case errors.Is(err, zk.BadVersion):
		m.sooner(m.co.q.clock.now() + moverWait.Milliseconds())
		return false, nil
	case errors.Is(err, zk.NoNode):
		return false, errAgain
	case err != nil:
		return false, err
	}
	m.co.q.clock.saw(stat.Mtime)
	m.marker = c.Dir
	return true, nil
}

// clear removes the buckets in which nothing is left, and the empty segments of the others. The first bucket goes
// last, because it announces that this consumer empties it.
func (m *mover) clear(ctx context.Context, group []bucket, segments []*bucketSegment) error {
	co := m.co
	for _, b := range slices.Backward(group) {
		kept, empty, last := false, true, 0
		for _, s := range segments {
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
				// Refused if a node in it is not an item: then so is the removal of the bucket.
				_ = co.sess.Delete(ctx, s.c.Segment(s.segment), -1)
			}
		}
		if kept {
			m.passed[b] = true
		}
		if empty { // another client has removed its segments
			_ = co.sess.Delete(ctx, co.q.layout.bucket(b).Dir, -1)
		}
		if kept || last == 0 {
			continue
		}
		err := co.q.layout.bucket(b).Drop(ctx, co.sess, last)
		switch {
		case err == nil, errors.Is(err, zk.NoNode):
		case errors.Is(err, zk.NotEmpty):
			// Something is in it: a node that is not an item, which stays, or an item that was put just now, which
			// has changed the change node.
			m.passed[b] = true
		default:
			return err
		}
	}
	return nil
}
