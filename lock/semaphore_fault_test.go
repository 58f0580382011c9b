package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// Every request of taking permits and giving them back is hit in turn, in each way. Afterwards no lease is left, and
// there were never too many (CURATOR-315, CURATOR-335).
//
// Promise: 1, 4
func TestLostRepliesLeaveNoLease(t *testing.T) {
	t.Parallel()
	limits := map[string]lock.Limit{
		"agreed": lock.AgreedLimit(3), "stored": lock.StoredLimit(3), "watched": lock.WatchedLimit(limitPath),
	}
	for kind, limit := range limits {
		faults := map[string]zktest.Fault{
			"reply lost": zktest.DropReply, "request lost": zktest.Refuse, "cut before": zktest.CutBefore,
			"cut after": zktest.CutAfter,
		}
		for name, fault := range faults {
			t.Run(kind+", "+name, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					w.setLimitAt(limitPath, 3)
					reached := true
					for step := range soak.Steps(name, faults) {
						if !reached {
							break
						}
						a, b := permits{w.semaphore(limit), 2}, permits{w.semaphore(limit), 2}
						over := w.hit(step, fault)
						for range 2 {
							hold := locked(t, a.Lock)
							next := waits(t.Context(), b.Lock)
							none(t, fmt.Sprintf("step %d: one of three permits is left", step), next)
							one, err := a.TryAcquire(t.Context(), 1) // behind b, unless b is on its way again
							if err == nil {
								unlock(t, one)
							} else if !errors.Is(err, lock.ErrHeld) {
								t.Fatalf("step %d: got %v, want lock.ErrHeld", step, err)
							}
							unlock(t, hold)
							unlock(t, got(t, next))
						}
						reached = over()
						time.Sleep(time.Second)
						w.empty(locksPath, leasesPath)
						unlock(t, locked(t, permits{w.semaphore(limit), 3}.TryLock))
					}
				})
			})
		}
	}
}

// hit puts a fault at the request with that number from now on. The function that it returns takes it away, and reports
// whether it came to that.
func (w *world) hit(step int, fault zktest.Fault) (reached func() bool) {
	var hit atomic.Bool
	w.Control(func(r zktest.Request) zktest.Fault {
		if r.Seq != step {
			return zktest.Pass
		}
		hit.Store(true)
		return fault
	})
	return func() bool {
		w.Control(nil)
		return hit.Load()
	}
}

// CURATOR-462.
//
// Promise: 4
func TestCallerThatLeavesWhilePermitsAreTakenLeavesNoLease(t *testing.T) {
	t.Parallel()
	leaveAtEachStep(t, func(w *world) locker { return permits{w.semaphore(lock.StoredLimit(2)), 2} },
		func(t *testing.T, w *world, s locker) {
			t.Helper()
			w.empty(locksPath, leasesPath)
			unlock(t, locked(t, s.TryLock))
		})
}

// leaveAtEachStep has the caller leave at each step of an acquisition, before or after the server has done it, and
// whether or not it hears of it. Then it checks what is left.
func leaveAtEachStep(t *testing.T, lockOf func(w *world) locker, check func(t *testing.T, w *world, s locker)) {
	t.Helper()
	faults := map[string]zktest.Fault{
		"answered": zktest.Pass, "reply lost": zktest.DropReply, "request lost": zktest.Refuse,
		"late": zktest.Delay(time.Second),
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				reached := true
				for step := range soak.Steps(name, faults) {
					if !reached {
						break
					}
					s := lockOf(w)
					ctx, leave := context.WithCancel(t.Context())
					reached = false
					w.Control(func(r zktest.Request) zktest.Fault {
						if r.Seq != step {
							return zktest.Pass
						}
						reached = true
						leave()
						return fault
					})
					hold, err := s.Lock(ctx)
					switch {
					case err == nil:
						unlock(t, hold)
					case !errors.Is(err, context.Canceled):
						t.Fatalf("step %d: got %v, want context.Canceled", step, err)
					}
					w.Control(nil)
					leave()
					time.Sleep(3 * time.Second)
					check(t, w, s)
				}
			})
		})
	}
}

// Promise: 4
func TestWaiterForPermitsThatLeavesTouchesNobodyElse(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.semaphore(lock.AgreedLimit(2))
		hold := locked(t, permits{s, 2}.Lock)
		contexts := make([]context.CancelFunc, 5)
		waiting := make([]<-chan result, len(contexts))
		for i := range waiting {
			ctx, leave := context.WithCancel(t.Context())
			contexts[i] = leave
			from := permits{s, 1} // of one process, and of others
			if i%2 == 1 {
				from = w.another(2, 1)
			}
			waiting[i] = waits(ctx, from.Lock)
		}
		line := w.nodes(locksPath)
		before := w.Traffic().Events
		for _, i := range []int{2, 0, 4} { // from the middle, the first, the last
			contexts[i]()
			if r := <-waiting[i]; !errors.Is(r.err, context.Canceled) {
				t.Fatalf("waiter %d: got %v, want context.Canceled", i, r.err)
			}
			synctest.Wait()
		}
		if left := w.nodes(locksPath); len(left) != 2 || left[0] > left[1] && left[0] == line[0] {
			t.Errorf("got %v in the line, want the second and the fourth of %v", left, line)
		}
		// They go to the contender behind the one in the middle, and to the one behind the first.
		if n := w.Traffic().Events - before; n > 2 {
			t.Errorf("three waiters that left made %d events, want two at most", n)
		}
		none(t, "all are taken", waiting[1], waiting[3])
		unlock(t, hold)
		one, three := got(t, waiting[1]), got(t, waiting[3])
		if one.Token() >= three.Token() {
			t.Errorf("out of order: tokens %d, %d", one.Token(), three.Token())
		}
		unlock(t, one)
		unlock(t, three)
		for _, leave := range contexts {
			leave()
		}
		w.empty(locksPath, leasesPath)
		w.NoWatches(t)
	})
}

// Only the next contender is woken, and then the one behind it, when the first has its permit.
//
// Promise: 6
func TestPermitsGivenBackWakeTwoOfManyWaiters(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const waiters = 100
		hold := locked(t, w.another(3, 3).Lock)
		for range waiters {
			waits(t.Context(), w.another(3, 2).Lock) // of which one comes in
		}
		// Then all have set their watches, the holder on its own nodes, which must not make more events.
		time.Sleep(time.Minute)
		before := w.Traffic().Events
		if err := hold.UnlockWait(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if n := w.Traffic().Events - before; n != 2 {
			t.Errorf("permits that were given back made %d watch events with %d waiters, want 2", n, waiters)
		}
		if n := len(w.nodes(leasesPath)); n != 2 {
			t.Errorf("%d leases are out, want 2", n)
		}
	})
}

func TestFirstInLineWhoseNodeIsDeletedByOthersGetsNoPermit(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hold := locked(t, w.another(1, 1).Lock)
		first := waits(t.Context(), w.another(1, 1).Lock)
		node := w.nodes(locksPath)[0]
		second := waits(t.Context(), w.another(1, 1).Lock)
		if err := w.Session(t, 20*time.Second).Delete(t.Context(), locksPath+"/"+node, -1); err != nil {
			t.Fatal(err)
		}
		none(t, "the permit is taken", first, second)
		if names := w.nodes(locksPath); len(names) != 2 || names[1][len(names[1])-10:] <= node[len(node)-10:] {
			t.Errorf("got %v in the line after %s was deleted, want a new one instead", names, node)
		}
		unlock(t, hold)
		next := got(t, second)
		none(t, "behind the second", first)
		unlock(t, next)
		unlock(t, got(t, first))
	})
}

// The node is deleted at the last moment, when the transaction that takes the permit is on its way.
//
// Promise: 1
func TestFirstInLineWhoseNodeIsDeletedWhileItTakesGetsNoPermit(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		unlock(t, locked(t, w.another(1, 1).Lock))
		synctest.Wait()
		proceed := w.stopAtTheTaking()
		first := waits(t.Context(), w.another(1, 1).Lock)
		node := locksPath + "/" + w.nodes(locksPath)[0]
		if err := w.Session(t, 20*time.Second).Delete(t.Context(), node, -1); err != nil {
			t.Fatal(err)
		}
		hold := locked(t, w.another(1, 1).Lock)
		proceed()
		none(t, "the permit is taken", first)
		unlock(t, hold)
		unlock(t, got(t, first))
		w.empty(locksPath, leasesPath)
	})
}

// A client of Curator's whose node in the line an operator has deleted goes on, and takes a permit out of turn.
//
// Promise: 1
func TestPermitThatAnotherTakesOutOfTurnIsNotGivenTwice(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		unlock(t, locked(t, w.another(1, 1).Lock))
		synctest.Wait()
		proceed := w.stopAtTheTaking()
		first := waits(t.Context(), w.another(1, 1).Lock)
		curator := w.Session(t, 20*time.Second)
		lease, err := curator.Create(t.Context(), leasesPath+"/_c_0f8fad5b-d9cb-469f-a165-70867728950e-lease-", nil,
			zk.EphemeralSequential)
		if err != nil {
			t.Fatal(err)
		}
		proceed()
		none(t, "another has the permit", first)
		if names := w.nodes(leasesPath); len(names) != 1 || !strings.HasPrefix(names[0], "_c_0f8fad5b") {
			t.Errorf("got the leases %v, want the other's alone", names)
		}
		if err := curator.Delete(t.Context(), lease.Path, -1); err != nil {
			t.Fatal(err)
		}
		unlock(t, got(t, first))
		w.empty(locksPath, leasesPath)
	})
}

// stopAtTheTaking stops the next transaction that takes permits on its way to the server, until the function that it
// returns is called.
func (w *world) stopAtTheTaking() (proceed func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	w.t.Cleanup(cancel)
	stopped := false
	w.Control(func(r zktest.Request) zktest.Fault {
		if r.Op != zktest.OpMulti || stopped {
			return zktest.Pass
		}
		stopped = true
		return zktest.Until(ctx)
	})
	return cancel
}

func TestFirstInLineSurvivesTheLossOfItsConnection(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hold := locked(t, w.another(2, 2).Lock)
		first := waits(t.Context(), w.another(2, 2).Lock)
		second := waits(t.Context(), w.another(2, 1).Lock)
		before := w.nodes(locksPath)
		for range 3 {
			w.Drop()
			time.Sleep(5 * time.Second)
		}
		if now := w.nodes(locksPath); fmt.Sprint(now) != fmt.Sprint(before) {
			t.Errorf("got %v in the line, want %v as before", now, before)
		}
		none(t, "all are taken", first, second)
		w.Drop()
		unlock(t, hold)
		next := got(t, first)
		none(t, "all are taken", second)
		unlock(t, next)
		unlock(t, got(t, second))
	})
}

// Promise: 1
func TestNeverMoreThanTheLimitAreHeld(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t, zktest.SessionTimeouts(time.Second, time.Minute))
	neverMore(t, srv.Link)
}

func TestNeverMoreThanTheLimitAreHeldOnZooKeeper(t *testing.T) {
	t.Parallel()
	link := zktest.Proxy(t, peer.ZooKeeper(t, peer.Options{}).ConnectString())
	neverMore(t, link)
	// As many at once as there can be: one transaction.
	s := semaphore(t, link.Client(t, 20*time.Second), lock.AgreedLimit(lock.MaxPermits), lock.SemaphoreConfig{})
	hold, err := s.Acquire(t.Context(), lock.MaxPermits)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hold.Session().Multi(t.Context(), hold.Guards()...); err != nil {
		t.Errorf("the guards: %v", err)
	}
	if _, err := s.TryAcquire(t.Context(), 1); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("got %v, want lock.ErrHeld", err)
	}
	if err := hold.UnlockWait(t.Context()); err != nil {
		t.Error(err)
	}
}

// neverMore has many goroutines of several processes want permits at once, more and less, and leave early, while
// connections break and replies are lost: never more than the limit are out, and all are free in the end.
func neverMore(t *testing.T, link *zktest.Link) {
	t.Helper()
	const limit = 7
	var out, most atomic.Int64
	var wg sync.WaitGroup
	for c := range 5 {
		s := semaphore(t, link.Client(t, 20*time.Second), lock.StoredLimit(limit), lock.SemaphoreConfig{})
		for g := range 4 {
			rnd := rand.New(rand.NewPCG(uint64(c), uint64(g)))
			wg.Go(func() {
				for range soak.Pick(8, 25) {
					n := 1 + rnd.IntN(limit)
					ctx, leave := context.WithCancel(t.Context())
					if rnd.IntN(5) == 0 {
						time.AfterFunc(time.Duration(rnd.IntN(int(5*time.Millisecond))), leave)
					}
					hold, err := s.Acquire(ctx, n)
					leave()
					if errors.Is(err, context.Canceled) {
						continue
					}
					if err != nil {
						t.Error(err)
						return
					}
					now := out.Add(int64(n))
					for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
					}
					disturb(link, rnd, hold)
					out.Add(int64(-n))
					if err := hold.Unlock(); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	link.Control(nil)
	if m := most.Load(); m > limit {
		t.Errorf("%d permits of %d were held at a time", m, limit)
	}
	all, err := semaphore(t, link.Client(t, 20*time.Second), lock.StoredLimit(limit),
		lock.SemaphoreConfig{}).Acquire(t.Context(), limit)
	if err != nil {
		t.Fatal(err)
	}
	unlock(t, all)
}

// disturb breaks the holder's connection, or has one of the next replies lost; mostly neither.
func disturb(link *zktest.Link, rnd *rand.Rand, hold *lock.Hold) {
	switch rnd.IntN(20) {
	case 0:
		link.Drop(hold.Session().ID())
	case 1:
		nth := 1 + rnd.IntN(5)
		link.Control(func(r zktest.Request) zktest.Fault {
			if r.Seq == nth {
				return zktest.DropReply
			}
			return zktest.Pass
		})
	}
}
