package claims

// Giving back what was claimed.

import "time"

// TakeOut takes all items out of the buffer, to be given back, and returns true. If something was claimed or delivered
// within the given time, it does nothing and returns false. The node of each lease stays until Returned or Rebuffer
// says what came of that.
func (s *Set) TakeOut(unused time.Duration) ([]Buffered, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.used) < unused {
		return nil, false
	}
	out := s.empty()
	for _, b := range out {
		b.Lease.returning = true
	}
	s.updateOwnership()
	return out, true
}

// PopAll takes all items out of the buffer, as if they were delivered.
func (s *Set) PopAll() []Buffered {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.empty()
	for _, b := range out {
		b.Lease.open += len(b.Items)
		s.open += len(b.Items)
	}
	s.updateOwnership()
	return out
}

// empty takes out what is buffered.
func (s *Set) empty() []Buffered {
	out := make([]Buffered, len(s.leases))
	for i, l := range s.leases {
		out[i] = Buffered{l, l.buffer}
		l.buffer = nil
	}
	s.leases = nil
	return out
}

// Rebuffer buffers items again that could not be given back, and certainly are this consumer's. If the consumer has
// ended, they are free when its node goes.
func (s *Set) Rebuffer(b Buffered) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.Lease.buffer, b.Lease.returning = b.Items, false
	s.bufferAgain(b.Lease)
	s.dirty = true // other claims of ours, which come first, were given back
}

// ReturnLater keeps a claim that has nothing to deliver and that the server has refused to take back.
func (s *Set) ReturnLater(l *Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.buffer = nil
	if !s.dropped {
		s.unreturned = append(s.unreturned, l)
	}
}

// TakeUnreturned takes out the claims that ReturnLater has kept.
func (s *Set) TakeUnreturned() []*Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.unreturned
	s.unreturned = nil
	return list
}

// Returnable reports whether there is something to give back.
func (s *Set) Returnable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.leases) > 0 || len(s.unreturned) > 0
}

// GiveBack says what to write to give back the items from the given one on, if the write semaphore is held: the range
// that is for them, and the one that stays in the claim's node, or that nothing stays, so that the node goes.
func (l *Lease) GiveBack(from int) (rest, kept Range, last bool) {
	l.set.mu.Lock()
	defer l.set.mu.Unlock()
	rest, kept = l.claimed.From(from), l.claimed
	kept.Last = from - 1
	kept.Delivered = min(kept.Delivered, kept.Last)
	return rest, kept, l.open == 0 && len(l.buffer) == 0
}

// Returned records that what GiveBack has returned was written. It reports whether the claim's node is to be deleted:
// the last items were finished meanwhile.
func (l *Lease) Returned(kept Range, last bool) bool {
	l.set.mu.Lock()
	defer l.set.mu.Unlock()
	l.claimed, l.nodeGone, l.returning = kept, l.nodeGone || last, false
	over := !l.nodeGone && l.ends(0)
	l.nodeGone = l.nodeGone || over
	return over
}

// PutBack says what to write to give back one item, which was delivered: the range that stays in the claim's node, or
// that nothing stays, so that the node goes.
func (l *Lease) PutBack(seq int) (kept Range, last bool) {
	l.set.mu.Lock()
	defer l.set.mu.Unlock()
	return l.claimed.except(seq), l.ends(1)
}

// PutBackDone records that what PutBack has returned was written. The item is finished.
func (l *Lease) PutBackDone(kept Range, last bool) Rest {
	l.set.mu.Lock()
	defer l.set.mu.Unlock()
	l.claimed = kept
	l.nodeGone = l.nodeGone || last
	l.set.dirty = true
	return l.finish(1)
}
