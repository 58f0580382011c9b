package lincheck

// Verdicts without a page: with the part of a history that shows why it is refused.

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// Verdict says whether a history can be that of what its model describes.
type Verdict int

// The verdicts.
const (
	Accepted  Verdict = iota
	Refused           // it cannot
	Undecided         // there was no time to find out
)

// String returns the verdict in one word.
func (v Verdict) String() string {
	switch v {
	case Accepted:
		return "accepted"
	case Refused:
		return "refused"
	default:
		return "undecided"
	}
}

func verdictOf(r porcupine.CheckResult) Verdict {
	switch r {
	case porcupine.Ok:
		return Accepted
	case porcupine.Illegal:
		return Refused
	default:
		return Undecided
	}
}

// JudgeMutex is CheckMutex without a page. If it refuses the holds, it also returns those that contradict each other:
// from the last one that the contradiction needs to the first that contradicts those before it.
func JudgeMutex(holds []Hold, limit time.Duration) (Verdict, []Hold) {
	sorted := slices.SortedStableFunc(slices.Values(holds), func(a, b Hold) int { return cmp.Compare(a.Got, b.Got) })
	judge := func(part []Hold) Verdict {
		ops := make(holdOps, 0, 2*len(part))
		for _, h := range part {
			take := mutexOp{take: true, token: h.Token, node: h.Node}
			ops = append(ops, h.ops(take, nil, mutexOp{token: h.Token})...)
		}
		return verdictOf(porcupine.CheckOperationsTimeout(mutexModel, ops, limit))
	}
	if v := judge(sorted); v != Refused {
		return v, nil
	}
	end := sort.Search(len(sorted), func(n int) bool { return judge(sorted[:n]) == Refused })
	part := sorted[:end]
	begin := sort.Search(end, func(i int) bool { return judge(part[i:]) != Refused })
	return Refused, part[max(0, begin-1):]
}

// JudgeCounter is CheckCounter without a page. If it refuses the calls, it also returns those that had begun when the
// first one returned that contradicts the others. That is the last one; those that had not returned have no outcome.
func JudgeCounter(calls []CounterCall, limit time.Duration) (Verdict, []CounterCall) {
	calls = slices.DeleteFunc(slices.Clone(calls), func(c CounterCall) bool { return c.Vain })
	slices.SortStableFunc(calls, func(a, b CounterCall) int { return cmp.Compare(a.last(), b.last()) })
	judge := func(part []CounterCall) Verdict {
		ops := make([]porcupine.Operation, len(part))
		for i, c := range part {
			ops[i] = porcupine.Operation{ClientId: c.Client, Input: c, Call: c.Asked, Return: c.last()}
		}
		if hasOrder(counterModel, counterReads, ops) {
			return Accepted
		}
		return verdictOf(porcupine.CheckOperationsTimeout(counterModel, ops, limit))
	}
	if v := judge(calls); v != Refused {
		return v, nil
	}
	returned := slices.IndexFunc(calls, func(c CounterCall) bool { return c.Done == 0 })
	if returned < 0 {
		returned = len(calls)
	}
	n := sort.Search(returned-1, func(i int) bool { return judge(upTo(calls, i)) == Refused })
	return Refused, upTo(calls, n)
}

// last returns the latest time at which the call may have been done.
func (c CounterCall) last() int64 {
	if c.Done == 0 {
		return math.MaxInt64
	}
	return c.Done
}

// upTo returns what was known when the call at a place returned: the calls that had begun, without the outcomes of
// those that returned later. They are sorted by their returns, and the call itself comes last.
func upTo(calls []CounterCall, place int) []CounterCall {
	part := slices.Clone(calls[:place])
	for _, c := range calls[place+1:] {
		if c.Asked <= calls[place].Done {
			c.Done, c.Value, c.OK = 0, 0, false
			part = append(part, c)
		}
	}
	return append(part, calls[place])
}
