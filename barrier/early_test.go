package barrier_test

// Members that have deleted their nodes and rely on the lowest one.

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/barrier"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// byName sorts the members by the names of their nodes.
func byName(members []*barrier.Member) []*barrier.Member {
	slices.SortFunc(members, func(a, b *barrier.Member) int { return cmpString(a.Path(), b.Path()) })
	return members
}

// three lets three parties enter, and returns the members by the names of their nodes, each with its client.
func (w *world) three() (members []*barrier.Member, clients map[*barrier.Member]*zk.Client) {
	w.t.Helper()
	clients = make(map[*barrier.Member]*zk.Client)
	var own []*zk.Client
	var doubles []*barrier.Double
	for i := range 3 {
		own = append(own, w.Client(w.t, timeout))
		doubles = append(doubles, newDouble(w.t, own[i], 3))
	}
	members = enterAll(w.t, doubles...)
	for i, m := range members {
		clients[m] = own[i]
	}
	return byName(members), clients
}

func TestDeathOfTheLowestDoesNotHoldUpTheOthers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		members, clients := w.three()
		b, c := leave(t.Context(), members[1]), leave(t.Context(), members[2])
		b.wantWaiting(t)
		c.wantWaiting(t)
		w.ExpireSession(session(t, clients[members[0]]).ID())
		time.Sleep(2 * time.Second) // in the world's time
		b.wantOver(t)
		c.wantOver(t)
		w.wantChildren(path)
	})
}

func TestMemberThatLeavesEarlyWaitsAsLongAsItTakes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		members := byName(enterAll(t, w.double(3), w.double(3), w.double(3)))
		c := leave(t.Context(), members[2])
		time.Sleep(time.Hour) // in the world's time
		c.wantWaiting(t)
		a := leave(t.Context(), members[0])
		time.Sleep(time.Hour) // in the world's time
		a.wantWaiting(t)
		c.wantWaiting(t)
		leaveAll(t, members[1])
		a.wantOver(t)
		c.wantOver(t)
		w.wantChildren(path)
		w.NoWatches(t)
	})
}

// After a reconnect a server reports that the ready node is another one as a change of it.
func TestChangeAfterAReconnectIsNotTheEnd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		members, clients := w.three()
		early := leave(t.Context(), members[2])
		early.wantWaiting(t)
		id := session(t, clients[members[2]]).ID()
		w.Cut(id)
		sess := w.Session(t, timeout)
		for range 2 { // as a party of kazoo's does that begins to leave, and a party that comes
			if _, err := sess.Multi(t.Context(), zk.DeleteOp(path+"/ready", -1),
				zk.CreateOp(path+"/ready", nil, zk.Persistent)); err != nil {
				t.Fatal(err)
			}
		}
		w.Heal(id)
		for range 20 {
			time.Sleep(100 * time.Millisecond) // in the world's time
			early.wantWaiting(t)
		}
		leaveAll(t, members[:2]...)
		early.wantOver(t)
		w.wantChildren(path)
	})
}

func TestMembersThatMayNotWriteToNodesLeave(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		acl := []zk.ACL{{Perms: zk.PermRead | zk.PermCreate | zk.PermDelete, ID: zk.ID{Scheme: "world", ID: "anyone"}}}
		var doubles []*barrier.Double
		for range 3 {
			d, err := barrier.NewDouble(w.Client(t, timeout), path, 3, barrier.Config{ACL: acl})
			if err != nil {
				t.Fatal(err)
			}
			doubles = append(doubles, d)
		}
		for range 2 {
			leaveAll(t, enterAll(t, doubles...)...)
		}
		w.wantChildren(path)
	})
}

// A round after the first costs a party one write and two reads, which go out together, to come, one read when the
// barrier opens, and one write to leave; and two events. The party that opens it, and the lowest one, which waits for
// all others, have a few reads more.
func TestRoundCostsEachPartyTwoWritesAndTwoEvents(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const parties = 16
		var doubles []*barrier.Double
		for range parties {
			doubles = append(doubles, w.double(parties))
		}
		leaveAll(t, enterAll(t, doubles...)...)
		var members []*barrier.Member
		requests, events := w.cost(func() { members = enterAll(t, doubles...) })
		if sum(requests) > 4*parties+1 || requests[zktest.OpMulti] != parties+1 || events > parties {
			t.Errorf("entering cost %v and %d events", requests, events)
		}
		byName(members)
		requests, events = w.cost(func() { leaveAll(t, members...) })
		if sum(requests) > 2+2*parties+parties || requests[zktest.OpDelete] != parties-1 ||
			requests[zktest.OpMulti] != 1 || events > 3*parties {
			t.Errorf("leaving cost %v and %d events", requests, events)
		}
		w.wantChildren(path)
	})
}
