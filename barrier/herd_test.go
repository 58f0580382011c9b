package barrier_test

// What it costs the server when many parties meet.

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/barrier"
	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/zktest"
)

// cost is what f costs the server, besides pings.
func (w *world) cost(f func()) (requests map[zktest.Op]int, events int) {
	synctest.Wait()
	before := w.Traffic()
	f()
	synctest.Wait()
	after := w.Traffic()
	delete(after.Requests, zktest.OpPing)
	for op, n := range before.Requests {
		after.Requests[op] -= n
	}
	maps.DeleteFunc(after.Requests, func(_ zktest.Op, n int) bool { return n == 0 })
	return after.Requests, after.Events - before.Events
}

func sum(requests map[zktest.Op]int) int {
	n := 0
	for _, count := range requests {
		n += count
	}
	return n
}

var many = soak.Pick(250, 1000)

// The last arrival at a double barrier costs each party one event and one read, and only the last party lists the
// others.
//
// Promise: 13
func TestManyPartiesEnterWithoutAHerd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.create("/app", path)
		doubles := make([]*barrier.Double, many)
		for i := range doubles {
			doubles[i] = newDouble(t, w.Client(t, timeout), many)
		}
		var waiting []*task[*barrier.Member]
		requests, events := w.cost(func() {
			for _, d := range doubles[1:] {
				waiting = append(waiting, enter(t.Context(), d))
			}
		})
		if requests[zktest.OpGetChildren] > 0 || events > 0 || sum(requests) > 8*many {
			t.Errorf("coming cost %v and %d events", requests, events)
		}
		waiting[0].wantWaiting(t)
		requests, events = w.cost(func() { waiting = append(waiting, enter(t.Context(), doubles[0])) })
		if events != many || sum(requests) > many+10 || requests[zktest.OpGetChildren] != 1 {
			t.Errorf("the last arrival cost %v and %d events, want one event and one read for each", requests, events)
		}
		var members []*barrier.Member
		for _, k := range waiting {
			members = append(members, k.wantOver(t))
		}
		requests, events = w.cost(func() { leaveAll(t, members...) })
		// Each deletes its node, watches the lowest, is told that it is gone, and looks once.
		if events > many+20 || sum(requests) > 5*many || requests[zktest.OpGetChildren] > 20 {
			t.Errorf("leaving cost %v and %d events", requests, events)
		}
		w.wantChildren(path)
	})
}

// Members that have deleted their nodes wait for the lowest one, also when that takes long. Then they see from the
// number of members that none is left.
//
// Promise: 13
func TestManyPartiesThatLeaveDoNotListEachOther(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var doubles []*barrier.Double
		for range 65 {
			doubles = append(doubles, w.double(65))
		}
		members := byName(enterAll(t, doubles...))
		var leaving []*task[struct{}]
		requests, _ := w.cost(func() {
			for _, m := range members[1:] {
				leaving = append(leaving, leave(t.Context(), m))
			}
			time.Sleep(2 * time.Second) // in the world's time
		})
		leaving[0].wantWaiting(t)
		if n := requests[zktest.OpGetChildren]; n > 0 {
			t.Errorf("listed the members %d times while they waited for one", n)
		}
		requests, _ = w.cost(func() { leaveAll(t, members[0]) })
		if n := requests[zktest.OpGetChildren]; n > 1 {
			t.Errorf("listed the members %d times after the last one, want 1", n)
		}
		for _, k := range leaving {
			k.wantOver(t)
		}
		w.wantChildren(path)
	})
}

// Promise: 13
func TestManyPartiesEndARoundWithoutAHerd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var parties []*barrier.Party
		for range many {
			parties = append(parties, w.join(many, barrier.FailRound))
		}
		for round := range int64(2) {
			var waiting []*task[int64]
			requests, events := w.cost(func() {
				for _, p := range parties[1:] {
					waiting = append(waiting, arrive(t.Context(), p))
				}
			})
			if requests[zktest.OpGetChildren] > 0 || events > 0 || sum(requests) > 4*many {
				t.Errorf("arriving cost %v and %d events", requests, events)
			}
			requests, events = w.cost(func() { waiting = append(waiting, arrive(t.Context(), parties[0])) })
			if events > many || sum(requests) > many+12 || requests[zktest.OpGetChildren] > 0 {
				t.Errorf("the last arrival cost %v and %d events, want one of each for a party", requests, events)
			}
			for _, k := range waiting {
				wantRound(t, round+1, k.wantOver(t))
			}
		}
	})
}
