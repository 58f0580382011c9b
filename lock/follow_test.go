package lock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zktest"
)

var strict = lock.Config{Handoff: lock.StrictFIFO}

// remove deletes the i-th node in line, as an operator does.
func (w *world) removeNode(i int) {
	w.t.Helper()
	if err := w.Session(w.t, 20*time.Second).Delete(w.t.Context(), w.line()[i].Path, -1); err != nil {
		w.t.Fatal(err)
	}
}

// Promise: 6
func TestContendersOfOneProcessTellEachOtherWhichIsNext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const n = 50
		other, m := acquire(t, w.mutex(strict)), w.mutex(strict)
		waiting := lockers(t, m, n)
		before := w.Traffic()
		unlock(t, other)
		for i, c := range waiting {
			hold := got(t, c)
			none(t, "behind", waiting[i+1:]...)
			unlock(t, hold)
		}
		synctest.Wait()
		after := w.Traffic()
		if lists := after.Requests[zktest.OpGetChildren] - before.Requests[zktest.OpGetChildren]; lists != 0 {
			t.Errorf("%d contenders of one process listed the line %d times, want never: each tells the next", n, lists)
		}
		if events := after.Events - before.Events; events != n {
			t.Errorf("%d releases made %d watch events, want one each", n, events)
		}
		w.NoWatches(t)
	})
}

// The contender ahead is of the same process. It is first, and says so; but the node of the one that it tells is gone.
//
// Promise: 1
func TestContenderWhoseNodeIsDeletedIsNotLetInByTheOneAhead(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]bool{
		"before the one ahead is first": false, "while the one ahead is first": true,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				other, m := acquire(t, w.mutex(strict)), w.mutex(strict)
				waiting := lockers(t, m, 4)
				if !first {
					w.removeNode(2)
				}
				unlock(t, other)
				hold := got(t, waiting[0])
				if first {
					w.removeNode(1)
				}
				none(t, "behind", waiting[1:]...)
				for _, i := range []int{2, 3, 1} { // it has joined again, at the end
					unlock(t, hold)
					hold = got(t, waiting[i])
					none(t, "behind", waiting...)
				}
				unlock(t, hold)
				synctest.Wait()
				w.NoWatches(t)
			})
		})
	}
}

// Promise: 1
func TestContenderThatLeavesIsNoLongerFollowed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		other, m := acquire(t, w.mutex(strict)), w.mutex(strict)
		first := lockInBackground(t.Context(), m)
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		leaves := lockInBackground(ctx, m)
		synctest.Wait()
		last := lockInBackground(t.Context(), m)
		synctest.Wait()
		cancel()
		if r := <-leaves; !errors.Is(r.err, context.Canceled) {
			t.Fatalf("got %v, want context.Canceled", r.err)
		}
		none(t, "behind", first, last)
		unlock(t, other)
		hold := got(t, first)
		none(t, "behind", last)
		unlock(t, hold)
		unlock(t, got(t, last))
		synctest.Wait()
		w.NoWatches(t)
	})
}

// The connection is lost between the message that a contender is next and the event that it waits for.
//
// Promise: 1
func TestContenderThatIsNextGoesOnAfterAReconnect(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		other, m := acquire(t, w.mutex(strict)), w.mutex(strict)
		waiting := lockers(t, m, 3)
		unlock(t, other)
		hold := got(t, waiting[0])
		synctest.Wait()
		w.Drop()
		time.Sleep(time.Second)
		none(t, "behind", waiting[1:]...)
		w.Drop()
		unlock(t, hold)
		for _, c := range waiting[1:] {
			unlock(t, got(t, c))
		}
		time.Sleep(time.Second)
		w.NoWatches(t)
	})
}

// A contender that gives a lock up and asks for it again goes by what it saw of the others when it was first. Here that
// is wrong, too.
//
// Promise: 1
func TestWhoComesBackBehindOthersWaitsForAllOfThem(t *testing.T) {
	t.Parallel()
	type line = []<-chan result
	for name, meanwhile := range map[string]func(w *world, waiting line, leave func()) line{
		"nothing happens meanwhile": func(_ *world, waiting line, _ func()) line { return waiting },
		"the last one leaves meanwhile": func(_ *world, waiting line, leave func()) line {
			leave()
			return waiting[:2]
		},
		"another contender comes meanwhile": func(w *world, waiting line, _ func()) line {
			return append(waiting, lockInBackground(w.t.Context(), w.mutex(strict)))
		},
		"the connection is lost meanwhile": func(w *world, waiting line, _ func()) line { w.Drop(); return waiting },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				m, lasts := w.mutex(strict), t.Context()
				may, leave := context.WithCancel(lasts)
				defer leave()
				two := []*lock.Mutex{w.mutex(strict), w.mutex(strict)}
				hold, next := acquire(t, two[0]), lockInBackground(lasts, two[1])
				synctest.Wait()
				// It is behind two, so it must list the line when it is first, and sees the contenders behind it.
				mine := lockInBackground(lasts, m)
				synctest.Wait()
				waiting := append(lockers(t, w.mutex(strict), 2), lockInBackground(may, w.mutex(strict)))
				synctest.Wait()
				unlock(t, hold)
				unlock(t, got(t, next))
				hold = got(t, mine)

				slow, arrives := context.WithCancel(lasts)
				defer arrives()
				// The unlock and the next lock left in one transaction: that is likely, but not certain.
				together := false
				w.Control(func(r zktest.Request) zktest.Fault {
					if r.Op == zktest.OpMulti && r.Nth == 1 {
						together = true
						return zktest.Until(slow)
					}
					return zktest.Pass
				})
				back := make(chan result, 1)
				go func() {
					_ = hold.Unlock()
					h, err := m.Lock(lasts)
					back <- result{h, err}
				}()
				time.Sleep(time.Millisecond)
				before := len(waiting)
				order := append(meanwhile(w, waiting, leave), back)
				time.Sleep(time.Millisecond)
				w.Control(nil)
				arrives()
				if n := len(order); !together && n-1 > before { // who came meanwhile came behind the one that is back
					order[n-2], order[n-1] = order[n-1], order[n-2]
				}
				for i, c := range order {
					h := got(t, c)
					none(t, "behind", order[i+1:]...)
					unlock(t, h)
				}
				time.Sleep(time.Second)
				w.NoWatches(t)
			})
		})
	}
}

// Many come, wait, leave and come back, in several processes with several goroutines each.
//
// Promise: 1
func TestLinesOfSeveralProcessesWithSeveralGoroutinesExcludeEachOther(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var wg sync.WaitGroup
		var inside, served int
		var mu sync.Mutex // guards them
		enter := func(d int) int {
			mu.Lock()
			defer mu.Unlock()
			inside += d
			if d > 0 {
				served++
			}
			return inside
		}
		for p := range 4 {
			m := w.mutex(strict)
			for g := range 4 {
				rnd := rand.New(rand.NewPCG(uint64(p), uint64(g)))
				wg.Go(func() {
					for range 40 {
						ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+rnd.IntN(60))*time.Millisecond)
						hold, err := m.Lock(ctx)
						cancel()
						if err != nil {
							continue
						}
						if n := enter(1); n != 1 {
							t.Errorf("%d holders", n)
						}
						if rnd.IntN(3) == 0 {
							time.Sleep(time.Duration(rnd.IntN(5)) * time.Millisecond)
						}
						enter(-1)
						if err := hold.Unlock(); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		wg.Wait()
		time.Sleep(time.Second)
		if served == 0 {
			t.Error("no goroutine ever had the lock")
		}
		w.NoWatches(t)
	})
}

// One timer serves the holds of a mutex, also those that begin while it runs.
//
// Promise: 1
func TestHoldsThatFollowEachOtherAreEachWatchedInTime(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.mutex(lock.Config{})
		for i := range 5 {
			hold := acquire(t, m)
			time.Sleep(30 * time.Millisecond)
			unlock(t, hold)
			hold = acquire(t, m)
			begun := time.Now()
			time.Sleep(time.Duration(i) * 20 * time.Millisecond)
			w.removeNode(0)
			<-hold.Context().Done()
			took, cause := time.Since(begun), context.Cause(hold.Context())
			if took > 100*time.Millisecond || !errors.Is(cause, lock.ErrDeleted) {
				t.Errorf("hold %d: told after %v: %v; want ErrDeleted within 100ms of its beginning", i, took, cause)
			}
			_ = hold.Unlock() // was deleted
		}
	})
}
