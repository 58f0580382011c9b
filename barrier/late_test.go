package barrier_test

// Parties that come while a double barrier is open, and when it opens.

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/barrier"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// The other parties would not wait for a party without a node.
//
// Promise: 13
func TestLatePartyWhoseNodeIsDeletedComesAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		members := enterAll(t, w.double(2), w.double(2))
		before := w.children(path)
		held, release := context.WithCancel(t.Context())
		reached := holdTransaction(held, w, zktest.OpSetData)
		late := enter(t.Context(), w.double(2))
		<-reached
		w.Control(nil)
		for _, name := range w.children(path) {
			if !slices.Contains(before, name) {
				w.delete(path + "/" + name)
			}
		}
		release()
		m := late.wantOver(t)
		if name := strings.TrimPrefix(m.Path(), path+"/"); !slices.Contains(w.children(path), name) {
			t.Errorf("got children %q, want %s among them", w.children(path), name)
		}
		leaveAll(t, append(members, m)...)
		w.wantChildren(path)
	})
}

// A party that knows the round before does not take the opening that it has missed for one that let it in.
//
// Promise: 13
func TestRegularThatComesLateSaysSo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		doubles := w.regulars(2)
		members := enterAll(t, doubles[0], w.double(2))
		requests, _ := w.cost(func() { members = append(members, enterAll(t, doubles[1])...) })
		if requests[zktest.OpMulti] < 2 {
			t.Errorf("entering cost %v, want a transaction to come and one to say so", requests)
		}
		leaveAll(t, members...)
		w.wantChildren(path)
	})
}

// Promise: 13
func TestPartyThatMayNotWriteComesLate(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		doubles := w.withoutWrite(3, 2)
		members := enterAll(t, doubles[:2]...)
		leaveAll(t, append(members, enterAll(t, doubles[2])...)...)
		w.wantChildren(path)
	})
}

// Promise: 13
func TestPartiesThatMayNotWriteCloseWhatTheDeadLeftOpen(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		doubles := w.withoutWrite(2, 2)
		a := enter(t.Context(), doubles[0])
		synctest.Wait()
		w.create(path + "/00000000-peer")
		_, err := w.Session(t, timeout).Create(t.Context(), path+"/ready", []byte("00000000-peer"), zk.Persistent)
		must(t, err)
		k := leave(t.Context(), a.wantOver(t))
		k.wantWaiting(t)
		w.delete(path + "/00000000-peer")
		time.Sleep(2 * time.Second) // in the world's time
		k.wantOver(t)
		w.wantChildren(path)
		w.create(path + "/ready")
		a = enter(t.Context(), doubles[0])
		a.wantWaiting(t)
		leaveAll(t, append(enterAll(t, doubles[1]), a.wantOver(t))...)
		w.wantChildren(path)
	})
}

// A server that lags behind may show a barrier that was left open, when it was closed and others are inside by now.
//
// Promise: 13
func TestPartyWhoseServerLagsBehindDoesNotCloseTheBarrier(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ready := path + "/ready"
		w.create("/app", path, ready)
		client := w.Client(t, timeout)
		id := session(t, client).ID()
		sess := w.Session(t, timeout)
		_, _, err := sess.Get(t.Context(), path)
		must(t, err)
		_, _, err = sess.Exists(t.Context(), ready)
		must(t, err)
		w.children(path)
		behind := true
		w.Control(func(r zktest.Request) zktest.Fault {
			switch {
			case r.Session != id || !behind:
				return zktest.Pass
			case r.Op == zktest.OpDelete || r.Op == zktest.OpMulti: // the reply to a write brings the server up to date
				behind = false
				return zktest.Pass
			default:
				return zktest.Stale
			}
		})
		w.delete(ready)
		w.create(path+"/peer-1", path+"/peer-2")
		results, err := sess.Multi(t.Context(), zk.CreateOp(ready, nil, zk.Persistent))
		must(t, err)
		late := enter(t.Context(), newDouble(t, client, 2)).wantOver(t)
		if behind {
			t.Fatal("the party has written nothing")
		}
		stat, open, err := sess.Exists(t.Context(), ready)
		if must(t, err); !open || stat.Czxid != results[0].Zxid {
			t.Errorf("open=%t, czxid %d, want %d", open, stat.Czxid, results[0].Zxid)
		}
		w.delete(path + "/peer-1")
		w.delete(path + "/peer-2")
		leaveAll(t, late)
		w.wantChildren(path)
	})
}

// The party sees the ready node of a round that ends, and then no members. It must not close the barrier: that may be
// open for the next round by then.
//
// Promise: 13
func TestPartyThatComesAsARoundEndsWaitsForTheNext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		members := enterAll(t, w.double(2), w.double(2))
		client := w.Client(t, timeout)
		id := session(t, client).ID()
		held, release := context.WithCancel(t.Context())
		reached := make(chan struct{}, 9)
		w.Control(func(r zktest.Request) zktest.Fault {
			switch {
			case r.Session != id:
				return zktest.Pass
			case r.Op == zktest.OpGetChildren:
				reached <- struct{}{}
				return zktest.Until(held)
			case len(r.Parts) > 0 && r.Parts[0].Op == zktest.OpSetData:
				t.Error("closes the barrier")
			}
			return zktest.Pass
		})
		late := enter(t.Context(), newDouble(t, client, 2))
		<-reached
		leaveAll(t, members...)
		release()
		late.wantWaiting(t)
		leaveAll(t, append(enterAll(t, w.double(2)), late.wantOver(t))...)
		w.wantChildren(path)
	})
}

// Others that see that enough have come leave it to the last one, for a second: it may have died, or be cut off.
//
// Promise: 13
func TestLastOneOpensTheBarrierUnlessItIsSilent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.create("/app", path)
		clients := []*zk.Client{w.Client(t, timeout), w.Client(t, timeout)}
		first, last := session(t, clients[0]).ID(), session(t, clients[1]).ID()
		looks, lookNow := context.WithCancel(t.Context())
		opens, openNow := context.WithCancel(t.Context())
		w.Control(func(r zktest.Request) zktest.Fault {
			switch {
			case r.Session == first && r.Op == zktest.OpGetChildren:
				return zktest.Until(looks)
			case r.Session == last && len(r.Parts) > 0 && r.Parts[len(r.Parts)-1].Path == path+"/ready":
				return zktest.Until(opens)
			}
			return zktest.Pass
		})
		a := enter(t.Context(), newDouble(t, clients[0], 2))
		a.wantWaiting(t)
		b := enter(t.Context(), newDouble(t, clients[1], 2))
		b.wantWaiting(t)
		lookNow()
		a.wantWaiting(t)
		time.Sleep(2 * time.Second) // in the world's time
		members := []*barrier.Member{a.wantOver(t)}
		openNow()
		leaveAll(t, append(members, b.wantOver(t))...)
		w.wantChildren(path)
	})
}

// Peers write to the ready node what they like. It may be no name of a node, or of none that is there.
//
// Promise: 13
func TestPeersMayWriteAnythingToTheReadyNode(t *testing.T) {
	t.Parallel()
	for _, parties := range []int{4, 65} {
		for _, data := range []string{"", "ready", "/", "a/b", "..", "10.0.0.1", "a\x00b"} {
			t.Run("", func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					w.create("/app", path, path+"/peer")
					a, b := enter(t.Context(), w.double(parties)), w.double(parties)
					synctest.Wait()
					peer := w.Session(t, timeout)
					_, err := peer.Create(t.Context(), path+"/ready", []byte(data), zk.Persistent)
					if err != nil {
						t.Fatal(err)
					}
					members := append(enterAll(t, b), a.wantOver(t))
					w.delete(path + "/peer")
					k, l := leave(t.Context(), members[0]), leave(t.Context(), members[1])
					time.Sleep(2 * time.Second) // in the world's time
					k.wantOver(t)
					l.wantOver(t)
					w.wantChildren(path)
				})
			})
		}
	}
}
