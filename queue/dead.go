package queue

// Dead letters.

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// DeadLetter is an item that is no longer delivered.
type DeadLetter struct {
	ID         string
	Body       []byte
	Headers    map[string]string
	Priority   int
	Attempts   int
	EnqueuedAt time.Time // when it was first put
	DiedAt     time.Time
	Reason     string
	Failures   []Failure // the latest failed attempts that have a reason
}

// DeadLetters yields the dead letters, in the order in which they have died. It reads a part of them at a time.
func (q *Queue) DeadLetters(ctx context.Context) iter.Seq2[DeadLetter, error] {
	return func(yield func(DeadLetter, error) bool) {
		err := q.dead.each(ctx, func(x *storedItem) (bool, error) { return yield(x.letter(), nil), nil })
		if err != nil {
			yield(DeadLetter{}, q.failed("list dead letters", err))
		}
	}
}

// deadLetters is the part of a Queue that looks after its dead letters.
type deadLetters struct {
	reader
	sweeper *sweeper
}

// storedItem is an item and where it is.
type storedItem struct {
	path    string
	version int32
	created int64
	rec     *segment.Record
}

func (x *storedItem) letter() DeadLetter {
	return DeadLetter{
		ID: x.rec.ID.String(), Body: x.rec.Body, Headers: x.rec.Headers,
		Priority: x.rec.Priority, Attempts: x.rec.Attempts,
		EnqueuedAt: time.UnixMilli(x.rec.Enqueued), DiedAt: time.UnixMilli(x.created),
		Reason: x.rec.Reason, Failures: failures(x.rec.Failures),
	}
}

// each calls f with the dead letters, in their order, until f returns false or an error.
func (l *deadLetters) each(ctx context.Context, f func(*storedItem) (bool, error)) error {
	dead := l.layout.deadLetters()
	var list []int
	err := l.retryRead(ctx, func(sess *zk.Session) (err error) {
		list, err = dead.Segments(ctx, sess)
		return err
	})
	if err != nil {
		return err
	}
	for _, n := range list {
		var items []int
		err := l.retryRead(ctx, func(sess *zk.Session) error {
			names, _, err := sess.Children(ctx, dead.Segment(n))
			if errors.Is(err, zk.NoNode) {
				return nil
			}
			items = segment.Numbers(names, segment.ParseItem)
			return err
		})
		if err != nil {
			return err
		}
		for chunk := range slices.Chunk(items, segment.ReadChunk) {
			found, err := l.readStored(ctx, dead.Segment(n), chunk)
			if err != nil {
				return err
			}
			for _, x := range found {
				if more, err := f(x); err != nil || !more {
					return err
				}
			}
		}
	}
	return nil
}

func (r reader) readStored(ctx context.Context, dir string, items []int) ([]*storedItem, error) {
	var found []*storedItem
	err := r.retryRead(ctx, func(sess *zk.Session) error {
		found = nil
		class, _, err := sess.Get(ctx, dir)
		if errors.Is(err, zk.NoNode) {
			return nil
		}
		if err != nil {
			return err
		}
		nodes, err := r.layout.store.Read(ctx, sess, dir, items, segment.Large(class))
		if err != nil {
			return err
		}
		for i, node := range nodes {
			if node == nil {
				continue
			}
			rec, err := segment.DecodeRecord(node.Data)
			if err != nil {
				rec = &segment.Record{Body: node.Data, Enqueued: node.Stat.Ctime, Reason: segment.ErrRecord.Error()}
			}
			path := dir + "/" + segment.ItemName(items[i])
			found = append(found, &storedItem{path, node.Stat.Version, node.Stat.Ctime, rec})
		}
		return nil
	})
	return found, err
}

// Requeue puts dead letters back into the queue, behind what has arrived by now, with all their attempts before them,
// and returns how many. It takes those with the given ids, or all if none is given. Each goes back in one
// transaction, so it is always in one place. One that has gone back while the answer was lost may not be counted.
func (q *Queue) Requeue(ctx context.Context, ids ...string) (int, error) {
	n := 0
	err := q.dead.each(ctx, func(x *storedItem) (bool, error) {
		if len(ids) > 0 && !slices.Contains(ids, x.rec.ID.String()) {
			return true, nil
		}
		again := *x.rec
		again.Attempts, again.Reason, again.Delay, again.Due = 0, "", 0, 0
		moved, err := q.dead.takeOut(ctx, x, &again)
		if moved {
			n++
		}
		return len(ids) == 0 || n < len(ids), err
	})
	if err != nil {
		return n, q.failed("requeue", err)
	}
	q.dead.tidy()
	return n, nil
}

// PurgeDead removes dead letters for good, and returns how many. It takes those with the given ids, or all if none is
// given.
func (q *Queue) PurgeDead(ctx context.Context, ids ...string) (int, error) {
	n := 0
	err := q.dead.each(ctx, func(x *storedItem) (bool, error) {
		if len(ids) > 0 && !slices.Contains(ids, x.rec.ID.String()) {
			return true, nil
		}
		removed, err := q.dead.takeOut(ctx, x, nil)
		if removed {
			n++
		}
		return len(ids) == 0 || n < len(ids), err
	})
	if err != nil {
		return n, q.failed("purge dead letters of", err)
	}
	q.dead.tidy()
	return n, nil
}

// takeOut removes a dead letter, and appends it to its ready list in the same transaction if there is something to
// append. It reports whether this call has moved the letter.
func (l *deadLetters) takeOut(ctx context.Context, x *storedItem, to *segment.Record) (bool, error) {
	moved := false
	err := l.retryRead(ctx, func(sess *zk.Session) error {
		for {
			p := l.layout.store.NewTxn(zk.DeleteOp(x.path, x.version))
			if to != nil {
				c := l.layout.readyList(to.Priority)
				if err := p.Find(ctx, sess, c); err != nil {
					return err
				}
				p.Append(c, to.Encode())
			}
			results, err := sess.Multi(ctx, p.Ops()...)
			failed, refused := errors.AsType[*zk.MultiError](err)
			switch {
			case err == nil:
				p.Done(results)
				moved = true
				return nil
			case refused && failed.Index == 0:
				// Another client was quicker; or we were, and did not get the answer.
				return nil
			case p.Stale(err):
			case zk.OutcomeOf(err) == zk.Unknown && ctx.Err() == nil:
				return fmt.Errorf("%w: %w", zk.ErrConnectionLost, err) // retryRead calls again: the letter's node tells
			default:
				return err
			}
		}
	})
	return moved, err
}

// tidy removes segments of dead letters that are sealed and empty, in the background.
func (l *deadLetters) tidy() {
	l.sweeper.run(func(ctx context.Context, sess *zk.Session) {
		dead := l.layout.deadLetters()
		list, err := dead.Segments(ctx, sess)
		if err != nil {
			return // the next one does it
		}
		b := sess.Batch()
		gone := make([]*zk.Future[struct{}], len(list))
		for i, n := range list {
			gone[i] = b.Delete(dead.Segment(n), 1)
		}
		b.Send()
		for _, g := range gone {
			_, _ = g.Get(ctx) // refused if it is open or not empty
		}
	})
}
