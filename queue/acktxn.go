package queue

// What an acknowledgement does to the claims.

import "github.com/seed-a3166700/turnstile/zk"

// ackTxn is what a transaction that finishes items does to the nodes of their claims: it removes a node, if the last
// items of the claim are among them; it marks more items as delivered, so that the next Take need not; otherwise it
// only checks that the node exists.
//
// To write a node a goroutine takes the lease's write semaphore, so that what is written last is what was meant last.
// If it cannot take it at once, the transaction only checks the node, which is enough.
type ackTxn struct {
	co      *consumer
	claims  []claimUpdate // one for each claim with an item that is finished; last the one that is only marked
	marked  *lease        // nil if none is
	through int           // through which item
}

// claimUpdate is the operation of an ackTxn on one claim's node.
type claimUpdate struct {
	lease *lease
	op    zk.Op
	n     int  // items that are finished
	last  bool // they are the last items; the write semaphore is held
}

// beginAck begins an ackTxn for items that are to be finished. If room is set, it may mark items of another claim,
// when theirs has none left to mark. The caller holds marks.order until the transaction is sent.
func (co *consumer) beginAck(room bool, items ...*Item) *ackTxn {
	co.d.mu.Lock()
	defer co.d.mu.Unlock()
	e := &ackTxn{co: co}
	for _, it := range items {
		e.update(it.lease).n++
	}
	for i := range e.claims {
		p := &e.claims[i]
		if p.lease.ends(p.n) && p.lease.tryBeginWrite() {
			p.op, p.last = zk.DeleteOp(p.lease.path, -1), true
		}
	}
	if l, through := co.unmarked(); l != nil && (room || l == items[0].lease) && l.tryMark() {
		l.pendingThrough = through
		s := l.claimed
		s.Delivered = through
		e.marked, e.through = l, through
		e.update(l).op = zk.SetOp(l.path, s.Encode(), -1)
	}
	return e
}

// update returns the update of a lease's claim.
func (e *ackTxn) update(l *lease) *claimUpdate {
	for i := range e.claims {
		if e.claims[i].lease == l {
			return &e.claims[i]
		}
	}
	e.claims = append(e.claims, claimUpdate{lease: l, op: zk.CheckOp(l.path, -1)})
	return &e.claims[len(e.claims)-1]
}

// ops returns the operations; that on the first item's claim is the first.
func (e *ackTxn) ops() []zk.Op {
	ops := make([]zk.Op, len(e.claims))
	for i, p := range e.claims {
		ops[i] = p.op
	}
	return ops
}

// end ends the transaction: done says whether it was done. If it was, the items are finished.
func (e *ackTxn) end(done bool) {
	d := e.co.d
	d.mu.Lock()
	if e.marked != nil {
		e.marked.endMark(e.through, done)
	}
	for _, p := range e.claims {
		if p.last {
			p.lease.nodeGone = p.lease.nodeGone || done
			p.lease.endWrite()
		}
	}
	if d.consumer == e.co {
		e.co.handOut()
	}
	d.mu.Unlock()
	for _, p := range e.claims {
		if done && p.n > 0 {
			p.lease.finished(p.n)
		}
	}
}

// finished records that n items are finished. If those were the last, the claim's node goes, and perhaps its segment.
func (l *lease) finished(n int) {
	d := l.co.d
	d.mu.Lock()
	l.open -= n
	l.co.open -= n
	l.co.updateOwnership()
	removeNode := l.co.closing && l.co.open == 0
	over := l.open == 0 && len(l.buffer) == 0 && !l.returning
	forgotten := over && !l.nodeGone
	l.nodeGone = l.nodeGone || over
	d.mu.Unlock()
	switch {
	case forgotten:
		l.deleteNode()
	case over:
		l.tidy()
	}
	if removeNode {
		l.co.removeNode()
	}
}
