package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

const pathA, pathB, pathC = "/locks/a", "/locks/b", "/locks/deeper/c"

func set(t *testing.T, client *zk.Client, paths ...string) *lock.Set {
	t.Helper()
	s, err := lock.NewSet(client, paths, lock.SetConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (w *world) set(paths ...string) *lock.Set {
	w.t.Helper()
	return set(w.t, w.Client(w.t, 20*time.Second), paths...)
}

func (w *world) empty(paths ...string) {
	w.t.Helper()
	for _, p := range paths {
		if left := w.nodes(p); len(left) != 0 {
			w.t.Fatalf("left behind at %s: %v", p, left)
		}
	}
}

// Promise: 1
func TestSetHoldsAllPathsOrNone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, 20*time.Second)
		b, err := lock.NewMutex(client, pathB, lock.Config{})
		if err != nil {
			t.Fatal(err)
		}
		one := acquire(t, b)
		abc := w.set(pathA, pathB, pathC)
		waiting := waits(t.Context(), abc.Lock)
		other := waits(t.Context(), w.set(pathC, pathA).Lock)
		none(t, "behind one mutex, and behind a set", waiting, other)
		unlock(t, one)
		hold := got(t, waiting)
		none(t, "behind a set", other)
		if hold.Token() <= one.Token() || len(hold.Guards()) != 3 {
			t.Errorf("got token %d after %d, %d guards", hold.Token(), one.Token(), len(hold.Guards()))
		}
		if _, err := hold.Session().Multi(t.Context(), hold.Guards()...); err != nil {
			t.Errorf("the guards: %v", err)
		}
		if _, err := b.TryLock(t.Context()); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("a mutex of the set: got %v, want lock.ErrHeld", err)
		}
		if err := hold.UnlockWait(t.Context()); err != nil {
			t.Fatal(err)
		}
		next := got(t, other)
		if next.Token() <= hold.Token() {
			t.Errorf("got token %d after %d", next.Token(), hold.Token())
		}
		unlock(t, next)
		w.empty(pathA, pathB, pathC)
	})
}

func TestTryLockOfASetIsAnsweredAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hold := locked(t, w.set(pathA).TryLock)
		if _, err := w.set(pathB, pathA).TryLock(t.Context()); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("got %v, want lock.ErrHeld", err)
		}
		w.empty(pathB)
		unlock(t, hold)
		synctest.Wait()
		unlock(t, locked(t, w.set(pathB, pathA).TryLock))
	})
}

func TestPathsThatCannotBeASetAreRefused(t *testing.T) {
	t.Parallel()
	client := open(t, zktest.Run(t))
	for _, paths := range [][]string{nil, {pathA, pathA}, {pathA, "/"}, {"x"}} {
		if _, err := lock.NewSet(client, paths, lock.SetConfig{}); err == nil {
			t.Errorf("NewSet(%v): got no error", paths)
		}
	}
}

// Promise: 4
func TestWaitingSetThatLeavesLeavesEveryLine(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hold := locked(t, w.set(pathB).Lock)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		asked := time.Now()
		if _, err := w.set(pathA, pathB, pathC).Lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want context.DeadlineExceeded", err)
		}
		if waited := time.Since(asked); waited > 1100*time.Millisecond {
			t.Errorf("a deadline of a second for all took %v", waited)
		}
		w.empty(pathA, pathC)
		unlock(t, hold)
	})
}

func TestSetEndsAsAWhole(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.set(pathA, pathB)
		hold := locked(t, s.Lock)
		time.Sleep(time.Second)
		second := w.nodes(pathB)[0]
		if err := w.Session(t, 20*time.Second).Delete(t.Context(), pathB+"/"+second, -1); err != nil {
			t.Fatal(err)
		}
		<-hold.Context().Done()
		if cause := context.Cause(hold.Context()); !errors.Is(cause, lock.ErrDeleted) {
			t.Errorf("got %v, want lock.ErrDeleted", cause)
		}
		if _, err := hold.Session().Multi(t.Context(), hold.Guards()...); !errors.Is(err, zk.NoNode) {
			t.Errorf("the guards: got %v, want zk.NoNode", err)
		}
		_ = hold.Unlock()
		w.empty(pathA, pathB)
		hold = locked(t, s.Lock)
		waiting := waits(t.Context(), s.Lock)
		w.ExpireSession(hold.Session().ID())
		unlock(t, got(t, waiting)) // under the next session
		if cause := context.Cause(hold.Context()); !errors.Is(cause, zk.ErrExpired) {
			t.Errorf("got %v, want zk.ErrExpired", cause)
		}
	})
}

// While a set waits at one path, its node at another, where it was first already, is deleted, and another client takes
// the lead there.
//
// Promise: 1
func TestSetThatLostANodeWhileItWaitedForAnotherPathIsNotLetIn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		b := locked(t, w.set(pathB).Lock)
		waiting := waits(t.Context(), w.set(pathA, pathB).Lock)
		if err := w.Session(t, 20*time.Second).Delete(t.Context(), pathA+"/"+w.nodes(pathA)[0], -1); err != nil {
			t.Fatal(err)
		}
		a := locked(t, w.set(pathA).Lock)
		unlock(t, b)
		none(t, "behind the client that took the lead", waiting)
		unlock(t, a)
		unlock(t, got(t, waiting))
		w.empty(pathA, pathB)
	})
}

// Promise: 4
func TestLostRepliesMakeNoOrphanOfASet(t *testing.T) {
	t.Parallel()
	faults := map[string]zktest.Fault{
		"reply lost": zktest.DropReply, "request lost": zktest.Refuse, "cut before": zktest.CutBefore,
		"cut after": zktest.CutAfter,
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				for step := range soak.Steps(name, faults) {
					if step > 16 {
						break
					}
					s, other := w.set(pathA, pathB), w.set(pathB, pathA)
					w.Control(func(r zktest.Request) zktest.Fault {
						if r.Seq == step {
							return fault
						}
						return zktest.Pass
					})
					for range 2 {
						hold := locked(t, s.Lock)
						next := waits(t.Context(), other.Lock)
						none(t, fmt.Sprintf("step %d", step), next)
						unlock(t, hold)
						unlock(t, got(t, next))
					}
					w.Control(nil)
					time.Sleep(time.Second)
					w.empty(pathA, pathB)
				}
			})
		})
	}
}

func TestCallerThatLeavesDuringTheCreationOfASetLeavesNoNode(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprintf("reply lost %t", lost), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				s := w.set(pathA, pathB)
				unlock(t, locked(t, s.Lock))
				synctest.Wait()
				ctx, cancel := context.WithCancel(t.Context())
				w.Control(func(r zktest.Request) zktest.Fault {
					if r.Op == zktest.OpMulti && r.Nth == 1 {
						cancel()
						if lost {
							return zktest.DropReply
						}
					}
					return zktest.Pass
				})
				if hold, err := s.Lock(ctx); err == nil {
					unlock(t, hold)
				}
				time.Sleep(time.Second)
				w.empty(pathA, pathB)
			})
		})
	}
}

// Sets of random paths in random order: no two that share a path at a time, and no deadlock.
//
// Promise: 1
func TestSetsInAnyOrderNeitherMeetNorDeadlock(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	paths := []string{pathA, pathB, pathC, "/locks/d"}
	inside := make([]sync.Mutex, len(paths))
	var wg sync.WaitGroup
	for c := range 6 {
		client, rnd := open(t, srv), rand.New(rand.NewPCG(1, uint64(c)))
		wg.Go(func() {
			for range 20 {
				mine := rnd.Perm(len(paths))[:1+rnd.IntN(len(paths))]
				var names []string
				for _, i := range mine {
					names = append(names, paths[i])
				}
				hold, err := set(t, client, names...).Lock(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				for _, i := range mine {
					if !inside[i].TryLock() {
						t.Errorf("two hold %s", paths[i])
						return
					}
				}
				for _, i := range mine {
					inside[i].Unlock()
				}
				if rnd.IntN(10) == 0 {
					srv.Drop(hold.Session().ID())
				}
				if err := hold.Unlock(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// A set that has waited watches its nodes, in several lines. Who leaves does not want to be told of what it does
// itself.
//
// Promise: 4
func TestSetThatLeavesClosesAllItsWatchesFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		b := locked(t, w.set(pathA, pathB).Lock)
		waiting := waits(t.Context(), w.set(pathA, pathB).Lock)
		unlock(t, b)
		hold := got(t, waiting)
		synctest.Wait()
		before := w.Traffic().Events
		if err := hold.UnlockWait(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := w.Traffic().Events - before; n != 0 {
			t.Errorf("%d events told of an unlock's own doing", n)
		}
		w.NoWatches(t)
	})
}

// A delay passes at one path. Meanwhile the node at the other is deleted, and another client takes the lead there.
//
// Promise: 1
func TestSetThatLostANodeWhileItRestedIsNotLetIn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		resting := func(paths ...string) *lock.Set {
			s, err := lock.NewSet(w.Client(t, 20*time.Second), paths, lock.SetConfig{Delay: delay})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		w.lose(locked(t, resting(pathA).Lock))
		waiting := waits(t.Context(), resting(path, pathA).Lock)
		time.Sleep(time.Second)
		w.removeNode(0)
		other := locked(t, w.set(path).Lock)
		time.Sleep(2 * delay)
		none(t, "behind the client that took the lead", waiting)
		unlock(t, other)
		unlock(t, got(t, waiting))
	})
}
