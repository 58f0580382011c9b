package lincheck

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/anishathalye/porcupine"
)

// Histories of a right counter, of calls that overlap. Some of them never learned their outcome, and half of those were
// not done.
func TestOrderOfARightCounterIsFound(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			calls := rightCalls(rand.New(rand.NewPCG(seed, 0)), 16, 25)
			ops, unknown := make([]porcupine.Operation, len(calls)), 0
			for i, c := range calls {
				ops[i] = porcupine.Operation{ClientId: c.Client, Input: c, Call: c.Asked, Return: c.last()}
				if c.Done == 0 {
					unknown++
				}
			}
			if !hasOrder(counterModel, counterReads, ops) {
				t.Errorf("got no order of %d calls, %d of unknown outcome", len(ops), unknown)
			}
		})
	}
}

// rightCalls returns calls of a right counter: so many of each client.
func rightCalls(rnd *rand.Rand, clients, each int) []CounterCall {
	type instant struct {
		at   int64
		call *CounterCall
		lost bool // before it was done
	}
	calls := make([]CounterCall, 0, clients*each)
	var instants []instant
	for client := range clients {
		now := rnd.Int64N(100)
		for range each {
			took := 1 + rnd.Int64N(60)
			if rnd.IntN(10) == 0 {
				took += 2000
			}
			calls = append(calls, CounterCall{
				Client: client, Op: CounterAdd, N: 1 + rnd.Int64N(50), Asked: now, Done: now + took,
			})
			x := instant{at: now + rnd.Int64N(took), call: &calls[len(calls)-1]}
			if rnd.IntN(30) == 0 {
				x.call.Done, x.at, x.lost = 0, x.at+rnd.Int64N(500), rnd.IntN(2) == 0
			}
			instants = append(instants, x)
			now += took + rnd.Int64N(50)
		}
	}
	slices.SortFunc(instants, func(a, b instant) int { return cmp.Compare(a.at, b.at) })
	value := int64(0)
	for _, x := range instants {
		c := x.call
		switch rnd.IntN(12) {
		case 0:
			c.Op, c.N = CounterSet, rnd.Int64N(1000)
		case 1:
			c.Op, c.Other = CounterCompare, rnd.Int64N(1000)
		case 2:
			c.Op, c.Other = CounterCompare, value
		case 3:
			c.Op, c.Other = CounterAddUpTo, 1000+rnd.Int64N(1000)
		}
		if x.lost {
			continue
		}
		c.OK = c.Op == CounterAddUpTo && value+c.N <= c.Other || c.Op == CounterCompare && value == c.Other
		switch {
		case c.Op == CounterAdd, c.Op == CounterAddUpTo && c.OK:
			value += c.N
		case c.Op == CounterSet, c.Op == CounterCompare && c.OK:
			value = c.N
		}
		switch {
		case c.Done == 0:
			c.OK = false // its caller does not know
		case c.Op == CounterAdd, c.Op == CounterAddUpTo:
			c.Value = value
		}
	}
	return calls
}
