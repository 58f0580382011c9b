package queue

import "github.com/seed-a3166700/turnstile/zk"

// entry is what a transaction that finishes items does to the nodes of their claims: it removes a node, if the last items of the claim are
// among them; it marks more items as handed out, so that the next Take need not; otherwise it only checks that the node is there.
//
// Whoever writes a node has the window's pen, so that what is written last is what was meant last. Who does not get it at once does
// without: only the check is needed.
type entry struct {
	d      *desk
	parts  []part  // one for each claim that has an item among those that are finished; last the one that is only marked
	marked *window // nil if none is
	handed int     // up to where
}

// part is an entry's operation on one claim's node.
type part struct {
	w    *window
	op   zk.Op
	n    int  // items that are finished
	last bool // of its items; the part has the pen
}

// book begins an entry for items that are to be finished. If there is room for it, it marks items of another claim, when theirs has none left to
// mark. The caller holds the desk's order until the transaction is sent.
func (d *desk) book(room bool, items ...*Item) *entry {
	d.q.mu.Lock()
	defer d.q.mu.Unlock()
	e := &entry{d: d}
	for _, it := range items {
		e.at(it.w).n++
	}
	for i := range e.parts {
		p := &e.parts[i]
		if p.w.ends(p.n) && p.w.tryWrite() {
			p.op, p.last = zk.DeleteOp(p.w.path, -1), true
		}
	}
	if w, handed := d.unmarked(); w != nil && (room || w == items[0].w) && w.tryMark() {
		w.sent = handed
		s := w.span
		s.Handed = handed
		e.marked, e.handed = w, handed
		e.at(w).op = zk.SetOp(w.path, s.encode(), -1)
	}
	return e
}

// at returns the entry's part on a window.
func (e *entry) at(w *window) *part {
	for i := range e.parts {
		if e.parts[i].w == w {
			return &e.parts[i]
		}
	}
	e.parts = append(e.parts, part{w: w, op: zk.CheckOp(w.path, -1)})
	return &e.parts[len(e.parts)-1]
}

// ops returns the operations; that on the first item's claim is the first.
func (e *entry) ops() []zk.Op {
	ops := make([]zk.Op, len(e.parts))
	for i, p := range e.parts {
		ops[i] = p.op
	}
	return ops
}

// close ends the entry: done says whether the transaction was. If it was, the items count as finished.
func (e *entry) close(done bool) {
	q := e.d.q
	q.mu.Lock()
	if e.marked != nil {
		e.marked.markEnds(e.handed, done)
	}
	for _, p := range e.parts {
		if p.last {
			p.w.settled = p.w.settled || done
			p.w.written()
		}
	}
	if q.desk == e.d {
		e.d.handOut()
	}
	q.mu.Unlock()
	for _, p := range e.parts {
		if done && p.n > 0 {
			p.w.left(p.n)
		}
	}
}

// left books that n items are finished. Nothing is left of the claim when those were the last: then its node goes, and perhaps its segment.
func (w *window) left(n int) {
	q := w.d.q
	q.mu.Lock()
	w.open -= n
	w.d.open -= n
	w.d.weigh()
	depart := w.d.leaving && w.d.open == 0
	over := w.open == 0 && len(w.stock) == 0 && !w.giving
	forgotten := over && !w.settled
	w.settled = w.settled || over
	q.mu.Unlock()
	switch {
	case forgotten:
		w.clear()
	case over:
		w.tidy()
	}
	if depart {
		w.d.depart()
	}
}
