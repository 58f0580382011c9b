package lincheck

// The model of a read/write lock.

import (
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"
)

// rwOp is one operation of a history: to acquire the lock, to release it, or to change how it is held.
type rwOp struct {
	kind   rwKind
	shared bool  // whether the hold is a reader's, after an acquisition or a change, or before a release
	token  int64 // of the hold that begins or ends
	from   int64 // of the hold that a change ends
	node   string
}

type rwKind int

const (
	rwTake rwKind = iota
	rwLeave
	rwChange
)

// rwState is the state of the model. Readers is sorted and never written to.
type rwState struct {
	writer  int64 // its token; 0 without a writer
	readers []int64
	written int64 // the largest token of a writer so far
	largest int64 // the largest token so far
}

func (s rwState) with(reader int64) rwState {
	s.readers = slices.Clone(s.readers)
	i, _ := slices.BinarySearch(s.readers, reader)
	s.readers = slices.Insert(s.readers, i, reader)
	return s
}

func (s rwState) without(reader int64) rwState {
	s.readers = slices.Clone(s.readers)
	if i, found := slices.BinarySearch(s.readers, reader); found {
		s.readers = slices.Delete(s.readers, i, i+1)
	}
	return s
}

func (s rwState) reads(token int64) bool {
	_, found := slices.BinarySearch(s.readers, token)
	return found
}

// share admits a reader. Its token must be larger than those of all earlier writers.
func (s rwState) share(token int64) (bool, rwState) {
	ok := s.writer == 0 && token > s.written && !s.reads(token)
	s = s.with(token)
	s.largest = max(s.largest, token)
	return ok, s
}

// exclude admits a writer. Its token must be larger than those of all earlier readers and writers.
func (s rwState) exclude(token int64) (bool, rwState) {
	ok := s.writer == 0 && len(s.readers) == 0 && token > s.largest
	s.writer, s.written, s.largest = token, token, token
	return ok, s
}

// rwModel is a lock held by one writer or by any number of readers.
var rwModel = porcupine.Model{
	Init: func() any { return rwState{} },
	Step: func(state, input, _ any) (bool, any) {
		s, op := state.(rwState), input.(rwOp)
		held := s.writer == op.token
		switch {
		case op.kind == rwTake && op.shared:
			return s.share(op.token)
		case op.kind == rwTake:
			return s.exclude(op.token)
		case op.kind == rwLeave && op.shared:
			return s.reads(op.token), s.without(op.token)
		case op.kind == rwLeave:
			s.writer = 0
			return held, s
		default:
			return s.change(op)
		}
	},
	Equal: func(a, b any) bool {
		s, t := a.(rwState), b.(rwState)
		return s.writer == t.writer && s.written == t.written && s.largest == t.largest &&
			slices.Equal(s.readers, t.readers)
	},
	DescribeOperation: func(input, _ any) string {
		op := input.(rwOp)
		who := "writer"
		if op.shared {
			who = "reader"
		}
		switch op.kind {
		case rwTake:
			return fmt.Sprintf("%s acquires %d (%s)", who, op.token, op.node)
		case rwLeave:
			return fmt.Sprintf("%s releases %d", who, op.token)
		default:
			return fmt.Sprintf("%d becomes %s %d (%s)", op.from, who, op.token, op.node)
		}
	},
	DescribeState: func(state any) string {
		s := state.(rwState)
		return fmt.Sprintf("writer %d, readers %d, last %d of %d", s.writer, s.readers, s.written, s.largest)
	},
}

// change makes the writer a reader with the same token, or the only reader a writer with a larger token. That token
// is larger than those of all earlier writers. It need not be larger than those of all readers: it must be smaller
// than that of a waiting writer, and a reader between the two may have come and gone.
func (s rwState) change(op rwOp) (bool, rwState) {
	if op.shared {
		ok := s.writer == op.from && op.token == op.from
		s.writer = 0
		return ok, s.with(op.token)
	}
	held := s.reads(op.from)
	s = s.without(op.from)
	ok := held && len(s.readers) == 0 && op.token > op.from && op.token > s.written
	s.writer, s.written, s.largest = op.token, op.token, max(s.largest, op.token)
	return ok, s
}

// CheckRW checks that holds can be those of one read/write lock: one writer alone or readers together. The tokens of
// writers grow. A reader's token is larger than those of earlier writers and, except for upgraded readers, smaller
// than those of later writers. CheckRW reports errors as CheckMutex does.
func CheckRW(holds []Hold, dir string) error {
	ops := make([]holdOps, len(holds))
	for i, h := range holds {
		take := rwOp{kind: rwTake, shared: h.Shared, token: h.Token, node: h.Node}
		now := take
		var changes []any
		for _, c := range h.Changes {
			now = rwOp{kind: rwChange, shared: c.Shared, from: now.token, token: c.Token, node: h.Node}
			changes = append(changes, now)
		}
		now.kind = rwLeave
		ops[i] = h.ops(take, changes, now)
	}
	return judge(rwModel, "a read/write lock", ops, dir)
}
