package queue

// Bounds of the dead letters.

import (
	"context"
	"errors"
	"time"

	"github.com/seed-a3166700/turnstile/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// dieBatch is how many dead letters are removed before they are counted again.
const dieBatch = 200

// trimEvery is how often a consumer looks at least whether there are dead letters to remove: those of consumers that
// are gone, and those that have become too old.
const trimEvery = time.Minute

// died tells that there is another dead letter.
func (b *base) died() {
	select {
	case b.dead <- struct{}{}:
	default:
	}
}

// bounded reports whether dead letters are bounded.
func (c *Config) bounded() bool { return c.MaxDead > 0 || c.KeepDead > 0 }

// keepBounds removes dead letters that are too many or too old, as long as the consumer lives: when it comes, after
// each dead letter of its own, and now and then. If that fails, a later attempt or another consumer does it.
func (d *dispatcher) keepBounds(co *consumer) {
	ctx, cancel := context.WithCancel(co.ctx)
	defer cancel()
	defer context.AfterFunc(d.ctx, cancel)()
	letters := &deadLetters{reader{d.base}, d.sweeper}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.dead:
		case <-timer.C:
		}
		wait := trimEvery
		if next, err := letters.trim(ctx, co); err == nil && next > 0 {
			wait = min(wait, next)
		}
		timer.Reset(wait)
	}
}

// trim removes the dead letters that are too many or too old, the oldest first. It returns after how long the next is
// too old, 0 if none will be.
func (l *deadLetters) trim(ctx context.Context, co *consumer) (next time.Duration, err error) {
	if l.cfg.KeepDead > 0 {
		if err := co.fetcher.askTime(ctx); err != nil {
			return 0, err
		}
	}
	removed := false
	defer func() {
		if removed {
			l.tidy()
		}
	}()
	for {
		n, next, err := l.trimSome(ctx, co.sess)
		removed = removed || n > 0
		if err != nil || n < dieBatch {
			return next, err
		}
	}
}

// trimSome removes at most dieBatch dead letters, and returns how many.
//
// What it removes are the oldest of those that it has counted. A letter that has gone otherwise by then counts as one
// that it has removed. So consumers that do it at the same time do not remove more than one would.
func (l *deadLetters) trimSome(ctx context.Context, sess *zk.Session) (n int, next time.Duration, err error) {
	dead := l.layout.deadLetters()
	excess := -1
	if l.cfg.MaxDead > 0 {
		total, err := dead.Count(ctx, sess)
		if err != nil {
			return 0, 0, err
		}
		excess = total - l.cfg.MaxDead
	}
	if excess <= 0 && l.cfg.KeepDead == 0 {
		return 0, 0, nil
	}
	segments, err := dead.Segments(ctx, sess)
	if err != nil {
		return 0, 0, err
	}
	for _, s := range segments {
		names, _, err := sess.Children(ctx, dead.Segment(s))
		if errors.Is(err, zk.NoNode) {
			continue
		}
		if err != nil {
			return n, 0, err
		}
		items := segment.Numbers(names, segment.ParseItem)
		items = items[:min(len(items), dieBatch-n)]
		old, next, err := l.tooOld(ctx, sess, s, items, excess-n)
		if err != nil {
			return n, 0, err
		}
		b := sess.Batch()
		gone := make([]*zk.Future[struct{}], len(old))
		for i, item := range old {
			gone[i] = b.Delete(dead.Item(s, item), 0) // no client writes it
		}
		b.Send()
		for _, g := range gone {
			if _, err := g.Get(ctx); err != nil && !errors.Is(err, zk.NoNode) {
				return n, 0, err
			}
			n++
		}
		if n == dieBatch || len(old) < len(items) {
			return n, next, nil
		}
	}
	return n, 0, nil
}

// tooOld returns the first of the items of a segment, which are in the order of their deaths: as many as are in excess,
// and those behind them that have been dead for too long. It also returns after how long the next will have been.
func (l *deadLetters) tooOld(
	ctx context.Context, sess *zk.Session, s int, items []int, excess int,
) (old []int, next time.Duration, err error) {
	n := max(0, min(excess, len(items)))
	if l.cfg.KeepDead == 0 {
		return items[:n], 0, nil
	}
	b := sess.Batch()
	looks := make([]*zk.Future[zk.Existence], 0, len(items)-n)
	for _, item := range items[n:] {
		looks = append(looks, b.Exists(l.layout.deadLetters().Item(s, item)))
	}
	b.Send()
	for _, look := range looks {
		e, err := look.Get(ctx)
		if err != nil {
			return nil, 0, err
		}
		left := e.Stat.Ctime + l.cfg.KeepDead.Milliseconds() - l.clock.now()
		if e.Exists && left > 0 {
			return items[:n], time.Duration(left) * time.Millisecond, nil
		}
		n++
	}
	return items[:n], 0, nil
}
