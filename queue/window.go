package queue

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// window is a claim of ours: a span of a segment's items, of which some are handed out and some not yet.
type window struct {
	d      *desk
	path   string
	line   *chain
	place  // of its first item
	token  int64
	asked  time.Time // when its node was about to be made
	filled time.Time // when its items had been read
	size   int
	pen    chan struct{} // one slot: whoever fills it may write the claim's node; marks under way share it

	// Guarded by the queue's mutex.
	span    span // as it stands in the node
	marks   int  // under way
	sent    int  // while there are: up to where the last one marks
	writers int  // who wait for the pen
	stock   []stocked
	open    int  // handed out and not finished
	settled bool // its node is deleted, or about to be
	giving  bool // what was in stock is about to be given back: until then the claim's node must stay
}

// stocked is an item that is not handed out yet.
type stocked struct {
	seq     int
	rec     *record
	created int64
}

// maxLarge is how many items of a segment of large ones are claimed at once.
const maxLarge = 4

// giveBack makes what is claimed from the given item on free for all, in its place.
func (w *window) giveBack(ctx context.Context, from int) error {
	q, sess := w.d.q, w.d.sess
	if err := w.write(ctx); err != nil {
		return err
	}
	defer w.written()
	for {
		q.mu.Lock()
		rest, kept := w.span.from(from), w.span
		last := w.open == 0 && len(w.stock) == 0
		free := w.d.freePath(place{w.priority, w.segment, from})
		q.mu.Unlock()
		kept.Last = from - 1
		kept.Handed = min(kept.Handed, kept.Last)
		ops := []zk.Op{
			zk.DeleteOp(w.path, -1),
			q.create(free, rest.encode(), zk.Persistent),
			zk.SetOp(w.line.bell, nil, -1),
		}
		if !last {
			ops[0] = zk.SetOp(w.path, kept.encode(), -1)
		}
		_, err := sess.Multi(ctx, ops...)
		if zk.OutcomeOf(err) == zk.Unknown && err != nil && w.d.err() == nil && ctx.Err() == nil {
			// Only we write the node, so it tells whether we have.
			s, there, lookErr := w.look(ctx)
			if lookErr != nil {
				return errors.Join(err, lookErr) // whether it was given back nobody knows
			}
			if there && s.Last != kept.Last {
				continue
			}
			err = nil
		}
		if zk.OutcomeOf(err) == zk.NotSent && errors.Is(err, zk.ErrConnectionLost) && w.d.err() == nil {
			continue // it has never left, and waits for the next connection
		}
		if failed, ok := errors.AsType[*zk.MultiError](err); ok && failed.Index == 0 && errors.Is(err, zk.NoNode) {
			w.d.claimRemoved()
			return w.d.err()
		}
		if failed, ok := errors.AsType[*zk.MultiError](err); ok && failed.Index == 2 && errors.Is(err, zk.NoNode) {
			if err := w.line.mend(ctx, sess); err != nil { // somebody has removed the bell
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		q.mu.Lock()
		w.span, w.settled, w.giving = kept, w.settled || last, false
		settle := !w.settled && w.open == 0 && len(w.stock) == 0
		w.settled = w.settled || settle
		q.mu.Unlock()
		if settle {
			w.clear()
		}
		return nil
	}
}

// write waits until nobody else writes the claim's node, and takes the pen.
func (w *window) write(ctx context.Context) error {
	q := w.d.q
	q.mu.Lock()
	w.writers++
	q.mu.Unlock()
	defer func() {
		q.mu.Lock()
		w.writers--
		q.mu.Unlock()
		w.d.tell()
	}()
	select {
	case w.pen <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-w.d.ctx.Done():
		return context.Cause(w.d.ctx)
	}
}

// tryWrite is write if nobody else writes just now.
func (w *window) tryWrite() bool {
	select {
	case w.pen <- struct{}{}:
		return true
	default:
		return false
	}
}

func (w *window) written() {
	<-w.pen
	w.d.tell()
}

// tryMark begins a mark, unless somebody writes the node otherwise or waits to. The caller holds the queue's mutex, and the desk's order until the
// mark is sent.
func (w *window) tryMark() bool {
	if w.writers > 0 || w.marks == 0 && !w.tryWrite() {
		return false
	}
	w.marks++
	return true
}

// markEnds ends a mark. The caller holds the queue's mutex.
func (w *window) markEnds(handed int, done bool) {
	if done {
		w.span.Handed = max(w.span.Handed, handed)
	}
	if w.marks--; w.marks == 0 {
		w.written()
	}
}

// marked returns up to where the window's items are marked, or will be when all is done that was sent. The caller holds the queue's mutex.
func (w *window) marked() int {
	if w.marks > 0 {
		return w.sent
	}
	return w.span.Handed
}

// ends reports whether nothing is left of the claim when n more items are finished. The caller holds the queue's mutex.
func (w *window) ends(n int) bool { return w.open == n && len(w.stock) == 0 && !w.giving }

// look reads the claim's node, as it stands when everything that was sent before was done or never will be.
func (w *window) look(ctx context.Context) (span, bool, error) {
	for {
		b := w.d.sess.Batch()
		passed := line.Barrier(b, w.path)
		get := b.Get(w.path)
		b.Send()
		err := passed(ctx)
		var data zk.Data
		if err == nil {
			data, err = get.Get(ctx)
		}
		switch {
		case err == nil:
			s, ok := parseSpan(data.Data)
			return s, ok, nil
		case errors.Is(err, zk.NoNode):
			return span{}, false, nil
		case ctx.Err() != nil:
			return span{}, false, context.Cause(ctx)
		case w.d.err() != nil:
			return span{}, false, w.d.err()
		case !errors.Is(err, zk.ErrConnectionLost):
			return span{}, false, err
		}
	}
}

// clear removes the node of a claim of which nothing is left, in the background. If that does not succeed before the session ends, whoever
// takes the claim over finds nothing in it, and removes it.
func (w *window) clear() {
	sess := w.d.sess
	go func() {
		for sess.Err() == nil {
			err := sess.Delete(sess.Context(), w.path, -1)
			if err == nil || !errors.Is(err, zk.ErrConnectionLost) {
				break
			}
		}
		w.tidy()
	}()
}

// tidy removes the window's segment if that is empty and will stay so, without waiting for it. One that the line may
// go on in stays so far: whoever moves the cursor into the next one removes those before it.
func (w *window) tidy() {
	w.d.q.mu.Lock()
	last := w.segment >= w.d.seen[w.line]
	w.d.q.mu.Unlock()
	if last {
		return
	}
	b := w.d.sess.Batch()
	b.Delete(w.line.segment(w.segment), 1) // refused unless it is sealed, which is version 1, and empty
	b.Send()
}

// ahead returns how many of the items that are not handed out are marked, or will be. The caller holds the queue's mutex.
func (w *window) ahead() int {
	n, _ := slices.BinarySearchFunc(w.stock, w.marked()+1, func(s stocked, seq int) int { return s.seq - seq })
	return n
}
