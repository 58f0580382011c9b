package barrier_test

// Rounds.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/barrier"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

func newRounds(t *testing.T, client *zk.Client, parties int, onLoss barrier.OnLoss) *barrier.Rounds {
	t.Helper()
	r, err := barrier.NewRounds(client, path, barrier.RoundsConfig{Parties: parties, OnLoss: onLoss})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func join(t *testing.T, client *zk.Client, parties int, onLoss barrier.OnLoss) *barrier.Party {
	t.Helper()
	p, err := newRounds(t, client, parties, onLoss).Join(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// join returns a party with a client of its own.
func (w *world) join(parties int, onLoss barrier.OnLoss) *barrier.Party {
	w.t.Helper()
	return join(w.t, w.Client(w.t, timeout), parties, onLoss)
}

func arrive(ctx context.Context, p *barrier.Party) *task[int64] {
	return background(func() (int64, error) { return p.Arrive(ctx) })
}

func (k *task[T]) wantFailed(t *testing.T, want error) T {
	t.Helper()
	if !k.over() {
		t.Fatal("still waits")
	}
	if !errors.Is(k.err, want) {
		t.Fatalf("got error %v, want %v", k.err, want)
	}
	return k.value
}

func wantRound(t *testing.T, want int64, got ...int64) {
	t.Helper()
	for _, n := range got {
		if n != want {
			t.Fatalf("got round %d, want %d", n, want)
		}
	}
}

// wantNothingLeft wants that the parties have left nothing but the number of the round.
func (w *world) wantNothingLeft() {
	w.t.Helper()
	synctest.Wait()
	for _, name := range w.children(path) {
		w.wantChildren(path + "/" + name)
	}
	if n := len(w.children(path)); n > 4 {
		w.t.Errorf("got %d directories, want the registry, the sentries and two for parties", n)
	}
}

// Promise: 13
func TestNoPartyPassesARoundBeforeAllHaveArrived(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b, c := w.join(3, barrier.FailRound), w.join(3, barrier.FailRound), w.join(3, barrier.FailRound)
		for round := range int64(5) {
			first, second := arrive(t.Context(), a), arrive(t.Context(), b)
			first.wantWaiting(t)
			second.wantWaiting(t)
			third := arrive(t.Context(), c)
			wantRound(t, round+1, first.wantOver(t), second.wantOver(t), third.wantOver(t))
			a, b, c = b, c, a
		}
		for _, p := range []*barrier.Party{a, b, c} {
			must(t, p.Leave(t.Context()))
		}
		w.wantNothingLeft()
	})
}

// Promise: 13
func TestFirstRoundWaitsUntilEnoughHaveJoined(t *testing.T) {
	t.Parallel()
	for _, onLoss := range []barrier.OnLoss{barrier.FailRound, barrier.Continue} {
		t.Run(onLoss.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				first := arrive(t.Context(), w.join(2, onLoss))
				first.wantWaiting(t)
				second := arrive(t.Context(), w.join(2, onLoss))
				wantRound(t, 1, first.wantOver(t), second.wantOver(t))
			})
		})
	}
}

// Promise: 13
func TestDeathFailsTheRoundForAll(t *testing.T) {
	t.Parallel()
	for _, arrived := range []bool{false, true} {
		t.Run(fmt.Sprintf("arrived=%t", arrived), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				dying := w.Client(t, timeout)
				a, b := w.join(3, barrier.FailRound), w.join(3, barrier.FailRound)
				c := join(t, dying, 3, barrier.FailRound)
				first := arrive(t.Context(), a)
				var third *task[int64]
				if arrived {
					third = arrive(t.Context(), c)
					third.wantWaiting(t)
				}
				first.wantWaiting(t)
				w.ExpireSession(session(t, dying).ID())
				time.Sleep(2 * time.Second)
				wantRound(t, 1, first.wantFailed(t, barrier.ErrPartyLost))
				second := arrive(t.Context(), b) // it was still busy
				wantRound(t, 1, second.wantFailed(t, barrier.ErrPartyLost))
				if third == nil {
					third = arrive(t.Context(), c)
				}
				wantRound(t, 1, third.wantFailed(t, barrier.ErrPartyLost))
				if _, err := c.Arrive(t.Context()); !errors.Is(err, barrier.ErrNotJoined) {
					t.Fatalf("got %v, want that it must join again", err)
				}

				// The next round needs another party.
				first, second = arrive(t.Context(), a), arrive(t.Context(), b)
				first.wantWaiting(t)
				d := join(t, dying, 3, barrier.FailRound)
				third = arrive(t.Context(), d)
				wantRound(t, 2, first.wantOver(t), second.wantOver(t), third.wantOver(t))
				for _, p := range []*barrier.Party{a, b, d} {
					must(t, p.Leave(t.Context()))
				}
				w.wantNothingLeft()
			})
		})
	}
}

// Promise: 13
func TestPartiesThatAreBehindLearnOfEachFailedRound(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.join(3, barrier.FailRound), w.join(3, barrier.FailRound)
		for round := range int64(4) {
			client := w.Client(t, timeout)
			join(t, client, 3, barrier.FailRound)
			waiting := arrive(t.Context(), a)
			waiting.wantWaiting(t)
			_ = client.Close()
			wantRound(t, round+1, waiting.wantFailed(t, barrier.ErrPartyLost))
		}
		for round := range int64(4) {
			wantRound(t, round+1, arrive(t.Context(), b).wantFailed(t, barrier.ErrPartyLost))
		}
		first, second := arrive(t.Context(), a), arrive(t.Context(), b)
		first.wantWaiting(t)
		third := w.join(3, barrier.FailRound)
		last := arrive(t.Context(), third)
		wantRound(t, 5, first.wantOver(t), second.wantOver(t), last.wantOver(t))
		for _, p := range []*barrier.Party{a, b, third} {
			must(t, p.Leave(t.Context()))
		}
		w.wantNothingLeft()
	})
}

// Promise: 13
func TestTheLivingContinue(t *testing.T) {
	t.Parallel()
	for _, arrived := range []bool{false, true} {
		t.Run(fmt.Sprintf("arrived=%t", arrived), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				dying := w.Client(t, timeout)
				c := join(t, dying, 3, barrier.Continue) // is the first sentry, too
				a, b := w.join(3, barrier.Continue), w.join(3, barrier.Continue)
				first := arrive(t.Context(), a)
				var third *task[int64]
				if arrived {
					third = arrive(t.Context(), c)
					third.wantWaiting(t)
				}
				w.ExpireSession(session(t, dying).ID())
				first.wantWaiting(t) // for b, who lives
				second := arrive(t.Context(), b)
				wantRound(t, 1, first.wantOver(t), second.wantOver(t))
				time.Sleep(2 * time.Second)
				if arrived {
					wantRound(t, 1, third.wantOver(t)) // what it was part of
				}
				if _, err := c.Arrive(t.Context()); !errors.Is(err, barrier.ErrNotJoined) {
					t.Fatalf("got %v, want that it must join again", err)
				}
				first, second = arrive(t.Context(), a), arrive(t.Context(), b)
				wantRound(t, 2, first.wantOver(t), second.wantOver(t))
				o, err := newRounds(t, dying, 3, barrier.Continue).Outcome(t.Context(), 1)
				if want := (barrier.Outcome{Round: 1, Lost: 1}); err != nil || o != want {
					t.Errorf("got outcome %v, %v, want %v", o, err, want)
				}
				must(t, a.Leave(t.Context()))
				must(t, b.Leave(t.Context()))
				w.wantNothingLeft()
			})
		})
	}
}

// Promise: 13
func TestDeathOfTheLastOneMissingEndsTheRound(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		dying := w.Client(t, timeout)
		join(t, dying, 2, barrier.Continue)
		waiting := arrive(t.Context(), w.join(2, barrier.Continue))
		waiting.wantWaiting(t)
		_ = dying.Close()
		wantRound(t, 1, waiting.wantOver(t))
	})
}

// Promise: 13
func TestLeavingOfTheLastOneMissingEndsTheRound(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.join(2, barrier.Continue), w.join(2, barrier.Continue)
		first, second := arrive(t.Context(), a), arrive(t.Context(), b)
		wantRound(t, 1, first.wantOver(t), second.wantOver(t))
		first = arrive(t.Context(), a)
		first.wantWaiting(t)
		must(t, b.Leave(t.Context()))
		wantRound(t, 2, first.wantOver(t))
	})
}

// Silence is not death: as long as the server keeps the session, the others wait.
//
// Promise: 13
func TestPartyThatIsCutOffIsWaitedFor(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		silent := w.Client(t, timeout)
		a, b := w.join(2, barrier.Continue), join(t, silent, 2, barrier.Continue)
		first, second := arrive(t.Context(), a), arrive(t.Context(), b)
		wantRound(t, 1, first.wantOver(t), second.wantOver(t))
		id := session(t, silent).ID()
		w.Cut(id)
		first = arrive(t.Context(), a)
		time.Sleep(timeout / 2)
		first.wantWaiting(t)
		second = arrive(t.Context(), b)
		first.wantWaiting(t)
		w.Heal(id)
		time.Sleep(2 * time.Second)
		wantRound(t, 2, first.wantOver(t), second.wantOver(t))
	})
}

// Promise: 13
func TestPartyThatWasCutOffLearnsWhatItMissed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		silent := w.Client(t, timeout)
		a, b := w.join(2, barrier.FailRound), join(t, silent, 2, barrier.FailRound)
		first, second := arrive(t.Context(), a), arrive(t.Context(), b)
		wantRound(t, 1, first.wantOver(t), second.wantOver(t))
		second = arrive(t.Context(), b)
		second.wantWaiting(t)
		w.Cut(session(t, silent).ID())
		first = arrive(t.Context(), a) // the round is passed, but b does not hear of it
		wantRound(t, 2, first.wantOver(t))
		w.Heal()
		time.Sleep(2 * time.Second)
		wantRound(t, 2, second.wantOver(t))

		second = arrive(t.Context(), b)
		second.wantWaiting(t)
		w.Cut(session(t, silent).ID())
		time.Sleep(2 * timeout) // the server ends b's session, and a has not arrived
		first = arrive(t.Context(), a)
		wantRound(t, 3, first.wantFailed(t, barrier.ErrPartyLost))
		w.Heal()
		time.Sleep(10 * time.Second)
		wantRound(t, 3, second.wantFailed(t, barrier.ErrNotJoined)) // the round was not over when its session was
		o, err := newRounds(t, silent, 2, barrier.FailRound).Outcome(t.Context(), 3)
		if want := (barrier.Outcome{Round: 3, Lost: 1, Failed: true}); err != nil || o != want {
			t.Errorf("got outcome %v, %v, want %v", o, err, want)
		}
	})
}

// Promise: 13
func TestArriveGoesOnAfterItsContextEnded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.join(2, barrier.FailRound), w.join(2, barrier.FailRound)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if round, err := a.Arrive(ctx); !errors.Is(err, context.DeadlineExceeded) || round != 1 {
			t.Fatalf("got %d, %v, want the context's error", round, err)
		}
		second := arrive(t.Context(), b) // a has arrived
		wantRound(t, 1, second.wantOver(t))
		first := arrive(t.Context(), a)
		wantRound(t, 1, first.wantOver(t))
	})
}

// The caller may leave at the moment of the arrival. The round may then be over with the party when it calls again.
//
// Promise: 13
func TestArriveAgainLearnsThatTheRoundWasPassedWithTheParty(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.join(2, barrier.Continue), w.join(2, barrier.Continue)
		ctx, cancel := context.WithCancel(t.Context())
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpMulti && r.Nth == 1 {
				cancel()
			}
			return zktest.Pass
		})
		if _, err := a.Arrive(ctx); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want the context's error", err)
		}
		second := arrive(t.Context(), b)
		wantRound(t, 1, second.wantOver(t))
		for step := int64(1); ; step++ { // it may give up again at each
			ctx, cancel := context.WithCancel(t.Context())
			var n atomic.Int64
			w.Control(func(zktest.Request) zktest.Fault {
				if n.Add(1) == step {
					cancel()
				}
				return zktest.Pass
			})
			round, err := a.Arrive(ctx)
			if err == nil {
				wantRound(t, 1, round)
				break
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("step %d: got %v, want the context's error", step, err)
			}
		}
		first := arrive(t.Context(), a)
		second = arrive(t.Context(), b)
		wantRound(t, 2, first.wantOver(t), second.wantOver(t))
	})
}

// The caller may leave at the moment of the last arrival, and no other party would end the round.
//
// Promise: 13
func TestLastArrivalOfACallerWhoLeavesEndsTheRound(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.join(2, barrier.FailRound), w.join(2, barrier.FailRound)
		first := arrive(t.Context(), a)
		first.wantWaiting(t)
		ctx, cancel := context.WithCancel(t.Context())
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpMulti && r.Nth == 1 {
				cancel()
			}
			return zktest.Pass
		})
		_, _ = b.Arrive(ctx)
		wantRound(t, 1, first.wantOver(t))
	})
}

// Promise: 13
func TestLastArrivalWhoseReplyIsLostEndsTheRound(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.join(2, barrier.FailRound), w.join(2, barrier.FailRound)
		first := arrive(t.Context(), a)
		first.wantWaiting(t)
		faultOnce(w, zktest.DropReply, zktest.OpMulti)
		second := arrive(t.Context(), b)
		time.Sleep(time.Second) // in the world's time
		wantRound(t, 1, first.wantOver(t), second.wantOver(t))
	})
}

// Promise: 13
func TestWhoJoinsInARoundIsWaitedForInIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.join(2, barrier.Continue), w.join(2, barrier.Continue)
		first := arrive(t.Context(), a)
		first.wantWaiting(t)
		c := w.join(2, barrier.Continue)
		second := arrive(t.Context(), b)
		first.wantWaiting(t)
		second.wantWaiting(t)
		third := arrive(t.Context(), c)
		wantRound(t, 1, first.wantOver(t), second.wantOver(t), third.wantOver(t))
	})
}

// Promise: 13
func TestPartiesGatherAnewWhenAllHaveDied(t *testing.T) {
	t.Parallel()
	for _, onLoss := range []barrier.OnLoss{barrier.FailRound, barrier.Continue} {
		t.Run(onLoss.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				clients := []*zk.Client{w.Client(t, timeout), w.Client(t, timeout)}
				a, b := join(t, clients[0], 2, onLoss), join(t, clients[1], 2, onLoss)
				first, second := arrive(t.Context(), a), arrive(t.Context(), b)
				wantRound(t, 1, first.wantOver(t), second.wantOver(t))
				var ids []int64
				for _, c := range clients {
					ids = append(ids, session(t, c).ID())
				}
				w.Cut(ids...) // or the second might end the round in which the first has died
				for _, id := range ids {
					w.ExpireSession(id)
				}
				next := int64(2)
				if onLoss == barrier.FailRound {
					next = 3 // the second has failed
				}
				c := w.join(2, onLoss)
				first = arrive(t.Context(), c)
				first.wantWaiting(t)
				d := w.join(2, onLoss)
				second = arrive(t.Context(), d)
				wantRound(t, next, first.wantOver(t), second.wantOver(t))
				must(t, c.Leave(t.Context()))
				must(t, d.Leave(t.Context()))
				w.wantNothingLeft()
			})
		})
	}
}

// Of n parties that join at a time, each would otherwise be answered with a list of all n.
func TestPartiesOfOneProcessShareLists(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const n = 100
		rounds := newRounds(t, w.Client(t, timeout), n, barrier.FailRound)
		come, release := context.WithCancel(t.Context())
		var lists, sentries atomic.Int32
		var leaving atomic.Bool // from then on each that becomes the first lists the others
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Path == path+"/sentries" && r.Op == zktest.OpGetChildren && !leaving.Load() {
				lists.Add(1)
				return zktest.DelayReply(time.Millisecond) // of the bubble: all that can ask meanwhile have asked
			}
			if r.Op == zktest.OpCreate && strings.HasPrefix(r.Path, path+"/sentries/") && sentries.Add(1) > 0 {
				return zktest.Until(come)
			}
			return zktest.Pass
		})
		var all sync.WaitGroup
		for range n {
			all.Go(func() {
				p, err := rounds.Join(t.Context())
				if err == nil {
					_, err = p.Arrive(t.Context())
					leaving.Store(true)
				}
				if err == nil {
					err = p.Leave(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		release()
		all.Wait()
		if lists.Load() > n/2 || sentries.Load() < n {
			t.Errorf("got %d lists for %d parties, want a few", lists.Load(), sentries.Load())
		}
		w.wantNothingLeft()
	})
}

// Promise: 13
func TestRoundsGoOnAfterAllHaveLeft(t *testing.T) {
	t.Parallel()
	for _, onLoss := range []barrier.OnLoss{barrier.FailRound, barrier.Continue} {
		t.Run(onLoss.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				for round := range int64(3) {
					a := w.join(2, onLoss)
					first := arrive(t.Context(), a)
					first.wantWaiting(t) // for as many as there should be
					b := w.join(2, onLoss)
					wantRound(t, round+1, arrive(t.Context(), b).wantOver(t), first.wantOver(t))
					must(t, a.Leave(t.Context()))
					must(t, b.Leave(t.Context()))
					must(t, b.Leave(t.Context()))
					w.wantNothingLeft()
					if _, err := a.Arrive(t.Context()); !errors.Is(err, barrier.ErrNotJoined) {
						t.Fatalf("got %v, want that it has left", err)
					}
				}
			})
		})
	}
}

// Promise: 13
func TestJoinRefusesAnotherConfiguration(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.join(2, barrier.FailRound)
		for _, r := range []*barrier.Rounds{
			newRounds(t, w.Client(t, timeout), 3, barrier.FailRound),
			newRounds(t, w.Client(t, timeout), 2, barrier.Continue),
		} {
			if _, err := r.Join(t.Context()); !errors.Is(err, barrier.ErrMismatch) {
				t.Errorf("got %v, want a mismatch", err)
			}
		}
	})
}

// Promise: 13
func TestOutcomeWaitsForTheRound(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r := newRounds(t, w.Client(t, timeout), 1, barrier.FailRound)
		k := background(func() (barrier.Outcome, error) { return r.Outcome(t.Context(), 2) })
		k.wantWaiting(t)
		p := w.join(1, barrier.FailRound)
		wantRound(t, 1, arrive(t.Context(), p).wantOver(t))
		k.wantWaiting(t)
		wantRound(t, 2, arrive(t.Context(), p).wantOver(t))
		if o := k.wantOver(t); o != (barrier.Outcome{Round: 2}) {
			t.Errorf("got %v", o)
		}
		if _, err := r.Outcome(t.Context(), 0); err == nil {
			t.Error("got no error for round 0")
		}
	})
}

// arrivals returns the name of the directory of the parties that have arrived at a round.
func (w *world) arrivals(round int) string {
	w.t.Helper()
	for _, name := range w.children(path) {
		if strings.HasPrefix(name, fmt.Sprintf("arrived-%d-", round)) {
			return name
		}
	}
	w.t.Fatalf("got children %q, want a directory for round %d", w.children(path), round)
	return ""
}

// Promise: 13
func TestNodeDeletedByAnotherClientEndsTheParty(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.join(1, barrier.Continue)
		dir := path + "/" + w.arrivals(0)
		w.delete(dir + "/" + w.children(dir)[0])
		if _, err := p.Arrive(t.Context()); !errors.Is(err, barrier.ErrNotJoined) {
			t.Fatalf("got %v, want that it is no party any more", err)
		}
		if cause := context.Cause(p.Context()); !errors.Is(cause, barrier.ErrDeleted) {
			t.Errorf("got cause %v, want that the node was deleted", cause)
		}
		must(t, p.Leave(t.Context()))
		w.wantNothingLeft()
	})
}

// An operator may delete the node that tells the dead from those that have left, too.
//
// Promise: 13
func TestPartyLeavesThatIsNotRegisteredAnyMore(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.join(1, barrier.Continue)
		w.delete(path + "/parties/" + w.children(path + "/parties")[0])
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpMulti && r.Nth > 10 {
				return zktest.Answer(zk.NoAuth) // so that a party which asks again and again ends
			}
			return zktest.Pass
		})
		must(t, p.Leave(t.Context()))
		w.wantNothingLeft()
	})
}

// Promise: 13
func TestDirectoryDeletedByAnotherClientIsAnError(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.join(1, barrier.Continue)
		w.delete(path + "/" + w.arrivals(1))
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpMulti && r.Nth > 10 {
				t.Error("asks again and again")
				return zktest.Answer(zk.NoAuth)
			}
			return zktest.Pass
		})
		if _, err := p.Arrive(t.Context()); err == nil {
			t.Error("got no error")
		}
	})
}
