package queue

// Reading what was claimed, and what of that cannot be read.

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/seed-a3166700/turnstile/queue/internal/claims"
	"github.com/seed-a3166700/turnstile/queue/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// corrupt is the priority of a node in a segment that is not an item.
const corrupt = LeastUrgent + 1

// unreadError says which item could not be read, and why. Those before it could.
type unreadError struct {
	seq int
	err error
}

func (e *unreadError) Error() string { return e.err.Error() }
func (e *unreadError) Unwrap() error { return e.err }

// read reads items of a segment. It leaves out those that do not exist: they are finished. If the server refuses one,
// or the client refuses its answer, it returns those before it with an *unreadError.
func (f *fetcher) read(dir, class string, items []int) ([]claims.Item, error) {
	var buffer []claims.Item
	chunk := segment.ReadChunk
	for len(items) > 0 {
		n := min(chunk, len(items))
		var nodes []*zk.Data
		var err error
		if class == "" {
			var data []byte
			data, _, err = f.co.sess.Get(f.co.ctx, dir)
			class = string(data)
		}
		if err == nil {
			nodes, err = segment.Read(f.co.ctx, f.co.sess, dir, items[:n], segment.Large([]byte(class)))
		}
		switch {
		case err == nil:
		case errors.Is(err, zk.NoNode):
			return buffer, nil // the segment is gone, and with it all its items
		case f.co.err() != nil:
			return nil, f.co.err()
		case zk.Temporary(err):
			if err := f.co.again(err); err != nil {
				return nil, err
			}
			continue
		case n > 1:
			chunk = n / 2 // without the one that cannot be read, or in replies that are small enough
			continue
		default:
			return buffer, &unreadError{items[0], err}
		}
		for i, node := range nodes {
			if node == nil {
				continue
			}
			rec, err := segment.DecodeRecord(node.Data)
			if err != nil {
				rec = &segment.Record{ID: segment.NewID(), Priority: corrupt, Body: node.Data}
			}
			buffer = append(buffer, claims.Item{Seq: items[i], Record: rec, Created: node.Stat.Ctime})
		}
		items = items[n:]
	}
	return buffer, nil
}

// fill reads a claim's items. It returns false if none of them exists any more; then it removes the claim. If an item
// cannot be read, it gives back that item and those behind it.
func (f *fetcher) fill(l *claims.Lease) (bool, error) {
	claimed := l.Range()
	buffer, err := f.read(l.List.Segment(l.Segment), claimed.Class, claimed.Items())
	if unread, ok := errors.AsType[*unreadError](err); ok {
		l.Hold(buffer)
		err = f.co.giveBack(f.co.ctx, l, unread.seq)
		if err == nil && len(buffer) == 0 {
			return false, unread
		}
		if err != nil && zk.OutcomeOf(err) != zk.Unknown {
			f.returner.returnLater(l)
		}
	}
	if err == nil {
		err = f.co.certify()
	}
	if err != nil {
		return false, err
	}
	limit := f.co.q.cfg.MaxAttempts
	var good, bad []claims.Item
	for _, x := range buffer {
		tries := x.Record.Attempts + l.Tries
		if x.Record.Priority == corrupt || limit > 0 && tries >= limit {
			bad = append(bad, x)
		} else {
			good = append(good, x)
		}
	}
	l.Buffer(good, len(bad))
	if len(good) > 0 {
		f.returner.restart()
	}
	if len(buffer) == 0 {
		f.co.deleteNode(l)
		return false, errAgain
	}
	if len(bad) > 0 {
		f.bad = append(f.bad, claims.Buffered{Lease: l, Items: bad})
	}
	if len(good) == 0 {
		return false, errAgain
	}
	return true, nil
}

// fetch is fetcher.fetch, and buries what nothing delivers.
func (co *consumer) fetch(ctx context.Context, more bool) (bool, error) {
	found, err := co.fetcher.fetch(ctx, more)
	return found, cmp.Or(co.bury(), err)
}

// bury moves what was claimed and nothing delivers to the dead letters. What it cannot move is in no consumer's way.
func (co *consumer) bury() error {
	var failed []error
	for _, b := range co.fetcher.bad {
		for _, x := range b.Items {
			it := co.item(b.Lease, x)
			it.attempt-- // it is not delivered
			reason := segment.ErrRecord.Error()
			if x.Record.Priority != corrupt {
				reason = fmt.Sprintf("%d attempts did not finish it, and the last consumer that had it is gone",
					it.attempt)
			}
			failed = append(failed, it.moveToDead(reason, ""))
		}
	}
	co.fetcher.bad = nil
	return errors.Join(failed...)
}
