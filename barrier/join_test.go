package barrier_test

// How a party of Rounds joins and leaves, when something goes wrong.

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

// A lost request to join may be done later. The others would then wait for a party that does not arrive.
//
// Promise: 13
func TestLateJoinIsNotDone(t *testing.T) {
	t.Parallel()
	for name, givesUp := range map[string]bool{"the caller has joined": false, "the caller has given up": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a := w.join(1, barrier.Continue)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var late []zktest.Part
				w.Control(func(r zktest.Request) zktest.Fault {
					if r.Op != zktest.OpMulti || late != nil {
						return zktest.Pass
					}
					late = r.Parts
					if givesUp {
						cancel()
					}
					return zktest.CutBefore
				})
				r := newRounds(t, w.Client(t, timeout), 1, barrier.Continue)
				k := background(func() (*barrier.Party, error) { return r.Join(ctx) })
				time.Sleep(time.Second) // in the world's time
				if givesUp {
					k.wantFailed(t, context.Canceled)
				} else {
					b := arrive(t.Context(), k.wantOver(t))
					b.wantWaiting(t)
					wantRound(t, 1, arrive(t.Context(), a).wantOver(t), b.wantOver(t))
					must(t, k.value.Leave(t.Context()))
				}
				if len(late) != 3 || late[0].Op != zktest.OpCheck {
					t.Fatalf("got transaction %v, want a check and two creations", late)
				}
				// The lost transaction arrives after all.
				_, err := w.Session(t, timeout).Multi(t.Context(), zk.CheckOp(late[0].Path, late[0].Version),
					zk.CreateOp(late[1].Path, nil, zk.Persistent), zk.CreateOp(late[2].Path, nil, zk.Ephemeral))
				if !errors.Is(err, zk.BadVersion) {
					t.Errorf("got %v, want that it is refused", err)
				}
				must(t, a.Leave(t.Context()))
				w.wantNothingLeft()
			})
		})
	}
}

// Or the others would wait for it.
//
// Promise: 13
func TestLeaveOfAPartyWhoseContextHasEndedLeavesNothingBehind(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ended, end := context.WithCancel(t.Context())
		end()
		for range 20 {
			p := w.join(1, barrier.Continue)
			if err := p.Leave(ended); err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			w.wantNothingLeft()
		}
	})
}

// Promise: 13
func TestLeaveBesideAnArriveGoesOnAfterItsContextEnded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ended, end := context.WithCancel(t.Context())
		end()
		a := w.join(2, barrier.FailRound)
		ctx, cancel := context.WithCancel(t.Context())
		arriving := arrive(ctx, a)
		arriving.wantWaiting(t)
		if err := a.Leave(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the context's error", err)
		}
		arriving.wantWaiting(t)
		cancel()
		arriving.wantFailed(t, context.Canceled)
		w.wantNothingLeft()
	})
}

// The other party, which looks after the dead, hears of nothing. The round is over nevertheless.
//
// Promise: 13
func TestLeavingEndsTheRoundOfPartiesThatAreCutOff(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		silent := w.Client(t, timeout)
		a, b := join(t, silent, 2, barrier.Continue), w.join(2, barrier.Continue)
		first, second := arrive(t.Context(), a), arrive(t.Context(), b)
		wantRound(t, 1, first.wantOver(t), second.wantOver(t))
		first = arrive(t.Context(), a)
		first.wantWaiting(t)
		w.Cut(session(t, silent).ID())
		must(t, b.Leave(t.Context()))
		r := newRounds(t, w.Client(t, timeout), 2, barrier.Continue)
		k := background(func() (barrier.Outcome, error) { return r.Outcome(t.Context(), 2) })
		if o, want := k.wantOver(t), (barrier.Outcome{Round: 2}); o != want {
			t.Errorf("got %v, want %v", o, want)
		}
	})
}

// The node by which a party looks after the dead may be deleted by hand.
//
// Promise: 13
func TestDeathIsNoticedWhenTheSentriesWereDeleted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		dying := w.Client(t, timeout)
		a, b := w.join(2, barrier.Continue), join(t, dying, 2, barrier.Continue)
		first, second := arrive(t.Context(), a), arrive(t.Context(), b)
		wantRound(t, 1, first.wantOver(t), second.wantOver(t))
		sentries := w.children(path + "/sentries")
		number := func(name string) string { return name[len(name)-10:] }
		slices.SortFunc(sentries, func(a, b string) int { return strings.Compare(number(a), number(b)) })
		for _, name := range sentries {
			w.delete(path + "/sentries/" + name)
			synctest.Wait()
		}
		first = arrive(t.Context(), a)
		first.wantWaiting(t)
		_ = dying.Close()
		wantRound(t, 2, first.wantOver(t))
	})
}
