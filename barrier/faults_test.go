package barrier_test

// A fault at each step in turn.

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/barrier"
	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

var faults = map[string]zktest.Fault{
	"reply lost":        zktest.DropReply,
	"request lost":      zktest.CutBefore,
	"session has moved": zktest.Answer(zk.SessionMoved),
}

// eachStep runs f with each fault at each request in turn, until f needs fewer requests.
func eachStep(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			more := true
			for step := range soak.Steps(name, faults) {
				if !more {
					break
				}
				more = false
				t.Run(strconv.Itoa(step), func(t *testing.T) {
					zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
						w := &world{srv, t}
						w.create("/app")
						w.Control(func(r zktest.Request) zktest.Fault {
							if r.Seq == step {
								more = true
								return fault
							}
							return zktest.Pass
						})
						f(t, w)
						w.Control(nil)
					}, zktest.SessionTimeouts(time.Second, time.Minute))
				})
			}
		})
	}
}

// Promise: 13
func TestDoubleSurvivesAFaultAtEachStep(t *testing.T) {
	t.Parallel()
	const rounds = 3
	eachStep(t, func(t *testing.T, w *world) {
		w.enterAndLeave(rounds, w.double(3), w.double(3), w.double(3))
	})
}

// Nothing tells these parties what has become of a lost creation but that a later one has the same name.
//
// Promise: 13
func TestPartiesThatMayNotWriteSurviveAFaultAtEachStep(t *testing.T) {
	t.Parallel()
	eachStep(t, func(t *testing.T, w *world) { w.enterAndLeave(2, w.withoutWrite(2, 2)...) })
}

// enterAndLeave lets the parties enter and leave together, so many times. All must.
func (w *world) enterAndLeave(rounds int, doubles ...*barrier.Double) {
	t, parties := w.t, int32(len(doubles))
	t.Helper()
	came, leaves := make([]atomic.Int32, rounds), make([]atomic.Int32, rounds)
	var tasks []*task[struct{}]
	for _, d := range doubles {
		tasks = append(tasks, background(func() (none struct{}, err error) {
			for i := range rounds {
				came[i].Add(1)
				m, err := d.Enter(t.Context())
				if n := came[i].Load(); err != nil || n != parties {
					return none, fmt.Errorf("round %d: %d came: %w", i, n, err)
				}
				leaves[i].Add(1)
				err = m.Leave(t.Context())
				if n := leaves[i].Load(); err != nil || n != parties {
					return none, fmt.Errorf("round %d: %d leave: %w", i, n, err)
				}
			}
			return none, nil
		}))
	}
	time.Sleep(time.Minute)
	w.Control(nil)
	for _, k := range tasks {
		k.wantOver(t)
	}
	w.wantChildren(path)
	w.NoWatches(t)
}

// Promise: 13
func TestRoundsSurviveAFaultAtEachStep(t *testing.T) {
	t.Parallel()
	eachStep(t, func(t *testing.T, w *world) {
		var tasks []*task[struct{}]
		for range 2 {
			r := newRounds(t, w.Client(t, timeout), 2, barrier.FailRound)
			tasks = append(tasks, background(func() (none struct{}, err error) {
				p, err := r.Join(t.Context())
				if err != nil {
					return none, err
				}
				for i := range int64(2) {
					round, err := p.Arrive(t.Context())
					if err != nil {
						return none, err
					}
					if round != i+1 {
						return none, fmt.Errorf("got round %d, want %d", round, i+1)
					}
				}
				return none, p.Leave(t.Context())
			}))
		}
		time.Sleep(time.Minute)
		w.Control(nil)
		for _, k := range tasks {
			k.wantOver(t)
		}
		w.wantNothingLeft()
		w.NoWatches(t)
	})
}

// The caller leaves at each step in turn, also when the reply to that step is lost.
//
// Promise: 13
func TestEnterThatEndsAtAnyStepLeavesNothingBehind(t *testing.T) { // CURATOR-318
	t.Parallel()
	for name, fault := range map[string]zktest.Fault{"answered": zktest.Pass, "reply lost": zktest.DropReply} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for step, more := 1, true; more; step++ {
				more = false
				zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
					w := &world{srv, t}
					w.create("/app")
					d := w.double(2)
					ctx, cancel := context.WithCancel(t.Context())
					w.Control(func(r zktest.Request) zktest.Fault {
						if r.Seq == step {
							more = true
							cancel()
							return fault
						}
						return zktest.Pass
					})
					k := enter(ctx, d)
					time.Sleep(10 * time.Second)
					w.Control(nil)
					if !more {
						cancel()
						return
					}
					if k.wantFailed(t, context.Canceled) != nil {
						t.Error("got a membership with an error")
					}
					w.wantChildren(path)
					w.NoWatches(t)
				}, zktest.SessionTimeouts(time.Second, time.Minute))
			}
		})
	}
}

// Promise: 13
func TestJoinThatEndsAtAnyStepLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]zktest.Fault{"answered": zktest.Pass, "reply lost": zktest.DropReply} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for step, more := 1, true; more; step++ {
				more = false
				zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
					w := &world{srv, t}
					w.create("/app")
					r := newRounds(t, w.Client(t, timeout), 2, barrier.FailRound)
					ctx, cancel := context.WithCancel(t.Context())
					w.Control(func(r zktest.Request) zktest.Fault {
						if r.Seq == step {
							more = true
							cancel()
							return fault
						}
						return zktest.Pass
					})
					p, err := r.Join(ctx)
					cancel()
					if err == nil {
						must(t, p.Leave(t.Context()))
					} else if !errors.Is(err, context.Canceled) {
						t.Errorf("step %d: %v", step, err)
					}
					time.Sleep(10 * time.Second)
					w.Control(nil)
					w.wantNothingLeft()
				}, zktest.SessionTimeouts(time.Second, time.Minute))
			}
		})
	}
}

// A creation whose reply is lost may be done later, when its party has come again under another name. It must not count
// as a second party.
//
// Promise: 13
func TestLateCreationIsNotDone(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]bool{"under the same session": false, "under the next session": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.create("/app", path)
				client := w.Client(t, timeout)
				id := session(t, client).ID()
				var late []zktest.Part
				w.Control(func(r zktest.Request) zktest.Fault {
					switch {
					case r.Op == zktest.OpMulti && r.Nth == 1:
						late = r.Parts
						return zktest.CutBefore
					case lost && r.Op == zktest.OpConnect && r.Session == id:
						return zktest.Refuse
					}
					return zktest.Pass
				})
				a := enter(t.Context(), newDouble(t, client, 2))
				time.Sleep(timeout) // in the world's time
				a.wantWaiting(t)
				if len(late) != 2 || late[0].Op != zktest.OpCheck {
					t.Fatalf("got transaction %v, want a check and a creation", late)
				}
				if ended := session(t, client).ID() != id; ended != lost {
					t.Fatalf("the session has ended: %t, want %t", ended, lost)
				}
				// The lost transaction arrives after all.
				_, err := w.Session(t, timeout).Multi(t.Context(),
					zk.CheckOp(late[0].Path, late[0].Version), zk.CreateOp(late[1].Path, nil, zk.Ephemeral))
				if !errors.Is(err, zk.BadVersion) {
					t.Errorf("got %v, want that it is refused", err)
				}
				if n := len(w.children(path)); n != 1 {
					t.Errorf("got %d members, want 1", n)
				}
			})
		})
	}
}
