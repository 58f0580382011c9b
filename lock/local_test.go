package lock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// world is a server, and time, that belong to one test: nothing here takes real time, and what waits is known to wait.
type world struct {
	*zktest.Server
	t *testing.T
}

func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		test(t, &world{srv, t})
	}, zktest.SessionTimeouts(time.Second, time.Minute))
}

func (w *world) mutex(cfg lock.Config) *lock.Mutex {
	w.t.Helper()
	m, err := lock.NewMutex(w.Client(w.t, 20*time.Second), path, cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

// lockers starts n goroutines that take m, one after the other, and returns where they tell of it.
func lockers(t *testing.T, m *lock.Mutex, n int) []<-chan result {
	t.Helper()
	list := make([]<-chan result, n)
	for i := range list {
		list[i] = lockInBackground(t.Context(), m)
		synctest.Wait()
	}
	return list
}

func got(t *testing.T, c <-chan result) *lock.Hold {
	t.Helper()
	r := <-c
	if r.err != nil {
		t.Fatal(r.err)
	}
	return r.hold
}

func unlock(t *testing.T, h *lock.Hold) {
	t.Helper()
	if err := h.Unlock(); err != nil {
		t.Fatal(err)
	}
}

// Promise: 5
func TestGoroutinesOfOneProcessShareANodeAndTakeTurns(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.mutex(lock.Config{})
		first := acquire(t, m)
		waiting := lockers(t, m, 20)
		before := w.Traffic().Requests
		hold := first
		for i, c := range waiting {
			unlock(t, hold)
			next := got(t, c)
			if next.Path() != first.Path() || next.Token() != hold.Token()+1 {
				t.Fatalf("turn %d: got node %s, token %d after %s, %d", i, next.Path(), next.Token(), hold.Path(),
					hold.Token())
			}
			if hold.Context().Err() == nil || next.Context().Err() != nil {
				t.Fatalf("turn %d: the former hold's context must be over, and the new one's not", i)
			}
			hold = next
		}
		after := w.Traffic().Requests
		if n := after[zktest.OpCreate] + after[zktest.OpDelete] + after[zktest.OpMulti] -
			before[zktest.OpCreate] - before[zktest.OpDelete] - before[zktest.OpMulti]; n != 0 {
			t.Errorf("%d turns in memory sent %d writes", len(waiting), n)
		}
		unlock(t, hold)
	})
}

// While a contender of another process waits, a process passes the lock on in memory only so often.
//
// Promise: 5
func TestHandOffIsBoundedWhileOthersWait(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const count = 8
		m := w.mutex(lock.Config{Handoff: lock.Handoff{Count: count, Time: time.Hour}})
		hold := acquire(t, m)
		waiting := lockers(t, m, 4*count)
		other := lockInBackground(t.Context(), w.mutex(lock.Config{}))
		synctest.Wait()
		turns := 0
		for _, c := range waiting {
			unlock(t, hold)
			synctest.Wait()
			select {
			case r := <-other:
				if r.err != nil {
					t.Fatal(r.err)
				}
				if turns > count {
					t.Errorf("the other waited for %d turns, want %d at most", turns, count)
				}
				if r.hold.Token() <= hold.Token() {
					t.Errorf("the other has token %d after %d", r.hold.Token(), hold.Token())
				}
				unlock(t, r.hold)
				other = nil
			default:
			}
			hold = got(t, c)
			turns++
		}
		if other != nil {
			t.Errorf("the other was not served within %d turns", turns)
		}
		unlock(t, hold)
	})
}

// Promise: 5
func TestHandOffIsBoundedInTimeWhileOthersWait(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const limit = time.Second
		m := w.mutex(lock.Config{Handoff: lock.Handoff{Count: 1 << 20, Time: limit}})
		var stopped atomic.Bool
		var hot sync.WaitGroup
		for range 4 {
			hot.Go(func() {
				for !stopped.Load() {
					hold, err := m.Lock(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					time.Sleep(10 * time.Millisecond)
					_ = hold.Unlock()
				}
			})
		}
		time.Sleep(10 * limit) // without other contenders there is no bound
		asked := time.Now()
		hold := acquire(t, w.mutex(lock.Config{}))
		if waited := time.Since(asked); waited > limit+limit/2 {
			t.Errorf("the other waited for %v, want about %v at most", waited, limit)
		}
		stopped.Store(true)
		unlock(t, hold)
		hot.Wait()
	})
}

// Promise: 5
func TestAloneAProcessHandsOffWithoutEnd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.mutex(lock.Config{Handoff: lock.Handoff{Count: 4}})
		hold := acquire(t, m)
		node := hold.Path()
		for range 50 {
			next := lockInBackground(t.Context(), m)
			synctest.Wait()
			unlock(t, hold)
			if hold = got(t, next); hold.Path() != node {
				t.Fatalf("a process alone in the line left the line: %s, then %s", node, hold.Path())
			}
		}
		unlock(t, hold)
	})
}

// Promise: 3
func TestTokensGrowWhenTheTurnsOfANodeRunOut(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.mutex(lock.Config{Retain: time.Hour})
		var last lock.Token
		nodes := map[string]int{}
		for range 10_000 {
			hold := acquire(t, m)
			if hold.Token() <= last {
				t.Fatalf("got token %d after %d", hold.Token(), last)
			}
			last = hold.Token()
			nodes[hold.Path()]++
			unlock(t, hold)
		}
		if len(nodes) != 3 {
			t.Errorf("10,000 holds used %d nodes, want 3 of 4,096 turns at most: %v", len(nodes), nodes)
		}
	})
}

// Promise: 4
func TestWaiterThatLeavesTheLocalLineTouchesNobodyElse(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m, why := w.mutex(lock.Config{}), errors.New("enough")
		other := acquire(t, w.mutex(lock.Config{}))
		ctx, cancel := context.WithCancelCause(t.Context())
		leaving := lockInBackground(ctx, m) // it is the one that stands in the servers' line for all
		synctest.Wait()
		staying := lockers(t, m, 3)
		node := w.line()[1].Path
		cancel(why)
		if r := <-leaving; !errors.Is(r.err, why) {
			t.Errorf("got %v, want the context's cause", r.err)
		}
		synctest.Wait()
		if line := w.line(); len(line) != 2 || line[1].Path != node {
			t.Errorf("the line changed: %+v, want %s second", line, node)
		}
		unlock(t, other)
		for _, c := range staying {
			unlock(t, got(t, c))
		}
	})
}

func (w *world) line() []lock.Contender {
	w.t.Helper()
	line, err := lock.Inspect(w.t.Context(), w.Client(w.t, 20*time.Second), path)
	if err != nil {
		w.t.Fatal(err)
	}
	return line
}

// Promise: 4
func TestLastWaiterThatLeavesTakesTheNodeAlong(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.mutex(lock.Config{})
		other := acquire(t, w.mutex(lock.Config{}))
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			waiting := lockInBackground(ctx, m)
			synctest.Wait()
			cancel()
			if r := <-waiting; !errors.Is(r.err, context.Canceled) {
				t.Fatalf("got %v, want context.Canceled", r.err)
			}
			synctest.Wait()
			if line := w.line(); len(line) != 1 {
				t.Fatalf("got %+v, want the holder alone", line)
			}
		}
		unlock(t, other)
		unlock(t, acquire(t, m))
	})
}

// Promise: 5
func TestLossOfTheSessionRestartsTheLocalLineInItsOrder(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]lock.Config{"hand-off": {}, "strict": {Handoff: lock.StrictFIFO}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				m := w.mutex(cfg)
				hold := acquire(t, m)
				waiting := lockers(t, m, 20)
				w.ExpireSession(hold.Session().ID())
				<-hold.Context().Done() // it is never unlocked: the others must not wait for that
				last := hold
				for i, c := range waiting {
					time.Sleep(time.Minute) // by then one of them holds it
					for j, later := range waiting[i+1:] {
						if len(later) > 0 {
							t.Fatalf("waiter %d is in before waiter %d has left", i+1+j, i)
						}
					}
					next := got(t, c)
					if next.Session() == hold.Session() || next.Token() <= last.Token() {
						t.Fatalf("waiter %d: session %v, token %d after %d", i, next.Session(), next.Token(),
							last.Token())
					}
					unlock(t, next)
					last = next
				}
				if err := hold.Unlock(); !errors.Is(err, zk.ErrExpired) {
					t.Errorf("Unlock of the lost hold: got %v, want zk.ErrExpired", err)
				}
			})
		})
	}
}

// Promise: 5
func TestKeptLockIsTakenAgainWithoutTheServer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.mutex(lock.Config{Retain: time.Minute})
		hold := acquire(t, m)
		unlock(t, hold)
		time.Sleep(time.Second)
		before := w.Traffic()
		for range 100 {
			next := acquire(t, m)
			if next.Path() != hold.Path() || next.Token() <= hold.Token() {
				t.Fatalf("got %s, %d after %s, %d", next.Path(), next.Token(), hold.Path(), hold.Token())
			}
			hold = next
			unlock(t, hold)
		}
		if after := w.Traffic(); after.Replies != before.Replies {
			t.Errorf("a hundred locks of a kept lock took %d round trips", after.Replies-before.Replies)
		}
		time.Sleep(2 * time.Minute)
		if line := w.line(); len(line) != 0 {
			t.Errorf("the lock is kept for longer than was wanted: %+v", line)
		}
	})
}

// Promise: 5
func TestKeptLockIsGivenUpAtOnceWhenAnotherComes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.mutex(lock.Config{Retain: time.Hour})
		other := w.mutex(lock.Config{})
		for range 3 {
			unlock(t, acquire(t, m))
			time.Sleep(time.Second)
			asked := time.Now()
			unlock(t, acquire(t, other))
			if waited := time.Since(asked); waited > time.Second {
				t.Errorf("the kept lock was given up after %v", waited)
			}
			time.Sleep(time.Second)
		}
		// One that is held when the other comes is given up with the unlock.
		unlock(t, acquire(t, m))
		time.Sleep(time.Second)
		hold := acquire(t, m)
		waiting := lockInBackground(t.Context(), other)
		synctest.Wait()
		if len(waiting) > 0 {
			t.Fatal("two holders")
		}
		unlock(t, hold)
		unlock(t, got(t, waiting))
	})
}

// Those who have nodes of other clients' names are others, too.
//
// Promise: 5
func TestKeptLockIsGivenUpAtOnceWhenAnotherClientsContenderComes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const kazoos = "0f8fad5bd9cb469fa16570867728950e"
		m := w.mutex(lock.Config{Retain: time.Hour})
		sess := w.Session(t, 20*time.Second)
		for _, name := range []string{
			guid + "-lock-", kazoos + "__lock__", guid + "-__READ__", guid + "-__WRIT__", kazoos + "__rlock__",
		} {
			unlock(t, acquire(t, m))
			time.Sleep(time.Second)
			if line := w.line(); len(line) != 1 || !line[0].Known {
				t.Fatalf("before %s: got %+v, want the lock kept", name, line)
			}
			node := w.foreign(sess, name, zk.EphemeralSequential)
			synctest.Wait() // no time passes
			if line := w.line(); len(line) != 1 || line[0].Path != node {
				t.Errorf("%s has come: got %+v, want it alone", name, line)
			}
			if err := sess.Delete(t.Context(), node, -1); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Promise: 5
func TestKeptLockEndsWithItsSession(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.mutex(lock.Config{Retain: time.Hour})
		hold := acquire(t, m)
		unlock(t, hold)
		time.Sleep(time.Second)
		w.HalfOpen(hold.Session().ID())
		time.Sleep(30 * time.Second)
		w.Heal()
		next := acquire(t, m)
		if next.Session() == hold.Session() || next.Path() == hold.Path() {
			t.Errorf("the kept lock of a lost session was given out: %s", next.Path())
		}
		unlock(t, next)
	})
}

// Promise: 5
func TestStrictFIFOGivesEveryAcquisitionItsNode(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.mutex(lock.Config{Handoff: lock.StrictFIFO})
		hold := acquire(t, m)
		waiting := lockers(t, m, 5)
		if line := w.line(); len(line) != 6 {
			t.Errorf("got %d contenders, want 6", len(line))
		}
		for _, c := range waiting {
			unlock(t, hold)
			hold = got(t, c)
		}
		unlock(t, hold)
	})
}

// Of n goroutines that join at a time, each would otherwise be answered with a list of all n. The first one's creation
// is held up until all have come, so how many lists they share depends on the bounds and hardly on the scheduler.
func TestManyGoroutinesThatJoinAtATimeShareLists(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const n = 200
		m := w.mutex(lock.Config{Handoff: lock.StrictFIFO})
		hold := acquire(t, m)
		lists := w.Traffic().Requests[zktest.OpGetChildren]
		come, release := context.WithCancel(t.Context())
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpCreate {
				return zktest.Until(come)
			}
			return zktest.Pass
		})
		var all sync.WaitGroup
		for range n {
			all.Go(func() {
				hold, err := m.Lock(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				unlock(t, hold)
			})
		}
		synctest.Wait()
		release()
		synctest.Wait()
		if line := w.line(); len(line) != n+1 {
			t.Errorf("got %d contenders, want %d", len(line), n+1)
		}
		if got := w.Traffic().Requests[zktest.OpGetChildren] - lists; got > n/4 {
			t.Errorf("got %d lists for %d goroutines, want a few", got, n)
		}
		unlock(t, hold)
		all.Wait()
	})
}

// So do those that only try.
func TestManyGoroutinesThatTryAtATimeShareLists(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const n = 200
		hold := acquire(t, w.mutex(lock.Config{}))
		s, m := rwmutex(t, w.Client(t, 20*time.Second), lock.RWConfig{}), w.Traffic()
		var all sync.WaitGroup
		for range n {
			all.Go(func() {
				if _, err := s.TryLock(t.Context()); !errors.Is(err, lock.ErrHeld) {
					t.Errorf("got %v, want lock.ErrHeld", err)
				}
			})
		}
		all.Wait()
		if got := w.Traffic().Requests[zktest.OpGetChildren] - m.Requests[zktest.OpGetChildren]; got > n/4 {
			t.Errorf("got %d lists for %d goroutines, want a few", got, n)
		}
		unlock(t, hold)
	})
}

// The connection breaks while goroutines join, and some leave: those that stay are served, and no node stays.
func TestGoroutinesThatShareListsSurviveFaults(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const n = 100
		m := w.mutex(lock.Config{Handoff: lock.StrictFIFO})
		w.Control(func(r zktest.Request) zktest.Fault {
			switch {
			case r.Op == zktest.OpGetChildren && r.Nth%3 == 1 && r.Nth < 30:
				return zktest.DropReply
			case r.Op == zktest.OpGetChildren && r.Nth%3 == 2:
				return zktest.Answer(zk.ThrottledOp)
			case r.Op == zktest.OpCreate && r.Nth%30 == 29:
				return zktest.CutBefore
			}
			return zktest.Pass
		})
		short, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		served := 0 // by whoever holds the lock
		for i := range n {
			all.Go(func() {
				ctx := t.Context()
				if i%5 == 0 {
					ctx = short
				}
				hold, err := m.Lock(ctx)
				if err != nil {
					if short.Err() == nil || i%5 != 0 {
						t.Error(err)
					}
					return
				}
				served++
				unlock(t, hold)
			})
		}
		time.Sleep(time.Millisecond)
		cancel()
		all.Wait()
		if served < n-n/5 {
			t.Errorf("got %d holds, want at least %d", served, n-n/5)
		}
		w.Control(nil)
		w.NoNodes(t, path)
	})
}

func TestTryLockBehindAGoroutineOfTheSameProcessIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.mutex(lock.Config{})
		hold := acquire(t, m)
		if _, err := m.TryLock(t.Context()); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("while it is held: got %v, want lock.ErrHeld", err)
		}
		unlock(t, hold)
		hold, err := m.TryLock(t.Context())
		if err != nil {
			t.Fatalf("behind the unlock: %v", err)
		}
		waiting := lockInBackground(t.Context(), m)
		synctest.Wait()
		unlock(t, hold)
		unlock(t, got(t, waiting))
	})
}

func TestBoundsThatAreNoneAreRefused(t *testing.T) {
	t.Parallel()
	client := open(t, zktest.Run(t))
	for _, cfg := range []lock.Config{
		{Retain: -1},
		{Handoff: lock.Handoff{Count: -2}},
		{Handoff: lock.Handoff{Time: -1}},
		{Handoff: lock.StrictFIFO, Retain: 1},
	} {
		if _, err := lock.NewMutex(client, path, cfg); err == nil {
			t.Errorf("NewMutex(%+v): got no error", cfg)
		}
	}
}

// Many goroutines of several processes at once: never two inside, every token larger than the one before.
//
// Promise: 1
func TestManyGoroutinesOfManyClientsExcludeEachOther(t *testing.T) {
	t.Parallel()
	for _, cfg := range []lock.Config{
		{},
		{Handoff: lock.StrictFIFO},
		{Retain: 50 * time.Millisecond},
		{Handoff: lock.Handoff{Count: 2}},
		{Delay: time.Second},
	} {
		t.Run(fmt.Sprintf("%+v, delay %v", cfg.Handoff, cfg.Delay), func(t *testing.T) {
			t.Parallel()
			srv := zktest.Run(t)
			var inside sync.Mutex
			var last lock.Token
			var wg sync.WaitGroup
			for range 4 {
				m, err := lock.NewMutex(open(t, srv), path, cfg)
				if err != nil {
					t.Fatal(err)
				}
				for range 8 {
					wg.Go(func() {
						for range 20 {
							hold, err := m.Lock(t.Context())
							if err != nil {
								t.Error(err)
								return
							}
							if !inside.TryLock() {
								t.Error("two inside")
								return
							}
							if hold.Token() <= last {
								t.Errorf("token %d after %d", hold.Token(), last)
							}
							last = hold.Token()
							inside.Unlock()
							if err := hold.Unlock(); err != nil {
								t.Error(err)
							}
						}
					})
				}
			}
			wg.Wait()
		})
	}
}

// A contender that could not list the line must not count as having been first when it leaves: the next one would pass
// the whole line.
func TestContenderThatNeverListedTheLineIsNotFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := w.Session(t, 20*time.Second)
		for _, n := range []zk.Node{
			{Path: "/locks"},
			{Path: path, ACL: []zk.ACL{{Perms: zk.PermAll &^ zk.PermRead, ID: zk.ID{Scheme: "world", ID: "anyone"}}}},
			{Path: path + "/_c_0f8fad5b-d9cb-469f-a165-70867728950e-lock-", Mode: zk.EphemeralSequential},
		} {
			if _, err := sess.CreateNode(t.Context(), n); err != nil {
				t.Fatal(err)
			}
		}
		for _, cfg := range []lock.Config{{}, {Handoff: lock.StrictFIFO}} {
			m := w.mutex(cfg)
			for range 5 {
				if hold, err := m.Lock(t.Context()); !errors.Is(err, zk.NoAuth) {
					t.Fatalf("a line that may not be listed: got %v, %v, want zk.NoAuth", hold, err)
				}
			}
		}
		m, s := w.rw(lock.RWConfig{}), w.set(path)
		for _, take := range []func(context.Context) (*lock.Hold, error){m.Lock, m.RLock, s.Lock} {
			for range 5 {
				if hold, err := take(t.Context()); !errors.Is(err, zk.NoAuth) {
					t.Fatalf("a line that may not be listed: got %v, %v, want zk.NoAuth", hold, err)
				}
			}
		}
		synctest.Wait()
		if _, err := sess.SetACL(t.Context(), path, zk.OpenACL(), -1); err != nil {
			t.Fatal(err)
		}
		if stat, _, err := sess.Exists(t.Context(), path); err != nil || stat.NumChildren != 1 {
			t.Errorf("got %d nodes, %v, want the first one alone", stat.NumChildren, err)
		}
	})
}

func TestPolicyWithoutRetriesTriesOnce(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]lock.Config{
		"hand-off": {Retry: lock.Forever(0).Times(0)},
		"strict":   {Retry: lock.Forever(0).Times(0), Handoff: lock.StrictFIFO},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				m := w.mutex(cfg)
				w.Control(func(r zktest.Request) zktest.Fault {
					if r.Op == zktest.OpCreate && r.Nth == 1 {
						time.AfterFunc(0, func() { w.ExpireSession(r.Session) })
						return zktest.DropReply
					}
					return zktest.Pass
				})
				if hold, err := m.Lock(t.Context()); err == nil {
					t.Error("it was tried again")
					unlock(t, hold)
				}
			})
		})
	}
}
