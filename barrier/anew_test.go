package barrier_test

// What is done late, or seen, after the path was deleted and made anew: a node is not told by its version, nor a round
// by its number.

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/barrier"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// deleteTree deletes the path, as an operator does with turnstile rm -r.
func (w *world) deleteTree() {
	w.t.Helper()
	if _, err := w.Client(w.t, timeout).DeleteAll(w.t.Context(), path); err != nil {
		w.t.Fatal(err)
	}
}

// Promise: 13
func TestRoundOfAPathMadeAnewIsNotTheParty(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, timeout)
		a, b := join(t, client, 2, barrier.FailRound), w.join(2, barrier.FailRound)
		waiting := arrive(t.Context(), a)
		outcome := background(func() (barrier.Outcome, error) {
			return newRounds(t, w.Client(t, timeout), 2, barrier.FailRound).Outcome(t.Context(), 2)
		})
		waiting.wantWaiting(t)
		id := session(t, client).ID()
		w.Cut(id)
		w.deleteTree()
		c, d := w.join(2, barrier.FailRound), w.join(2, barrier.FailRound)
		for range 2 {
			one, two := arrive(t.Context(), c), arrive(t.Context(), d)
			one.wantOver(t)
			two.wantOver(t)
		}
		w.Heal(id)
		time.Sleep(3 * time.Second) // in the world's time
		if session(t, client).ID() != id {
			t.Fatal("the session has ended")
		}
		waiting.wantFailed(t, barrier.ErrNotJoined)
		arrive(t.Context(), b).wantFailed(t, barrier.ErrNotJoined)
		outcome.wantFailed(t, barrier.ErrForgotten)
		for _, p := range []*barrier.Party{a, b, c, d} {
			must(t, p.Leave(t.Context()))
		}
		w.wantNothingLeft()
	})
}

// Parties look after the dead, and must not make the path again for that.
//
// Promise: 13
func TestPathThatWasDeletedStaysDeleted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.join(2, barrier.Continue)
		p := w.join(2, barrier.Continue)
		w.deleteTree()
		time.Sleep(time.Minute) // in the world's time
		if _, there, err := w.Client(t, timeout).Exists(t.Context(), path); there || err != nil {
			t.Errorf("got exists %t, %v, want that the path stays deleted", there, err)
		}
		arrive(t.Context(), p).wantFailed(t, barrier.ErrNotJoined)
	})
}

// The lost party asks under its next session, and finds a later round of other parties.
//
// Promise: 13
func TestRoundOfAPathMadeAnewIsNotTheLostParty(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, timeout)
		a, _ := join(t, client, 2, barrier.FailRound), w.join(2, barrier.FailRound)
		waiting := arrive(t.Context(), a)
		waiting.wantWaiting(t)
		w.deleteTree()
		id := session(t, client).ID()
		w.Cut(id)
		c := w.join(1, barrier.FailRound)
		arrive(t.Context(), c).wantOver(t)
		w.ExpireSession(id)
		w.Heal(id)
		time.Sleep(time.Minute) // in the world's time
		waiting.wantFailed(t, barrier.ErrNotJoined)
	})
}

// The transaction that ends a round is on its way while the path is made anew, with the same version and round.
//
// Promise: 13
func TestLateEndOfARoundDoesNothingToAPathMadeAnew(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.join(2, barrier.FailRound), w.join(2, barrier.FailRound)
		arrive(t.Context(), a).wantWaiting(t)
		held, release := context.WithCancel(t.Context())
		reached := holdTransaction(held, w, zktest.OpSetData)
		old := arrive(t.Context(), b)
		<-reached
		w.Control(nil)
		w.deleteTree()
		c := arrive(t.Context(), w.join(2, barrier.FailRound))
		c.wantWaiting(t)
		release()
		old.wantFailed(t, barrier.ErrNotJoined)
		c.wantWaiting(t) // one of two parties has arrived
		arrive(t.Context(), w.join(2, barrier.FailRound)).wantOver(t)
		wantRound(t, 1, c.wantOver(t))
	})
}

// A client whose join was lost makes sure that it is not done late, and does not write what it has read before to the
// path that others have made since.
//
// Promise: 13
func TestLostJoinDoesNothingToAPathMadeAnew(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.join(2, barrier.FailRound)
		client := w.Client(t, timeout)
		id := session(t, client).ID()
		var lost atomic.Bool
		w.Control(func(r zktest.Request) zktest.Fault {
			switch {
			case r.Session == id && r.Op == zktest.OpMulti && r.Parts[0].Op == zktest.OpCheck:
				lost.Store(true)
				return zktest.CutBefore
			case lost.Load() && r.Session == id:
				return zktest.Refuse
			}
			return zktest.Pass
		})
		r := newRounds(t, client, 2, barrier.FailRound)
		k := background(func() (*barrier.Party, error) { return r.Join(t.Context()) })
		k.wantWaiting(t)
		if !lost.Load() {
			t.Fatal("it has not tried to join")
		}
		w.deleteTree()
		w.join(3, barrier.FailRound)
		w.Control(nil)
		time.Sleep(5 * time.Second) // in the world's time
		k.wantFailed(t, barrier.ErrMismatch)
		w.join(3, barrier.FailRound)
	})
}

// lostCreation lets a party's creation be lost, removes the barrier's node, as the server does with an empty container,
// and returns what was lost. The party may not connect before heal is called.
func (w *world) lostCreation(client *zk.Client) (late func() error, heal func()) {
	w.t.Helper()
	id := session(w.t, client).ID()
	var lost []zktest.Part
	var back atomic.Bool
	w.Control(func(r zktest.Request) zktest.Fault {
		switch {
		case lost == nil && r.Session == id && r.Op == zktest.OpMulti:
			lost = r.Parts
			return zktest.CutBefore
		case lost != nil && !back.Load() && r.Session == id:
			return zktest.Refuse
		}
		return zktest.Pass
	})
	sess := w.Session(w.t, timeout)
	late = func() error {
		_, err := sess.Multi(w.t.Context(),
			zk.CheckOp(lost[0].Path, lost[0].Version), zk.CreateOp(lost[1].Path, nil, zk.Ephemeral))
		return err
	}
	return late, func() { back.Store(true) }
}

// Promise: 13
func TestLateCreationInABarrierMadeAnewDoesNotCountTwice(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		expire bool // the party's session
		early  bool // it is done before the party comes again
	}{
		"after the party has come again":                 {false, false},
		"before it has":                                  {false, true},
		"after the party has come under another session": {true, false},
		"before it has, under another session":           {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.create("/app", path)
				client := w.Client(t, timeout)
				id := session(t, client).ID()
				late, heal := w.lostCreation(client)
				a := enter(t.Context(), newDouble(t, client, 2))
				time.Sleep(time.Second) // in the world's time
				a.wantWaiting(t)
				w.delete(path)
				if row.early {
					w.create(path)
					must(t, late())
				}
				if row.expire {
					w.ExpireSession(id)
				}
				heal()
				time.Sleep(30 * time.Second) // in the world's time
				a.wantWaiting(t)
				if !row.early {
					if err := late(); !errors.Is(err, zk.NodeExists) {
						t.Errorf("got %v for the late creation, want that it is refused", err)
					}
				}
				if got := w.children(path); len(got) != 1 {
					t.Errorf("got members %q, want one: there is one party", got)
				}
				a.wantWaiting(t)
				b := enter(t.Context(), w.double(2))
				leaveAll(t, a.wantOver(t), b.wantOver(t))
				w.wantChildren(path)
			})
		})
	}
}
