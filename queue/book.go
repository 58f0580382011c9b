package queue

import "github.com/seed-a3166700/turnstile/zk"

// entry is what a transaction that finishes an item does to the claim's node: it removes it, if the item is the last; it marks more items as
// handed out, so that the next Take need not; or it only checks that the node is there.
//
// Whoever writes the node has the window's pen, so that what is written last is what was meant last. Who does not get it at once does
// without: only the check is needed.
type entry struct {
	w    *window
	op   zk.Op
	last bool
	span *span // as it stands in the node if the transaction is done
	pen  bool
}

// book begins an entry for one item that is to be finished.
func (w *window) book() *entry {
	q := w.d.q
	e := &entry{w: w, op: zk.Check(w.path, -1)}
	q.mu.Lock()
	defer q.mu.Unlock()
	last := w.last()
	marked, more := w.marked(w.d.ahead())
	if !last && !more {
		return e
	}
	select {
	case w.pen <- struct{}{}:
		e.pen = true
	default:
		return e
	}
	if last {
		e.last, e.op = true, zk.DeleteOp(w.path, -1)
		return e
	}
	e.span, e.op = &marked, zk.SetData(w.path, marked.encode(), -1)
	return e
}

// close ends the entry: done says whether the transaction was. If it was, the item counts as finished.
func (e *entry) close(done bool) {
	q := e.w.d.q
	q.mu.Lock()
	if done && e.span != nil {
		e.w.span = *e.span
	}
	if done && e.last {
		e.w.settled = true
	}
	q.mu.Unlock()
	if e.pen {
		e.w.written()
	}
	if done {
		e.w.left()
	}
}

// left books that an item is finished. Nothing is left of the claim when that was the last: then its node goes, and perhaps its segment.
func (w *window) left() {
	q := w.d.q
	q.mu.Lock()
	w.open--
	w.d.open--
	depart := w.d.leaving && w.d.open == 0
	over := w.open == 0 && len(w.stock) == 0 && !w.giving
	forgotten := over && !w.settled
	w.settled = w.settled || over
	if q.desk == w.d {
		w.d.handOut()
	}
	q.mu.Unlock()
	switch {
	case forgotten:
		w.clear()
	case over:
		w.tidy()
	}
	if depart {
		go func() { _ = w.d.depart(w.d.sess.Context()) }()
	}
}
