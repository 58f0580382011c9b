package barrier_test

// Members that have deleted their nodes and rely on the lowest one.

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/barrier"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// byName sorts the members by the names of their nodes.
func byName(members []*barrier.Member) []*barrier.Member {
	slices.SortFunc(members, func(a, b *barrier.Member) int { return strings.Compare(a.Path(), b.Path()) })
	return members
}

// three lets three parties enter, after so many other rounds, and returns the members by the names of their nodes, each
// with its client.
func (w *world) three(rounds int) (members []*barrier.Member, clients map[*barrier.Member]*zk.Client) {
	w.t.Helper()
	clients = make(map[*barrier.Member]*zk.Client)
	var own []*zk.Client
	var doubles []*barrier.Double
	for i := range 3 {
		own = append(own, w.Client(w.t, timeout))
		doubles = append(doubles, newDouble(w.t, own[i], 3))
	}
	for range rounds {
		leaveAll(w.t, enterAll(w.t, doubles...)...)
	}
	members = enterAll(w.t, doubles...)
	for i, m := range members {
		clients[m] = own[i]
	}
	return byName(members), clients
}

// inSeveralRounds runs a test with three members, in their first round and in later ones.
func inSeveralRounds(
	t *testing.T, test func(t *testing.T, w *world, members []*barrier.Member, clients map[*barrier.Member]*zk.Client),
) {
	t.Helper()
	t.Parallel()
	for rounds := range 4 {
		t.Run(strconv.Itoa(rounds), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				members, clients := w.three(rounds)
				test(t, w, members, clients)
			})
		})
	}
}

// Promise: 13
func TestDeathOfTheLowestDoesNotHoldUpTheOthers(t *testing.T) {
	inSeveralRounds(t, func(t *testing.T, w *world, members []*barrier.Member, clients map[*barrier.Member]*zk.Client) {
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

// Promise: 13
func TestMemberThatLeavesEarlyWaitsAsLongAsItTakes(t *testing.T) {
	inSeveralRounds(t, func(t *testing.T, w *world, members []*barrier.Member, _ map[*barrier.Member]*zk.Client) {
		c := leave(t.Context(), members[2])
		time.Sleep(10 * time.Minute) // in the world's time
		c.wantWaiting(t)
		a := leave(t.Context(), members[0])
		time.Sleep(10 * time.Minute) // in the world's time
		a.wantWaiting(t)
		c.wantWaiting(t)
		leaveAll(t, members[1])
		a.wantOver(t)
		c.wantOver(t)
		w.wantChildren(path)
		time.Sleep(time.Minute) // in the world's time
		w.NoWatches(t)
	})
}

// After a reconnect a server reports that the ready node is another one as a change of it.
//
// Promise: 13
func TestChangeAfterAReconnectIsNotTheEnd(t *testing.T) {
	inSeveralRounds(t, func(t *testing.T, w *world, members []*barrier.Member, clients map[*barrier.Member]*zk.Client) {
		early := leave(t.Context(), members[2])
		early.wantWaiting(t)
		id := session(t, clients[members[2]]).ID()
		// A watch of another party in the same process has the server report it also to one that misses no event.
		_, _, _, err := session(t, clients[members[2]]).GetW(t.Context(), path+"/ready")
		must(t, err)
		w.Cut(id)
		w.openAnew()
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

// It may have come before the member begins to leave.
//
// Promise: 13
func TestChangeBeforeLeavingIsNotTheEnd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		clients := []*zk.Client{w.Client(t, timeout), w.Client(t, timeout)}
		a, b := enter(t.Context(), newDouble(t, clients[0], 3)), enter(t.Context(), newDouble(t, clients[1], 3))
		synctest.Wait()
		last := enterAll(t, w.double(3))[0]
		members := []*barrier.Member{a.wantOver(t), b.wantOver(t)} // have read the ready node
		early, other := 0, 1
		if members[early].Path() < members[other].Path() {
			early, other = other, early
		}
		id := session(t, clients[early]).ID()
		w.Cut(id)
		w.openAnew()
		w.Heal(id)
		time.Sleep(time.Second) // in the world's time
		k := leave(t.Context(), members[early])
		k.wantWaiting(t)
		leaveAll(t, members[other], last)
		k.wantOver(t)
		w.wantChildren(path)
	})
}

// openAnew deletes the ready node and makes it again, as a party of kazoo's does that begins to leave, and one that
// comes.
func (w *world) openAnew() {
	w.t.Helper()
	sess := w.Session(w.t, timeout)
	for range 2 {
		_, err := sess.Multi(w.t.Context(), zk.DeleteOp(path+"/ready", -1),
			zk.CreateOp(path+"/ready", nil, zk.Persistent))
		must(w.t, err)
	}
}

// withoutWrite returns n parties of one barrier, of that many or of fewer, on whose nodes everyone may do anything but
// write.
func (w *world) withoutWrite(n, parties int) (doubles []*barrier.Double) {
	w.t.Helper()
	acl := []zk.ACL{{Perms: zk.PermRead | zk.PermCreate | zk.PermDelete, ID: zk.ID{Scheme: "world", ID: "anyone"}}}
	for range n {
		d, err := barrier.NewDouble(w.Client(w.t, timeout), path, parties, barrier.Config{ACL: acl, AnyACL: true})
		must(w.t, err)
		doubles = append(doubles, d)
	}
	return doubles
}

// Promise: 13
func TestMembersThatMayNotWriteToNodesLeave(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		doubles := w.withoutWrite(3, 3)
		for range 2 {
			leaveAll(t, enterAll(t, doubles...)...)
		}
		w.wantChildren(path)
	})
}

// From the third round on a party writes to come, and to leave, and is told twice. It reads nothing. The lowest one,
// which waits for all others, has a few reads more.
//
// Promise: 13
func TestRoundCostsEachPartyTwoWritesAndTwoEvents(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const parties = 16
		var doubles []*barrier.Double
		for range parties {
			doubles = append(doubles, w.double(parties))
		}
		for range 2 {
			leaveAll(t, enterAll(t, doubles...)...)
		}
		var members []*barrier.Member
		requests, events := w.cost(func() { members = enterAll(t, doubles...) })
		// Those that come at the same moment look whether all are there.
		if sum(requests) > 2*parties+1 || requests[zktest.OpMulti] != parties+1 || events > 2*parties {
			t.Errorf("entering cost %v and %d events", requests, events)
		}
		byName(members)
		requests, events = w.cost(func() { leaveAll(t, members...) })
		if sum(requests) > parties+parties || requests[zktest.OpDelete] != parties-1 ||
			requests[zktest.OpMulti] != 1 || events > 3*parties {
			t.Errorf("leaving cost %v and %d events", requests, events)
		}
		w.wantChildren(path)
	})
}
