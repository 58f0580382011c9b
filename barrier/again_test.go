package barrier_test

// Rounds of parties that were in the round before, when something is not as they expect.

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/barrier"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// regulars returns parties that have been in two rounds together, the first of which leads.
func (w *world) regulars(parties int) []*barrier.Double {
	w.t.Helper()
	var doubles []*barrier.Double
	for range parties {
		doubles = append(doubles, w.double(parties))
	}
	leaveAll(w.t, enterAll(w.t, doubles...)...)
	members := enterAll(w.t, doubles...)
	leaveAll(w.t, members...)
	lowest := 0
	for i, m := range members {
		if m.Path() < members[lowest].Path() {
			lowest = i
		}
	}
	doubles[0], doubles[lowest] = doubles[lowest], doubles[0]
	return doubles
}

// meet lets all parties enter and leave, which may take a while.
func meet(t *testing.T, doubles ...*barrier.Double) {
	t.Helper()
	var coming []*task[*barrier.Member]
	for _, d := range doubles {
		coming = append(coming, enter(t.Context(), d))
	}
	time.Sleep(time.Second) // in the world's time
	var leaving []*task[struct{}]
	for _, k := range coming {
		leaving = append(leaving, leave(t.Context(), k.wantOver(t)))
	}
	time.Sleep(time.Second) // in the world's time
	for _, k := range leaving {
		k.wantOver(t)
	}
}

func TestLeaderThatDoesNotComeAgainIsNotWaitedFor(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		doubles := w.regulars(3)
		doubles[0] = w.double(3)
		for range 3 {
			meet(t, doubles...)
		}
		w.wantChildren(path)
	})
}

func TestPartyThatReliesOnALeaderLooksWhenThatIsGone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		doubles := w.regulars(3)
		members := enterAll(t, doubles...)
		waiting := []*task[struct{}]{leave(t.Context(), members[1]), leave(t.Context(), members[2])}
		for _, m := range members[1:] {
			if m.Path() < members[0].Path() {
				t.Fatal("the lowest member is not the lowest of the round before")
			}
		}
		w.delete(members[0].Path())
		time.Sleep(2 * time.Second) // in the world's time
		for _, k := range waiting {
			k.wantOver(t)
		}
		w.wantChildren(path)
	})
}

func TestPartyThatComesBesideRegularsEnters(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		doubles := w.regulars(3)
		for range 3 {
			meet(t, append(doubles, w.double(3))...)
		}
		w.wantChildren(path)
	})
}

// Kazoo's parties delete the ready node when they begin to leave.
func TestRegularsLeaveWhenAPeerHasClosedTheBarrier(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"before they leave": false, "while one waits for the others": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				members := enterAll(t, w.regulars(3)...)
				var early *task[struct{}]
				if late {
					early = leave(t.Context(), members[2])
					early.wantWaiting(t)
				}
				w.delete(path + "/ready")
				if !late {
					early = leave(t.Context(), members[2])
				}
				time.Sleep(2 * time.Second) // in the world's time
				early.wantWaiting(t)
				others := []*task[struct{}]{leave(t.Context(), members[1]), leave(t.Context(), members[0])}
				time.Sleep(2 * time.Second) // in the world's time
				early.wantOver(t)
				for _, k := range others {
					k.wantOver(t)
				}
				w.wantChildren(path)
			})
		})
	}
}

// The first to come also waits for those that came later, although it has not seen the ready node.
func TestRegularThatCameFirstWaitsForTheOthersWhenAPeerHasClosedTheBarrier(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		doubles := w.regulars(3)
		var coming []*task[*barrier.Member]
		for _, d := range []*barrier.Double{doubles[1], doubles[2], doubles[0]} { // the leader last
			coming = append(coming, enter(t.Context(), d))
			synctest.Wait()
		}
		var members []*barrier.Member
		for _, k := range coming {
			members = append(members, k.wantOver(t))
		}
		w.delete(path + "/ready")
		first := leave(t.Context(), members[0])
		first.wantWaiting(t)
		w.delete(members[2].Path()) // as if the leader had died
		time.Sleep(2 * time.Second) // in the world's time
		first.wantWaiting(t)
		leaveAll(t, members[1:]...)
		first.wantOver(t)
		w.wantChildren(path)
	})
}

func TestRegularsMeetWhereServersHaveNoPersistentWatches(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpAddWatch {
				return zktest.Answer(zk.Unimplemented)
			}
			return zktest.Pass
		})
		doubles := w.regulars(3)
		before := w.Traffic().Requests[zktest.OpAddWatch]
		for range 3 {
			meet(t, doubles...)
		}
		if after := w.Traffic().Requests[zktest.OpAddWatch]; after != before {
			t.Errorf("asked %d times more for persistent watches", after-before)
		}
		w.wantChildren(path)
	})
}

func TestPartyThatDoesNotComeAgainGivesUpItsWatch(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.regulars(3)
		time.Sleep(time.Minute) // in the world's time
		w.NoWatches(t)
	})
}

// delete deletes a node as another client.
func (w *world) delete(path string) {
	w.t.Helper()
	must(w.t, w.Session(w.t, timeout).Delete(w.t.Context(), path, -1))
}
