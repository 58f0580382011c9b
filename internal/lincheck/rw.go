package lincheck

import (
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"
)

// rwOp is one operation of the history: to take the lock, to let go of it, or to change how it is held.
type rwOp struct {
	kind   rwKind
	shared bool  // whether it is held by a reader afterwards, or was, if it is left
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
	writer  int64 // its token, 0 if nobody writes
	readers []int64
	written int64 // the largest token that a writer has had
	largest int64 // the largest token at all
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

// share lets a reader in: it must know of all writers before it.
func (s rwState) share(token int64) (bool, rwState) {
	ok := s.writer == 0 && token > s.written && !s.reads(token)
	s = s.with(token)
	s.largest = max(s.largest, token)
	return ok, s
}

// exclude lets a writer in: it must know of all readers and writers before it.
func (s rwState) exclude(token int64) (bool, rwState) {
	ok := s.writer == 0 && len(s.readers) == 0 && token > s.largest
	s.writer, s.written, s.largest = token, token, token
	return ok, s
}

// rwModel is a lock that one writer or any number of readers hold.
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
		return s.writer == t.writer && s.written == t.written && s.largest == t.largest && slices.Equal(s.readers, t.readers)
	},
	DescribeOperation: func(input, _ any) string {
		op := input.(rwOp)
		who := "writer"
		if op.shared {
			who = "reader"
		}
		switch op.kind {
		case rwTake:
			return fmt.Sprintf("%s takes %d (%s)", who, op.token, op.node)
		case rwLeave:
			return fmt.Sprintf("%s leaves %d", who, op.token)
		default:
			return fmt.Sprintf("%d becomes %s %d (%s)", op.from, who, op.token, op.node)
		}
	},
	DescribeState: func(state any) string {
		s := state.(rwState)
		return fmt.Sprintf("writer %d, readers %d, last %d of %d", s.writer, s.readers, s.written, s.largest)
	},
}

// change makes a reader of the writer, with its token, or the writer of the only reader, with a larger one. That is larger than those of
// all writers before it. Of readers it says nothing: it must be smaller than that of a writer which waits, and a reader may have come
// and gone meanwhile which stood between the two.
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

// CheckRW judges whether holds can be those of one read/write lock: a writer alone or readers together. The tokens of writers grow; that of
// a reader is larger than those of the writers before it, and smaller than those of the writers after it, but for upgraded readers. It
// reports as CheckMutex does.
func CheckRW(holds []Hold, dir string) error {
	stories := make([]story, len(holds))
	for i, h := range holds {
		take := rwOp{kind: rwTake, shared: h.Shared, token: h.Token, node: h.Node}
		now := take
		var changes []any
		for _, c := range h.Changes {
			now = rwOp{kind: rwChange, shared: c.Shared, from: now.token, token: c.Token, node: h.Node}
			changes = append(changes, now)
		}
		now.kind = rwLeave
		stories[i] = h.story(take, changes, now)
	}
	return judge(rwModel, "a read/write lock", stories, dir)
}
