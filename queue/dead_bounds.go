package queue

// Bounds of the dead letters.

import (
	"context"
	"errors"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// dieBatch is how many dead letters are removed before they are counted again, or as many as there are segments if
// those are more: to count takes a request for each.
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
// each dead letter of its own, and every minute. If that fails, a later attempt or another consumer does it.
//
// It does not wake when the next letter becomes too old: all consumers would, at the same moment, for every letter.
func (d *dispatcher) keepBounds(co *claimant) {
	ctx, cancel := context.WithCancel(co.ctx)
	defer cancel()
	defer context.AfterFunc(d.ctx, cancel)()
	letters := &deadLetters{reader{base: d.base}, d.sweeper, nil}
	again := time.NewTicker(trimEvery)
	defer again.Stop()
	for {
		letters.trim(ctx, co)
		again.Reset(trimEvery)
		select {
		case <-ctx.Done():
			return
		case <-d.dead:
		case <-again.C:
		}
	}
}

// trim removes the dead letters that are too many or too old, the oldest first.
func (l *deadLetters) trim(ctx context.Context, co *claimant) {
	if l.cfg.KeepDead > 0 {
		if err := co.askTime(ctx); err != nil {
			return
		}
	} else if excess, err := l.excess(ctx, co.sess); err != nil || excess <= 0 {
		return // usually there is nothing to do, and one count tells
	}
	removed := false
	defer func() {
		if removed {
			l.tidy()
		}
	}()
	for {
		n, err := l.trimSome(ctx, co.sess)
		removed = removed || n > 0
		if err != nil || n < dieBatch {
			return
		}
	}
}

// trimSome removes a batch of dead letters at most, and returns how many.
//
// It lists the oldest before it counts all. Those that others remove after the list are among the oldest, too: it has
// not counted them, or it finds them gone and counts them as removed by itself. So consumers that do it at the same
// time do not remove more than one would.
func (l *deadLetters) trimSome(ctx context.Context, sess *zk.Session) (n int, err error) {
	oldest, err := l.oldest(ctx, sess)
	if err != nil {
		return 0, err
	}
	if l.cfg.MaxDead > 0 {
		excess, err := l.excess(ctx, sess)
		if err != nil {
			return 0, err
		}
		n = max(0, min(excess, len(oldest)))
	}
	if l.cfg.KeepDead > 0 {
		old, err := l.tooOld(ctx, sess, oldest[n:])
		if err != nil {
			return 0, err
		}
		n += old
	}
	// Of any version: one that an operator has written to is a dead letter, too.
	remove := func(b *zk.Batch, path string) *zk.Future[struct{}] { return b.Delete(path, -1) }
	for _, g := range attempt.Each(sess, oldest[:n], remove) {
		if _, err := g.Get(ctx); err != nil && !errors.Is(err, zk.NoNode) {
			return 0, err
		}
	}
	return n, nil
}

// excess returns how many dead letters there are beyond the bound.
func (l *deadLetters) excess(ctx context.Context, sess *zk.Session) (int, error) {
	fills, err := l.layout.deadLetters().Fills(ctx, sess)
	return fills.Left() - l.cfg.MaxDead, err
}

// oldest returns the paths of the first batch of dead letters, in the order of their deaths. It removes the segments
// before them, which are empty: otherwise each batch would look through those of all batches before.
func (l *deadLetters) oldest(ctx context.Context, sess *zk.Session) (paths []string, err error) {
	dead := l.layout.deadLetters()
	segments, err := dead.Segments(ctx, sess)
	if err != nil {
		return nil, err
	}
	for i, s := range segments {
		items, err := dead.Items(ctx, sess, s)
		if err != nil {
			return nil, err
		}
		if len(items) == 0 && i < len(segments)-1 {
			_ = sess.Delete(ctx, dead.Segment(s), 1) // refused if it is open, or another program's node is in it
		}
		for _, item := range items {
			if len(paths) == max(dieBatch, len(segments)) {
				return paths, nil
			}
			paths = append(paths, dead.Item(s, item))
		}
	}
	return paths, nil
}

// tooOld returns how many of the letters, the oldest first, have been dead for too long, by the times at which their
// nodes were created. Those that are gone count: they were the oldest.
func (l *deadLetters) tooOld(ctx context.Context, sess *zk.Session, letters []string) (n int, err error) {
	for _, look := range attempt.Each(sess, letters, (*zk.Batch).Exists) {
		e, err := look.Get(ctx)
		if err != nil {
			return 0, err
		}
		if e.Stat.Ctime+l.cfg.KeepDead.Milliseconds() > l.clock.now() { // the Ctime of one that is gone is 0
			return n, nil
		}
		n++
	}
	return n, nil
}
