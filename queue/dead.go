package queue

// Dead letters.

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/queue/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// DeadLetter is an item that is no longer delivered.
type DeadLetter struct {
	ID         string
	Body       []byte
	Headers    map[string]string
	Priority   int
	Group      string // "" if it had none
	Attempts   int
	EnqueuedAt time.Time // when it was first put
	DiedAt     time.Time
	Reason     string
	Failures   []Failure // the latest failed attempts that have a reason
}

// DeadLetters yields the dead letters, in the order in which they have died. It reads a part of them at a time. Those
// that cannot be read it leaves out, as Items does.
func (q *Queue) DeadLetters(ctx context.Context) iter.Seq2[DeadLetter, error] {
	return func(yield func(DeadLetter, error) bool) {
		err := q.letters.each(ctx, func(x *storedItem) (bool, error) { return yield(x.letter(), nil), nil })
		if err != nil {
			yield(DeadLetter{}, q.failed("list dead letters", err))
		}
	}
}

// deadLetters is the part of a Queue that looks after its dead letters.
type deadLetters struct {
	reader
	sweeper  *sweeper
	producer *producer
}

// storedItem is an item and where it is.
type storedItem struct {
	path    string
	seq     int
	version int32
	created int64
	rec     *segment.Record
}

// newStored returns the item in a node of a segment. What is not an item becomes one with the reason of that.
func newStored(dir string, seq int, node *zk.Data) *storedItem {
	rec, err := segment.DecodeRecord(node.Data)
	if err != nil {
		rec = &segment.Record{Body: node.Data, Enqueued: node.Stat.Ctime, Reason: segment.ErrRecord.Error()}
	}
	return &storedItem{dir + "/" + segment.ItemName(seq), seq, node.Stat.Version, node.Stat.Ctime, rec}
}

func (x *storedItem) letter() DeadLetter {
	return DeadLetter{
		ID: x.rec.ID.String(), Body: x.rec.Body, Headers: x.rec.Headers,
		Priority: x.rec.Priority, Group: x.rec.Group, Attempts: x.rec.Attempts,
		EnqueuedAt: time.UnixMilli(x.rec.Enqueued), DiedAt: time.UnixMilli(x.created),
		Reason: x.rec.Reason, Failures: failures(x.rec.Failures),
	}
}

// each calls f with the dead letters, in their order, until f returns false or an error.
func (l *deadLetters) each(ctx context.Context, f func(*storedItem) (bool, error)) error {
	var failed error
	err := l.thorough(func(r reader) error {
		return r.eachStored(ctx, l.layout.deadLetters(), func(x *storedItem) bool {
			more, err := f(x)
			failed = err
			return more && err == nil
		})
	})
	if errors.Is(err, errEnough) {
		return failed
	}
	return err
}

// Requeue puts dead letters back into the queue, behind what has arrived by now, with all their attempts before them,
// and returns how many. It takes those with the given ids, or all if none is given. Each goes back in one
// transaction, so it is always in one place. If some cannot be read it returns an error, after all others.
func (q *Queue) Requeue(ctx context.Context, ids ...string) (int, error) {
	n := 0
	err := q.letters.each(ctx, func(x *storedItem) (bool, error) {
		if len(ids) > 0 && !slices.Contains(ids, x.rec.ID.String()) {
			return true, nil
		}
		again := *x.rec
		again.Attempts, again.Reason, again.Delay, again.Due = 0, "", 0, 0
		moved, err := q.letters.takeOut(ctx, x, &again)
		if moved {
			n++
		}
		return len(ids) == 0 || n < len(ids), err
	})
	q.letters.tidy()
	if err != nil {
		return n, q.failed("requeue", err)
	}
	return n, nil
}

// PurgeDead removes dead letters for good, and returns how many. It takes those with the given ids, or all if none is
// given. If some cannot be read it returns an error, after all others.
func (q *Queue) PurgeDead(ctx context.Context, ids ...string) (int, error) {
	n := 0
	err := q.letters.each(ctx, func(x *storedItem) (bool, error) {
		if len(ids) > 0 && !slices.Contains(ids, x.rec.ID.String()) {
			return true, nil
		}
		removed, err := q.letters.takeOut(ctx, x, nil)
		if removed {
			n++
		}
		return len(ids) == 0 || n < len(ids), err
	})
	q.letters.tidy()
	if err != nil {
		return n, q.failed("purge dead letters of", err)
	}
	return n, nil
}

// takeOut removes a dead letter, and appends it to its ready list in the same transaction if there is something to
// append. It reports whether this call has moved the letter.
func (l *deadLetters) takeOut(ctx context.Context, x *storedItem, to *segment.Record) (bool, error) {
	for {
		var p *segment.Txn
		if err := l.do(ctx, func(sess *zk.Session) error {
			p = l.layout.store.NewTxn(zk.DeleteOp(x.path, x.version))
			if to == nil {
				forget, err := l.forget(ctx, sess, x.rec.Key, x.rec.ID.String())
				for _, op := range forget {
					p.Guard(op)
				}
				return err
			}
			c, err := l.place(ctx, sess, p, to)
			if err == nil {
				p.Append(c, to.Encode())
			}
			return err
		}); err != nil {
			return false, err
		}
		results, err := l.producer.apply(ctx, p.Ops()...)
		failed, refused := errors.AsType[*zk.MultiError](err)
		switch {
		case err == nil:
			p.Done(results)
			return true, nil
		case refused && failed.Index == 0 && (errors.Is(failed, zk.NoNode) || errors.Is(failed, zk.BadVersion)):
			return false, nil // another client was quicker
		case p.Stale(err), refused && failed.Index > 0 && l.groupChanged(failed, p):
		case refused && failed.Index > 0 && to == nil && errors.Is(failed, zk.BadVersion): // its key has changed
		default:
			return false, err
		}
	}
}

// tidy removes segments of dead letters that are sealed and empty, in the background.
func (l *deadLetters) tidy() {
	l.sweeper.run(func(ctx context.Context, sess *zk.Session) {
		dead := l.layout.deadLetters()
		list, err := dead.Segments(ctx, sess)
		if err == nil { // or the next one does it
			dead.Sweep(ctx, sess, list)
		}
	})
}
