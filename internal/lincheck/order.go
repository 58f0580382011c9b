package lincheck

// Looking for an order of calls that overlap.

import (
	"cmp"
	"hash/maphash"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"
)

// maxOrders bounds how many situations a search for an order looks at, of each kind.
const maxOrders = 1 << 22

// hasOrder reports whether it has found an order of the operations that the model accepts. Those that return at
// math.MaxInt64 may be left out. If it has found none, there may be one all the same: what it looks at is bounded.
// Reads reports whether an operation changes nothing wherever the model accepts it. States must be comparable.
//
// Porcupine looks for the same, but takes far too long if a few dozen operations overlap and some of them may be left
// out. Four rules help. A read that is right as things are may come at once: whatever comes then would have been right
// without it. Operations that return first are tried first, and those that may be left out last. If there is no order
// from a situation on, there is none from one that differs only in that more was done of what may be left out. And
// orders in which few of those are done at all, or few follow each other, are looked for first: they are likely, and
// there are far fewer.
func hasOrder(model porcupine.Model, reads func(input any) bool, ops []porcupine.Operation) bool {
	sorted, known := slices.Clone(ops), 0
	slices.SortStableFunc(sorted, func(a, b porcupine.Operation) int { return cmp.Compare(a.Return, b.Return) })
	for known < len(ops) && sorted[known].Return != math.MaxInt64 {
		known++
	}
	few := orderSearch{model: model, reads: reads, ops: sorted, known: known, seed: maphash.MakeSeed()}
	apart := few
	apart.apart = true
	for limit := range len(ops) - known + 1 {
		if few.within(limit) || limit > 0 && apart.within(limit) { // with 0 they look at the same
			return true
		}
	}
	return false
}

// orderSearch is a search for an order.
type orderSearch struct {
	model porcupine.Model
	reads func(input any) bool
	ops   []porcupine.Operation // by their returns
	known int                   // how many must be done: the first ones
	apart bool                  // the limit is for those of the others that follow each other, not for all of them
	limit int                   // how many of the others may be done
	seed  maphash.Seed
	// dead has what was done of the operations that may be left out, in situations from which there is no order, by the
	// hash value of all else in the situation.
	dead   map[uint64][][]byte
	looked int // situations
}

// within reports whether it has found an order within a limit.
func (s *orderSearch) within(limit int) bool {
	s.limit, s.dead = limit, make(map[uint64][][]byte)
	return s.from(make([]byte, len(s.ops)), s.model.Init(), 0)
}

// from reports whether it has found an order of those operations that are not done yet, from a state on. So many that
// may be left out count towards the limit.
func (s *orderSearch) from(done []byte, state any, counted int) bool {
	done = slices.Clone(done)
	next := s.next(done)
	for ; s.read(done, next, state); next = s.next(done) {
	}
	if len(next) == 0 {
		return true
	}
	if s.looked++; s.looked > maxOrders {
		return false
	}
	here, optional := s.hash(done[:s.known], state, counted), slices.Clone(done[s.known:])
	for _, less := range s.dead[here] {
		if includes(optional, less) {
			return false
		}
	}
	s.dead[here] = append(s.dead[here], optional)
	for _, i := range next {
		ok, after := s.model.Step(state, s.ops[i].Input, s.ops[i].Output)
		then, vain := counted, false
		switch {
		case i >= s.known:
			then, vain = counted+1, after == state
		case s.apart:
			then = 0
		}
		if !ok || vain || then > s.limit {
			continue
		}
		done[i] = 1
		if s.from(done, after, then) {
			return true
		}
		done[i] = 0
	}
	return false
}

// includes reports whether all that is done in less is done in more.
func includes(more, less []byte) bool {
	for i, d := range less {
		if d > more[i] {
			return false
		}
	}
	return true
}

// next returns the operations that may come next: those that were called before any that is not done has returned. It
// returns none if all that are not done may be left out.
func (s *orderSearch) next(done []byte) (next []int) {
	first := slices.Index(done, 0) // which returns first
	if first < 0 || first >= s.known {
		return nil
	}
	for i := first; i < len(s.ops); i++ {
		if done[i] == 0 && s.ops[i].Call <= s.ops[first].Return {
			next = append(next, i)
		}
	}
	return next
}

// read marks those of the next operations as done that are reads and right as things are, and reports whether there
// were any.
func (s *orderSearch) read(done []byte, next []int, state any) (some bool) {
	for _, i := range next {
		if op := s.ops[i]; i < s.known && s.reads(op.Input) {
			if ok, _ := s.model.Step(state, op.Input, op.Output); ok {
				done[i], some = 1, true
			}
		}
	}
	return some
}

// hash returns a hash value of a situation. If two have the same, an order may be missed, and none is made up.
func (s *orderSearch) hash(done []byte, state any, counted int) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	_, _ = h.Write(done) // which never fails
	maphash.WriteComparable(&h, state)
	if s.apart { // otherwise, the more were done, the more are counted
		maphash.WriteComparable(&h, counted)
	}
	return h.Sum64()
}
