package zk

import (
	"math"
	"testing"
)

func TestQueueKeepsItsOrderThroughGrowthAndRemoval(t *testing.T) {
	t.Parallel()
	var q fifo
	var want []int32
	next := int32(0)
	for round := range 200 {
		for range round%7 + 1 {
			q.push(&call{xid: next})
			want = append(want, next)
			next++
		}
		if round%3 == 0 {
			i := round % len(want)
			q.remove(i)
			want = append(want[:i:i], want[i+1:]...)
		}
		for range min(round%4, len(want)) {
			if c := q.pop(); c.xid != want[0] {
				t.Fatalf("round %d: got %d, want %d", round, c.xid, want[0])
			}
			want = want[1:]
		}
		if q.len() != len(want) {
			t.Fatalf("round %d: %d queued, want %d", round, q.len(), len(want))
		}
	}
	for i, xid := range want {
		if got := q.at(i).xid; got != xid {
			t.Errorf("place %d: got %d, want %d", i, got, xid)
		}
	}
}

func TestRequestNumbersStartAgainAtOne(t *testing.T) {
	t.Parallel()
	s := &Session{xid: math.MaxInt32 - 1}
	if got := s.takeXid(); got != math.MaxInt32 {
		t.Errorf("got %d, want the largest", got)
	}
	if got := s.takeXid(); got != 1 {
		t.Errorf("after the largest: got %d, want 1", got)
	}
}
