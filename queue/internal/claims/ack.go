package claims

// What an acknowledgement does to the claims.

import "github.com/seed-a3166700/turnstile/zk"

// Ack is what a transaction that finishes items does to the nodes of their claims: it removes a node, if the last
// items of the claim are among them; it marks more items as delivered, so that the next Take need not; otherwise it
// only checks that the node exists.
//
// To write a node takes the lease's write semaphore, so that what is written last is what was meant last. If another
// goroutine has it, the transaction only checks the node, which is enough.
type Ack struct {
	set     *Set
	updates []update // one for each claim with an item that is finished; last the one that is only marked
	marked  *Lease   // nil if none is
	through int      // through which item
}

// update is the operation of an Ack on one claim's node.
type update struct {
	lease *Lease
	op    zk.Op
	n     int  // items that are finished
	last  bool // they are the last items; the write semaphore is held
}

// BeginAck begins an Ack for items that are to be finished, each of which is given by its lease. If room is set, it may
// mark items of another claim, when theirs has none left to mark. Demand is how many items callers wait for. Acks are
// to be sent in the order in which they were begun, so that a later one marks more.
func (s *Set) BeginAck(demand int, room bool, items ...*Lease) *Ack {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := &Ack{set: s}
	for _, l := range items {
		a.update(l).n++
	}
	for i := range a.updates {
		u := &a.updates[i]
		if u.lease.ends(u.n) && u.lease.tryWrite() {
			u.op, u.last = zk.DeleteOp(u.lease.Path, -1), true
		}
	}
	if l, through := s.unmarked(demand); l != nil && (room || l == items[0]) && l.tryMark() {
		l.pendingThrough = through
		r := l.claimed
		r.Delivered = through
		a.marked, a.through = l, through
		a.update(l).op = zk.SetOp(l.Path, r.Encode(), -1)
	}
	return a
}

// update returns the update of a lease's claim.
func (a *Ack) update(l *Lease) *update {
	for i := range a.updates {
		if a.updates[i].lease == l {
			return &a.updates[i]
		}
	}
	a.updates = append(a.updates, update{lease: l, op: zk.CheckOp(l.Path, -1)})
	return &a.updates[len(a.updates)-1]
}

// Marks reports whether it marks items as delivered.
func (a *Ack) Marks() bool { return a.marked != nil }

// Ops returns the operations; that on the first item's claim is the first.
func (a *Ack) Ops() []zk.Op {
	ops := make([]zk.Op, len(a.updates))
	for i, u := range a.updates {
		ops[i] = u.op
	}
	return ops
}

// Finished is a claim of which items were finished.
type Finished struct {
	Lease *Lease
	Rest  Rest
}

// End ends the Ack: done says whether the transaction was done. If it was, the items are finished: End returns the
// claims for which that leaves something to do.
func (a *Ack) End(done bool) []Finished {
	a.set.mu.Lock()
	defer a.set.mu.Unlock()
	if a.marked != nil {
		a.marked.endMark(a.through, done)
	}
	var list []Finished
	for _, u := range a.updates {
		if u.last {
			u.lease.nodeGone = u.lease.nodeGone || done
			u.lease.EndWrite()
		}
		if !done || u.n == 0 {
			continue
		}
		if rest := u.lease.finish(u.n); rest != (Rest{}) {
			list = append(list, Finished{u.lease, rest})
		}
	}
	return list
}
