package lincheck

// The model of a counter.

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"
)

// The operations of a CounterCall.
const (
	CounterAdd     = "add"     // adds N
	CounterAddUpTo = "up to"   // adds N unless the sum is above Other
	CounterCompare = "compare" // sets N if the value is Other
	CounterSet     = "set"     // sets N
	CounterGet     = "get"     // reads
)

// CounterCall is one call of a counter as its caller saw it. Times are as in Hold.
type CounterCall struct {
	Client   int
	Op       string
	N, Other int64 `json:",omitempty"`
	Asked    int64 // before the call
	Done     int64 `json:",omitempty"` // after it; 0 if the outcome is unknown: it may have been done at any time since

	Value int64 `json:",omitempty"` // what it returned; nothing for compare and set
	OK    bool  `json:",omitempty"` // whether the value was changed
	Vain  bool  `json:",omitempty"` // it returned an error that says that nothing was done
}

var counterModel = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, input, _ any) (bool, any) {
		v, c := state.(int64), input.(CounterCall)
		next := v
		switch {
		case c.Op == CounterAdd, c.Op == CounterAddUpTo && v+c.N <= c.Other:
			next = v + c.N
		case c.Op == CounterSet, c.Op == CounterCompare && v == c.Other:
			next = c.N
		}
		if c.Done == 0 {
			return true, next
		}
		switch c.Op {
		case CounterGet, CounterAdd:
			return c.Value == next, next
		case CounterAddUpTo:
			return c.Value == next && c.OK == (v+c.N <= c.Other), next
		case CounterCompare:
			return c.OK == (v == c.Other), next
		default:
			return true, next
		}
	},
	DescribeOperation: func(input, _ any) string {
		c := input.(CounterCall)
		return fmt.Sprintf("%s %d, %d: %d, %v", c.Op, c.N, c.Other, c.Value, c.OK)
	},
	DescribeState: func(state any) string { return fmt.Sprint(state) },
}

// counterReads reports whether a call changes nothing wherever it is right.
func counterReads(input any) bool {
	c := input.(CounterCall)
	return c.Op == CounterGet || !c.OK && (c.Op == CounterCompare || c.Op == CounterAddUpTo)
}

// CheckCounter checks that the calls can be those of one counter that begins at 0: each was done at one instant between
// its beginning and its end, and was told the value of then. Those whose outcome is unknown were done at most once, at
// any time after their beginning. If that cannot be, it writes the history as a page into dir and returns an error with
// the page's name.
func CheckCounter(calls []CounterCall, dir string) error {
	calls = slices.DeleteFunc(calls, func(c CounterCall) bool { return c.Vain })
	return judgeCalls(counterModel, counterReads, "a counter", calls,
		func(c CounterCall) porcupine.Operation {
			return porcupine.Operation{ClientId: c.Client, Input: c, Call: c.Asked, Return: c.Done}
		}, dir)
}

// judgeCalls returns nil if the model accepts the calls. A call without a return may happen at any time. The model's
// states must be comparable.
func judgeCalls[T any](
	model porcupine.Model, reads func(any) bool, what string, calls []T, operation func(T) porcupine.Operation,
	dir string,
) error {
	all := make(holdOps, len(calls))
	for i, c := range calls {
		all[i] = operation(c)
		if all[i].Return == 0 {
			all[i].Return = math.MaxInt64
		}
		// A page has a row for each client, and calls of unknown outcome would overlap with the client's next.
	}
	if hasOrder(model, reads, all) {
		return nil
	}
	result := porcupine.CheckOperationsTimeout(model, all, judgeLimit)
	if result == porcupine.Ok {
		return nil
	}
	verdict := fmt.Errorf("lincheck: %s: history of %d calls is not that of %s", result, len(calls), what)
	return keep(verdict, dir, func(page io.Writer) error { return show(model, []holdOps{all}, page) })
}
