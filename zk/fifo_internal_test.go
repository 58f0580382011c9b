package zk

import (
	"math"
	"math/bits"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
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
			odd := func(xid int32) bool { return xid%2 == 1 }
			q.filter(i, func(c *call) bool { return !odd(c.xid) })
			want = append(want[:i:i], slices.DeleteFunc(want[i:], odd)...)
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

func TestQueueIsTidiedFewTimesWhenAllItsCallersLeave(t *testing.T) {
	t.Parallel()
	const callers = 1 << 12
	set, err := Config{Servers: "a"}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s := newSession(&Client{cfg: set, clock: newClock(nil), log: set.Logger})
	calls := make([]*call, callers)
	for i := range calls {
		calls[i] = s.newCall(wire.OpSync, "/a")
		s.mu.Lock()
		s.enqueue(calls[i], &wire.PathRequest{Path: "/a"})
		s.mu.Unlock()
	}
	tidied, size := 0, len(s.out)
	for i, c := range calls {
		if got := s.cancelCall(c); got != NotSent {
			t.Fatalf("caller %d: %v, want not sent", i, got)
		}
		if len(s.out) != size {
			tidied, size = tidied+1, len(s.out)
		}
	}
	if most := bits.Len(callers); tidied > most || size > 0 || s.calls.len() > 0 {
		t.Errorf("%d passes left %d calls and %d bytes; want at most %d passes, and nothing left",
			tidied, s.calls.len(), size, most)
	}
}

// Calls are recycled, so the queue must not refer to calls that are no longer queued.
func TestQueueLetsGoOfWhatItDrops(t *testing.T) {
	t.Parallel()
	var q fifo
	for i := range 20 {
		q.push(&call{xid: int32(i)})
	}
	for range 5 {
		q.pop()
	}
	q.filter(3, func(c *call) bool { return c.xid%4 == 0 })
	kept := 0
	for _, c := range q.ring {
		if c != nil {
			kept++
		}
	}
	if kept != q.len() {
		t.Errorf("the ring has %d calls, %d are queued", kept, q.len())
	}
}

func TestWhoWaitsForAllAnswersIsToldWhenTheLastCallerLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		set, err := Config{Servers: "a"}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		s := newSession(&Client{cfg: set, clock: newClock(nil), log: set.Logger})
		c := s.newCall(wire.OpSync, "/a")
		s.mu.Lock()
		s.conn = &conn{writing: true} // busy, so that the call waits
		s.enqueue(c, &wire.PathRequest{Path: "/a"})
		s.mu.Unlock()
		began := time.Now()
		time.AfterFunc(time.Second, func() { s.cancelCall(c) })
		s.drain(time.Hour)
		if waited := time.Since(began); waited != time.Second {
			t.Errorf("waited for %v, want a second", waited)
		}
	})
}
