package barrier_test

// Entering and leaving a double barrier.

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/barrier"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

func isNoNode(err error) bool { return errors.Is(err, zk.NoNode) }

func TestNewRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	client := &zk.Client{}
	for name, err := range map[string]error{
		"no client":    second(barrier.NewDouble(nil, path, 1, barrier.Config{})),
		"bad path":     second(barrier.NewDouble(client, "app", 1, barrier.Config{})),
		"server's":     second(barrier.NewDouble(client, "/zookeeper/x", 1, barrier.Config{})),
		"no parties":   second(barrier.NewDouble(client, path, 0, barrier.Config{})),
		"too many":     second(barrier.NewDouble(client, path, 100_000, barrier.Config{})),
		"long label":   second(barrier.NewBarrier(client, path, barrier.Config{Label: string(make([]byte, 2000))})),
		"rounds: none": second(barrier.NewRounds(client, path, barrier.RoundsConfig{})),
		"rounds: loss": second(barrier.NewRounds(client, path, barrier.RoundsConfig{Parties: 1, OnLoss: 7})),
	} {
		if err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// Promise: 13
func TestNoPartyEntersBeforeAllHaveCome(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := enter(t.Context(), w.double(3)), enter(t.Context(), w.double(3))
		a.wantWaiting(t)
		b.wantWaiting(t)
		c := enter(t.Context(), w.double(3))
		leaveAll(t, a.wantOver(t), b.wantOver(t), c.wantOver(t))
		w.wantChildren(path)
	})
}

// Promise: 13
func TestNoPartyLeavesBeforeAllAreReadyTo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		members := enterAll(t, w.double(3), w.double(3), w.double(3))
		a, b := leave(t.Context(), members[0]), leave(t.Context(), members[1])
		a.wantWaiting(t)
		b.wantWaiting(t)
		c := leave(t.Context(), members[2])
		a.wantOver(t)
		b.wantOver(t)
		c.wantOver(t)
		w.wantChildren(path)
	})
}

// Promise: 13
func TestOnePartyEntersAndLeavesAlone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		leaveAll(t, enterAll(t, w.double(1))...)
		w.wantChildren(path)
	})
}

// Promise: 13
func TestMorePartiesThanNeededEnter(t *testing.T) { // Netflix#99
	inWorld(t, func(t *testing.T, w *world) {
		members := enterAll(t, w.double(2), w.double(2))
		members = append(members, enterAll(t, w.double(2))...)
		a, b := leave(t.Context(), members[0]), leave(t.Context(), members[1])
		a.wantWaiting(t)
		b.wantWaiting(t)
		leaveAll(t, members[2])
		a.wantOver(t)
		b.wantOver(t)
		w.wantChildren(path)
	})
}

// A server that lags behind does not show the last one that a party which came late is inside.
//
// Promise: 13
func TestLastOneWaitsForAPartyThatItsServerDoesNotShowYet(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		members := enterAll(t, w.double(2), w.double(2))
		last, other := members[0], members[1]
		if other.Path() < last.Path() {
			last, other = other, last
		}
		second := leave(t.Context(), other)
		second.wantWaiting(t)
		w.wantChildren(path, strings.TrimPrefix(last.Path(), path+"/"), "ready")
		late := enterAll(t, w.double(2))[0]
		stale := false
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op != zktest.OpGetChildren || stale {
				return zktest.Pass
			}
			stale = true
			return zktest.Stale
		})
		first := leave(t.Context(), last)
		first.wantWaiting(t)
		second.wantWaiting(t)
		if !stale {
			t.Fatal("the server did not lag behind")
		}
		leaveAll(t, late)
		first.wantOver(t)
		second.wantOver(t)
		w.wantChildren(path)
	})
}

// A party that comes while the last one is about to close the barrier has entered, and then the last one waits for it.
//
// Promise: 13
func TestLastOneWaitsForAPartyThatComesWhileItLeaves(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		members := enterAll(t, w.double(2), w.double(2))
		held, release := context.WithCancel(t.Context())
		reached := holdTransaction(held, w, zktest.OpDelete)
		a, b := leave(t.Context(), members[0]), leave(t.Context(), members[1])
		<-reached
		late := enterAll(t, w.double(2))[0]
		release()
		a.wantWaiting(t)
		b.wantWaiting(t)
		w.Control(nil)
		leaveAll(t, late)
		a.wantOver(t)
		b.wantOver(t)
		w.wantChildren(path)
	})
}

// Or it sees the barrier open, and the barrier is closed before it has entered: then it waits for others.
//
// Promise: 13
func TestPartyThatComesTooLateWaitsForOthers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		members := enterAll(t, w.double(2), w.double(2))
		held, release := context.WithCancel(t.Context())
		reached := holdTransaction(held, w, zktest.OpSetData)
		late := enter(t.Context(), w.double(2))
		<-reached
		w.Control(nil)
		// Its node counts until it takes it back.
		a, b := leave(t.Context(), members[0]), leave(t.Context(), members[1])
		a.wantWaiting(t)
		b.wantWaiting(t)
		for _, name := range w.children(path) {
			if p := path + "/" + name; name != "ready" && p != members[0].Path() && p != members[1].Path() {
				if err := w.Session(t, timeout).Delete(t.Context(), p, -1); err != nil {
					t.Fatal(err)
				}
			}
		}
		a.wantOver(t)
		b.wantOver(t)
		_, err := w.Session(t, timeout).Set(t.Context(), path, nil, -1) // as another that has come too late
		must(t, err)
		release()
		late.wantWaiting(t)
		leaveAll(t, append(enterAll(t, w.double(2)), late.wantOver(t))...)
		w.wantChildren(path)
	})
}

// holdTransaction holds transactions that begin with an operation until held ends, and tells of each.
func holdTransaction(held context.Context, w *world, first zktest.Op) <-chan struct{} {
	reached := make(chan struct{}, 99)
	w.Control(func(r zktest.Request) zktest.Fault {
		if len(r.Parts) > 1 && r.Parts[0].Op == first {
			reached <- struct{}{}
			return zktest.Until(held)
		}
		return zktest.Pass
	})
	return reached
}

// Promise: 13
func TestPartiesUseTheBarrierAgainAndAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var tasks []*task[int]
		inside := make(chan int, 1000)
		for range 4 {
			d := w.double(4)
			tasks = append(tasks, background(func() (int, error) {
				for round := range 20 {
					m, err := d.Enter(t.Context())
					if err != nil {
						return round, err
					}
					inside <- round
					if err := m.Leave(t.Context()); err != nil {
						return round, err
					}
				}
				return 20, nil
			}))
		}
		for _, k := range tasks {
			k.wantOver(t)
		}
		for i := range 80 {
			if round := <-inside; round != i/4 {
				t.Fatalf("entry %d was to round %d, want %d", i, round, i/4)
			}
		}
		w.wantChildren(path)
	})
}

// Promise: 13
func TestTimedEnterLeavesNothingBehind(t *testing.T) { // CURATOR-318
	inWorld(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := w.double(2).Enter(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v, want the context's error", err)
		}
		synctest.Wait()
		w.wantChildren(path)
		// It does not count for others.
		a := enter(t.Context(), w.double(2))
		a.wantWaiting(t)
		leaveAll(t, enterAll(t, w.double(2))[0], a.wantOver(t))
	})
}

// Promise: 13
func TestTimedLeaveEnds(t *testing.T) { // CURATOR-233, CURATOR-536
	inWorld(t, func(t *testing.T, w *world) {
		members := enterAll(t, w.double(2), w.double(2))
		for _, m := range members {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := m.Leave(ctx)
			if m == members[0] && !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("got %v, want the context's error", err)
			}
			if again := m.Leave(t.Context()); !errors.Is(again, err) {
				t.Errorf("second Leave: got %v, want %v", again, err)
			}
		}
		synctest.Wait()
		w.wantChildren(path)
	})
}

// What Curator has forgotten since GH-1290: others may have left already when a waiting party learns of the opening.
//
// Promise: 13
func TestSeeingTheBarrierOpenIsEnough(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		d := w.double(3)
		a := enter(t.Context(), d)
		a.wantWaiting(t)
		sess := w.Session(t, timeout)
		if _, err := sess.Multi(t.Context(),
			zk.CreateOp(path+"/ready", nil, zk.Persistent), zk.DeleteOp(path+"/ready", -1)); err != nil {
			t.Fatal(err)
		}
		leaveAll(t, a.wantOver(t))
		w.wantChildren(path)
	})
}

// Promise: 13
func TestBarrierLeftOpenByTheDeadIsClosed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.create("/app", path, path+"/ready")
		a := enter(t.Context(), w.double(3))
		b := enter(t.Context(), w.double(3))
		a.wantWaiting(t)
		b.wantWaiting(t)
		c := enter(t.Context(), w.double(3))
		leaveAll(t, a.wantOver(t), b.wantOver(t), c.wantOver(t))
		w.wantChildren(path)
	})
}

// Several parties may find that a barrier was left open. One that closes it late does not close the next round.
//
// Promise: 13
func TestBarrierLeftOpenIsClosedOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.create("/app", path, path+"/ready")
		client := w.Client(t, timeout)
		id := session(t, client).ID()
		held, release := context.WithCancel(t.Context())
		reached := make(chan struct{}, 9)
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Session == id && r.Op == zktest.OpMulti && r.Parts[0].Op == zktest.OpSetData {
				reached <- struct{}{}
				return zktest.Until(held)
			}
			return zktest.Pass
		})
		slow := enter(t.Context(), newDouble(t, client, 2))
		<-reached
		members := enterAll(t, w.double(2), w.double(2))
		sess := w.Session(t, timeout)
		before, _, err := sess.Exists(t.Context(), path+"/ready")
		must(t, err)
		release()
		members = append(members, slow.wantOver(t))
		after, open, err := sess.Exists(t.Context(), path+"/ready")
		must(t, err)
		if !open || after.Czxid != before.Czxid {
			t.Errorf("open=%t, czxid %d, want %d", open, after.Czxid, before.Czxid)
		}
		leaveAll(t, members...)
		w.wantChildren(path)
	})
}

// A party that came by a barrier which had been left open, as Curator's and kazoo's do, does not let others in.
//
// Promise: 13
func TestPartiesYoungerThanTheOpeningDoNotCount(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.create("/app", path, path+"/ready")
		peer := w.Session(t, timeout)
		if _, err := peer.Create(t.Context(), path+"/peer", nil, zk.Ephemeral); err != nil {
			t.Fatal(err)
		}
		a := enter(t.Context(), w.double(2))
		a.wantWaiting(t)
		if err := peer.Delete(t.Context(), path+"/peer", -1); err != nil {
			t.Fatal(err)
		}
		a.wantWaiting(t)
		if names := w.children(path); len(names) != 1 || names[0] == "ready" {
			t.Errorf("got children %q, want that the party has closed the barrier and come", names)
		}
		leaveAll(t, enterAll(t, w.double(2))[0], a.wantOver(t))
		w.wantChildren(path)
	})
}

// Promise: 13
func TestReadyNodeIsNotCountedAsAParty(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := enter(t.Context(), w.double(2))
		a.wantWaiting(t)
		members := append(enterAll(t, w.double(2)), a.wantOver(t))
		third := enter(t.Context(), w.double(2)) // while ready is there
		m := third.wantOver(t)
		leaveAll(t, append(members, m)...)
		w.wantChildren(path)
	})
}

// Promise: 13
func TestSessionThatEndsWhileWaitingComesAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, timeout)
		a := enter(t.Context(), newDouble(t, client, 2))
		a.wantWaiting(t)
		w.ExpireSession(session(t, client).ID())
		time.Sleep(2 * time.Second) // it connects again
		a.wantWaiting(t)
		b := enter(t.Context(), w.double(2))
		leaveAll(t, a.wantOver(t), b.wantOver(t))
		w.wantChildren(path)
	})
}

// The client may give a session up before the server does. The party's first node is there still when it comes again,
// and must not count as another party.
//
// Promise: 13
func TestPartyOfALostSessionCountsOnceWhenItComesAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, timeout)
		a := enter(t.Context(), newDouble(t, client, 2))
		a.wantWaiting(t)
		first := session(t, client)
		w.Cut(first.ID())
		<-first.Context().Done()
		time.Sleep(time.Second) // in the world's time
		a.wantWaiting(t)
		w.Heal()
		leaveAll(t, append(enterAll(t, w.double(2)), a.wantOver(t))...)
		w.wantChildren(path)
	})
}

// A party that came too late takes its node back and comes again. If that takes a while, the node must not count as
// another party.
//
// Promise: 13
func TestPartyThatComesAgainCountsOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.create("/app", path, path+"/peer", path+"/ready")
		held, release := context.WithCancel(t.Context())
		reached := holdTransaction(held, w, zktest.OpSetData)
		client := w.Client(t, timeout)
		late := enter(t.Context(), newDouble(t, client, 2))
		<-reached
		id := session(t, client).ID()
		refused := false
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Session == id && r.Op == zktest.OpDelete {
				refused = true
				return zktest.Answer(zk.SessionMoved)
			}
			return zktest.Pass
		})
		w.delete(path + "/peer") // the last one leaves
		w.delete(path + "/ready")
		release()
		late.wantWaiting(t)
		time.Sleep(time.Second) // in the world's time
		late.wantWaiting(t)
		if !refused {
			t.Fatal("the party has not taken its node back")
		}
		w.Control(nil)
		time.Sleep(time.Minute) // in the world's time
		leaveAll(t, append(enterAll(t, w.double(2)), late.wantOver(t))...)
		w.wantChildren(path)
	})
}

// A party may leave between the count and the opening.
//
// Promise: 13
func TestBarrierDoesNotOpenForAPartyThatHasJustLeft(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.create("/app", path)
		ctx, cancel := context.WithCancel(t.Context())
		a := enter(ctx, w.double(2))
		a.wantWaiting(t)
		held, release := context.WithCancel(t.Context())
		reached := make(chan struct{}, 9)
		w.Control(func(r zktest.Request) zktest.Fault {
			if n := len(r.Parts); n > 0 && r.Parts[n-1].Path == path+"/ready" {
				reached <- struct{}{}
				return zktest.Until(held)
			}
			return zktest.Pass
		})
		b := enter(t.Context(), w.double(2))
		<-reached
		cancel()
		a.wantFailed(t, context.Canceled)
		release()
		b.wantWaiting(t)
		leaveAll(t, append(enterAll(t, w.double(2)), b.wantOver(t))...)
		w.wantChildren(path)
	})
}

// Promise: 13
func TestPartyThatDiesWhileWaitingDoesNotCount(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, timeout)
		a := enter(t.Context(), newDouble(t, client, 2))
		a.wantWaiting(t)
		_ = client.Close()
		b := enter(t.Context(), w.double(2))
		b.wantWaiting(t)
		c := enter(t.Context(), w.double(2))
		leaveAll(t, b.wantOver(t), c.wantOver(t))
		if a.over(); !errors.Is(a.err, zk.ErrClosed) {
			t.Errorf("got %v, want that the client is closed", a.err)
		}
	})
}

// Promise: 13
func TestPartyThatDiesInsideDoesNotHoldUpTheOthers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		dying := w.Client(t, timeout)
		members := enterAll(t, w.double(3), newDouble(t, dying, 3), w.double(3))
		a, c := leave(t.Context(), members[0]), leave(t.Context(), members[2])
		a.wantWaiting(t)
		c.wantWaiting(t)
		w.ExpireSession(session(t, dying).ID())
		time.Sleep(2 * time.Second) // the dying one may be the lowest, on which the others rely for a second
		a.wantOver(t)
		c.wantOver(t)
		if err := members[1].Leave(t.Context()); !errors.Is(err, zk.ErrExpired) {
			t.Errorf("got %v, want that the session ended", err)
		}
		if cause := context.Cause(members[1].Context()); !errors.Is(cause, zk.ErrExpired) {
			t.Errorf("got cause %v, want that the session expired", cause)
		}
		w.wantChildren(path)
	})
}

// Promise: 13
func TestSessionThatEndsWhileLeavingHasLeft(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		clients := []*zk.Client{w.Client(t, timeout), w.Client(t, timeout)}
		members := enterAll(t, newDouble(t, clients[0], 2), newDouble(t, clients[1], 2))
		low, high := 0, 1
		if members[low].Path() > members[high].Path() {
			low, high = high, low
		}
		a := leave(t.Context(), members[high])
		a.wantWaiting(t)
		w.ExpireSession(session(t, clients[high]).ID())
		time.Sleep(2 * time.Second)
		a.wantWaiting(t) // for the other
		leaveAll(t, members[low])
		a.wantOver(t)
		w.wantChildren(path)
	})
}

// Promise: 13
func TestNodeDeletedByAnotherClientComesAgainAfterAReconnect(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := enter(t.Context(), w.double(2))
		a.wantWaiting(t)
		sess := w.Session(t, timeout)
		if err := sess.Delete(t.Context(), path+"/"+w.children(path)[0], -1); err != nil {
			t.Fatal(err)
		}
		w.Cut()
		w.Heal()
		time.Sleep(time.Second)
		if n := len(w.children(path)); n != 1 {
			t.Fatalf("got %d members, want 1", n)
		}
		leaveAll(t, enterAll(t, w.double(2))[0], a.wantOver(t))
	})
}

// Promise: 13
func TestNewRoundDoesNotHoldUpALeaverOfTheOld(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		members := enterAll(t, w.double(2), w.double(2))
		slices.SortFunc(members, func(a, b *barrier.Member) int { return strings.Compare(a.Path(), b.Path()) })
		high := leave(t.Context(), members[1])
		high.wantWaiting(t)
		// The last of the old round goes, and the first of a new one comes, before the leaver looks.
		sess := w.Session(t, timeout)
		if _, err := sess.Multi(t.Context(),
			zk.DeleteOp(members[0].Path(), -1), zk.DeleteOp(path+"/ready", -1),
			zk.CreateOp(path+"/00000000-new", nil, zk.Ephemeral)); err != nil {
			t.Fatal(err)
		}
		high.wantOver(t)
	})
}

// Promise: 13
func TestForeignChildrenCountAsParties(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := enter(t.Context(), w.double(3))
		a.wantWaiting(t)
		w.create(path + "/some-peer")
		b := enter(t.Context(), w.double(3))
		a.wantOver(t)
		b.wantOver(t)
	})
}
