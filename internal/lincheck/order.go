package lincheck

// Looking for an order of calls that overlap.

import (
	"cmp"
	"hash/maphash"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"
)

// maxOrders bounds how many situations a search for an order looks at.
const maxOrders = 1 << 22

// hasOrder reports whether it has found an order of the operations that the model accepts. Those that return at
// math.MaxInt64 may be left out. If it has found none, there may be one all the same.
//
// Porcupine looks for the same, but takes far too long if a few dozen operations overlap and some of them may be left
// out. Two rules help. An operation that changes nothing, and is right as things are, may come at once: whatever comes
// then would have been right without it. And those that return first are tried first. States must be comparable.
func hasOrder(model porcupine.Model, ops []porcupine.Operation) bool {
	s := orderSearch{
		model: model, ops: slices.Clone(ops), seen: make(map[uint64]struct{}), seed: maphash.MakeSeed(),
	}
	slices.SortStableFunc(s.ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Return, b.Return) })
	return s.from(make([]byte, len(ops)), model.Init())
}

// orderSearch is a search for an order.
type orderSearch struct {
	model porcupine.Model
	ops   []porcupine.Operation // by their returns
	seen  map[uint64]struct{}   // situations from which there is no order, by their hash values
	seed  maphash.Seed
}

// from reports whether it has found an order of those operations that are not done yet, from a state on.
func (s *orderSearch) from(done []byte, state any) bool {
	done = slices.Clone(done)
	next := s.next(done)
	for ; s.skipIdle(done, next, state); next = s.next(done) {
	}
	if len(next) == 0 {
		return true
	}
	here := s.hash(done, state)
	if _, known := s.seen[here]; known || len(s.seen) == maxOrders {
		return false
	}
	s.seen[here] = struct{}{}
	for _, i := range next {
		ok, after := s.model.Step(state, s.ops[i].Input, s.ops[i].Output)
		if !ok || after == state { // it may be left out, or it would have been skipped
			continue
		}
		done[i] = 1
		if s.from(done, after) {
			return true
		}
		done[i] = 0
	}
	return false
}

// next returns the operations that may come next: those that were called before any that is not done has returned. It
// returns none if all that are not done may be left out.
func (s *orderSearch) next(done []byte) (next []int) {
	first := slices.Index(done, 0) // which returns first
	if first < 0 || s.ops[first].Return == math.MaxInt64 {
		return nil
	}
	for i := first; i < len(s.ops); i++ {
		if done[i] == 0 && s.ops[i].Call <= s.ops[first].Return {
			next = append(next, i)
		}
	}
	return next
}

// skipIdle marks those of the next operations as done that change nothing, and reports whether there were any.
func (s *orderSearch) skipIdle(done []byte, next []int, state any) (skipped bool) {
	for _, i := range next {
		op := s.ops[i]
		if op.Return == math.MaxInt64 {
			continue
		}
		if ok, after := s.model.Step(state, op.Input, op.Output); ok && after == state {
			done[i], skipped = 1, true
		}
	}
	return skipped
}

// hash returns a hash value of a situation. If two have the same, an order may be missed, and none is made up.
func (s *orderSearch) hash(done []byte, state any) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	_, _ = h.Write(done) // which never fails
	maphash.WriteComparable(&h, state)
	return h.Sum64()
}
