package queue

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

const (
	// moverWait is for how long consumers leave a bucket to one that has said that it empties it, and has not moved
	// anything since.
	moverWait = 2 * time.Second
	// minPacket is to what the size of a transaction falls that moves items, on connections that break.
	minPacket = 16 << 10
)

// moveAll moves items: those of each chain in the order of their times.
func (m *mover) moveAll(ctx context.Context, items []*delayedItem) error {
	slices.SortStableFunc(items, func(a, b *delayedItem) int {
		return cmp.Or(cmp.Compare(a.to.dir, b.to.dir), cmp.Compare(a.due, b.due))
	})
	for len(items) > 0 {
		// One chain a transaction: bells and ends of more would not fit into a packet that one large item fills.
		n := slices.IndexFunc(items, func(x *delayedItem) bool { return x.to.dir != items[0].to.dir })
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

// move moves as many items as fit into one transaction to their chain, and returns how many. It returns errAgain if it
// is not known to have: then the items' nodes tell, when they are read again.
func (m *mover) move(ctx context.Context, items []*delayedItem) (int, error) {
	d, q := m.d, m.d.q
	to := items[0].to
	p := q.newPlan()
	p.packet = cmp.Or(d.packet, p.packet)
	if err := p.at(d.ctx, d.sess, to); err != nil {
		return 0, err
	}
	var guards []zk.Op
	if m.sign != "" {
		guards = append(guards, zk.SetOp(m.sign, d.moverSign(), -1))
		p.size += opSize + len(m.sign)
	}
	signs := len(guards)
	for i, x := range items {
		if x.rec == nil {
			data, stat, err := d.sess.Get(ctx, x.path)
			if errors.Is(err, zk.NoNode) {
				return 0, errAgain
			}
			if err != nil {
				return 0, err
			}
			x.rec = x.become(&zk.Data{Data: data, Stat: stat}, q.clock.now())
		}
		data := x.rec.encode()
		if i > 0 && (i == readChunk || !p.fits(to, len(data)+opSize+len(x.path))) {
			break
		}
		guards = append(guards, zk.DeleteOp(x.path, -1))
		p.size += opSize + len(x.path)
		p.append(to, data)
	}
	p.guards = len(guards)
	p.ops = slices.Concat(guards, p.ops)
	p.ring()
	results, err := d.sess.Multi(d.ctx, p.ops...)
	d.moveBroke(err)
	failed, refused := errors.AsType[*zk.MultiError](err)
	switch {
	case err == nil:
		p.done(results)
		if signs > 0 {
			q.clock.saw(results[0].Stat.Mtime)
		}
		n := len(guards) - signs
		for _, x := range items[:n] {
			if hook := q.cfg.Hooks.Dead; hook != nil && x.dead {
				hook(d.ctx, x.rec.name(), x.rec.reason)
			}
		}
		return n, nil
	case p.stale(err), errors.Is(err, zk.ErrConnectionLost):
		return 0, errAgain
	case refused && failed.Index < p.guards && errors.Is(failed, zk.NoNode):
		return 0, errAgain // somebody else was quicker
	case d.err() != nil:
		return 0, d.err()
	default:
		return 0, err
	}
}

// moveBroke books whether the connection broke under a transaction that moves items. If it does so repeatedly, the
// servers may not accept requests of this size: the next are smaller, and what is ready does not wait for them.
func (d *desk) moveBroke(err error) {
	if err == nil || zk.OutcomeOf(err) != zk.Unknown {
		d.breaks, d.moveAfter = 0, 0
		return
	}
	const some = 3
	if d.breaks++; d.breaks < some {
		return
	}
	d.packet = max(min(minPacket, d.q.cfg.MaxPacket), cmp.Or(d.packet, d.q.cfg.MaxPacket)/2)
	pause := min(10*time.Second, 100*time.Millisecond<<min(d.breaks-some, 10))
	d.moveAfter = d.q.clock.now() + pause.Milliseconds()
}

// moverSign is what a bucket's node says while a consumer empties it.
func (d *desk) moverSign() []byte { return []byte("mover " + d.id) }

// taken reports whether another consumer is emptying a bucket. Otherwise it returns the version of the bucket's node.
func (m *mover) taken(ctx context.Context, c *chain) (bool, int32, error) {
	data, stat, err := m.d.sess.Get(ctx, c.dir)
	if errors.Is(err, zk.NoNode) {
		return false, 0, errAgain // it was emptied just now
	}
	if err != nil {
		return false, 0, err
	}
	age, wait := m.d.q.clock.now()-stat.Mtime, moverWait.Milliseconds()
	_, cursor := parseCursor(data)
	switch {
	case cursor, string(data) == string(m.d.moverSign()), age >= wait:
		return false, stat.Version, nil
	case age <= -wait: // that server's clock was ahead: it says nothing
		return false, stat.Version, nil
	}
	m.sooner(stat.Mtime + wait)
	return true, 0, nil
}

// announce tells the others that we empty a bucket, unless another consumer has done so just now.
func (m *mover) announce(ctx context.Context, c *chain, version int32) (bool, error) {
	stat, err := m.d.sess.Set(ctx, c.dir, m.d.moverSign(), version)
	switch {
	case errors.Is(err, zk.BadVersion):
		m.sooner(m.d.q.clock.now() + moverWait.Milliseconds())
		return false, nil
	case errors.Is(err, zk.NoNode):
		return false, errAgain
	case err != nil:
		return false, err
	}
	m.d.q.clock.saw(stat.Mtime)
	m.sign = c.dir
	return true, nil
}

// clear removes the buckets in which nothing is left, and what is empty of the others. The first bucket goes last,
// because it says that we are at it.
func (m *mover) clear(ctx context.Context, group []bucket, shelves []*shelf) error {
	d := m.d
	for _, b := range slices.Backward(group) {
		kept, empty, last := false, true, 0
		for _, s := range shelves {
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
				// Refused if something is in it that is no item: then so is the removal of the bucket.
				_ = d.sess.Delete(ctx, s.c.segment(s.segment), -1)
			}
		}
		if kept {
			m.passed[b] = true
		}
		if empty { // somebody has removed its segments
			_ = d.sess.Delete(ctx, d.q.bucket(b).dir, -1)
		}
		if kept || last == 0 {
			continue
		}
		err := d.q.bucket(b).drop(ctx, d.sess, last)
		switch {
		case err == nil, errors.Is(err, zk.NoNode):
		case errors.Is(err, zk.NotEmpty):
			// Something is in it: no item, which stays, or one that was put just now, which has rung the bell.
			m.passed[b] = true
		default:
			return err
		}
	}
	return nil
}
