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

// Promise: 13
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

// The one that comes in its place may come too early to see all.
//
// Promise: 13
func TestPartiesThatRelyOnALeaderLookWhenItDoesNotComeAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		doubles := w.regulars(3)
		first := enter(t.Context(), w.double(3))
		synctest.Wait()
		second, third := enter(t.Context(), doubles[1]), enter(t.Context(), doubles[2])
		time.Sleep(time.Second) // in the world's time
		leaveAll(t, first.wantOver(t), second.wantOver(t), third.wantOver(t))
		w.wantChildren(path)
	})
}

// Promise: 13
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
		time.Sleep(500 * time.Millisecond) // in the world's time; they wait longer for one that is there
		for _, k := range waiting {
			k.wantOver(t)
		}
		w.wantChildren(path)
	})
}

// Promise: 13
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
//
// Promise: 13
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
//
// Promise: 13
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
		synctest.Wait()
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

// Those that come after a peer has closed the barrier may wait for the party that leaves, so it must not wait for them.
//
// Promise: 13
func TestRegularDoesNotWaitForTheNextRoundWhenAPeerHasClosedTheBarrier(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]bool{"connected": false, "cut off": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				members, clients := w.three(2)
				if cut {
					w.Cut(session(t, clients[members[2]]).ID())
				}
				_, err := w.Session(t, timeout).Multi(t.Context(),
					zk.DeleteOp(path+"/ready", -1), zk.DeleteOp(members[1].Path(), -1))
				must(t, err)
				w.create(path+"/zz-new-1", path+"/zz-new-2")
				synctest.Wait()
				k := leave(t.Context(), members[2])
				k.wantWaiting(t)
				w.Heal()
				time.Sleep(2 * time.Second) // in the world's time
				k.wantWaiting(t)
				w.delete(members[0].Path())
				time.Sleep(2 * time.Second) // in the world's time
				k.wantOver(t)
			})
		})
	}
}

// A request of an earlier round that is done late must not do anything to the node of this one.
//
// Promise: 13
func TestNodesHaveNewNamesInEachRound(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		doubles := []*barrier.Double{w.double(2), w.double(2)}
		seen := make(map[string]bool)
		for range 4 {
			members := enterAll(t, doubles...)
			for _, m := range members {
				if seen[m.Path()] {
					t.Errorf("%s was there before", m.Path())
				}
				seen[m.Path()] = true
			}
			leaveAll(t, members...)
		}
	})
}

// Promise: 13
func TestRegularUnderANewSessionIsToldOfItsRounds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, timeout)
		doubles := []*barrier.Double{newDouble(t, client, 2), w.double(2)}
		leaveAll(t, enterAll(t, doubles...)...)
		leaveAll(t, enterAll(t, doubles...)...)
		w.ExpireSession(session(t, client).ID())
		time.Sleep(2 * time.Second) // in the world's time
		requests, _ := w.cost(func() { leaveAll(t, enterAll(t, doubles...)...) })
		if n := requests[zktest.OpAddWatch]; n != 1 {
			t.Errorf("asked for %d persistent watches, want 1", n)
		}
		requests, _ = w.cost(func() { leaveAll(t, enterAll(t, doubles...)...) })
		if n := requests[zktest.OpAddWatch]; n != 0 {
			t.Errorf("asked for %d persistent watches in the next round, want 0", n)
		}
	})
}

// A leader of many parties would list them whenever one comes.
//
// Promise: 13
func TestManyPartiesThatComeAgainRelyOnNoLeader(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var doubles []*barrier.Double
		for range 65 {
			doubles = append(doubles, w.double(65))
		}
		leaveAll(t, enterAll(t, doubles...)...)
		requests, _ := w.cost(func() { leaveAll(t, enterAll(t, doubles...)...) })
		if n := requests[zktest.OpAddWatch]; n != 0 {
			t.Errorf("asked for %d persistent watches, want 0", n)
		}
	})
}

// Promise: 13
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

// Promise: 13
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
