package lock_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

const locksPath, leasesPath, limitPath = path + "/locks", path + "/leases", "/limits/report"

// permits is n permits of a semaphore, to be taken as a lock is.
type permits struct {
	*lock.Semaphore
	n int
}

func (p permits) Lock(ctx context.Context) (*lock.Hold, error)    { return p.Acquire(ctx, p.n) }
func (p permits) TryLock(ctx context.Context) (*lock.Hold, error) { return p.TryAcquire(ctx, p.n) }

func (w *world) semaphore(limit lock.Limit) *lock.Semaphore {
	w.t.Helper()
	return semaphore(w.t, w.Client(w.t, 20*time.Second), limit, lock.SemaphoreConfig{})
}

func semaphore(t *testing.T, client *zk.Client, limit lock.Limit, cfg lock.SemaphoreConfig) *lock.Semaphore {
	t.Helper()
	s, err := lock.NewSemaphore(client, path, limit, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// another is n permits for another process.
func (w *world) another(limit, n int) permits {
	w.t.Helper()
	return permits{w.semaphore(lock.AgreedLimit(limit)), n}
}

// Promise: 5
func TestPermitsAreGivenOutUpToTheLimitAndInOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		two, one := locked(t, w.another(4, 2).Lock), locked(t, w.another(4, 1).Lock)
		large := waits(t.Context(), w.another(4, 3).Lock)
		small := waits(t.Context(), w.another(4, 1).Lock)
		none(t, "one permit is left: too few for the first, and the second came later", large, small)
		unlock(t, one)
		none(t, "two are left", large, small)
		unlock(t, two)
		three := got(t, large)
		last := got(t, small)
		if one.Token() <= two.Token() || three.Token() <= one.Token() || last.Token() <= three.Token() {
			t.Errorf("tokens do not grow: %d, %d, %d, %d", two.Token(), one.Token(), three.Token(), last.Token())
		}
		if _, err := w.another(4, 1).TryLock(t.Context()); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("all are taken: got %v, want lock.ErrHeld", err)
		}
		unlock(t, three)
		unlock(t, last)
		w.empty(locksPath, leasesPath)
	})
}

func TestFreePermitsTakeTwoRoundTrips(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.semaphore(lock.AgreedLimit(3))
		unlock(t, locked(t, permits{s, 1}.Lock))
		time.Sleep(time.Second)
		before := w.Traffic()
		hold := locked(t, permits{s, 3}.Lock)
		after := w.Traffic()
		writes := func(n map[zktest.Op]int) int { return n[zktest.OpCreate] + n[zktest.OpMulti] }
		created := writes(after.Requests) - writes(before.Requests)
		// Create, list the line, list the leases; take, list the leases.
		if n := after.Replies - before.Replies; n != 5 || created != 2 {
			t.Errorf("three permits took %d requests, %d of them writes; want 5 and 2", n, created)
		}
		unlock(t, hold)
	})
}

// A request that is larger than what is free is not passed by smaller ones, however many come.
//
// Promise: 5
func TestLargeRequestIsNotStarved(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const limit = 5
		s := w.semaphore(lock.AgreedLimit(limit))
		var small []*lock.Hold
		for range limit {
			small = append(small, locked(t, permits{s, 1}.Lock))
		}
		large := waits(t.Context(), w.another(limit, limit).Lock)
		var queue []<-chan result
		for _, h := range small {
			queue = append(queue, waits(t.Context(), permits{s, 1}.Lock))
			none(t, "behind the large one", append(queue, large)...)
			unlock(t, h)
		}
		hold := got(t, large)
		none(t, "behind the large one, which has all", queue...)
		unlock(t, hold)
		for _, c := range queue {
			unlock(t, got(t, c))
		}
	})
}

func TestTryAcquireIsAnsweredAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		refused := func(what string, p permits) {
			t.Helper()
			before := w.Traffic().Requests[zktest.OpCreate]
			if _, err := p.TryLock(t.Context()); !errors.Is(err, lock.ErrHeld) {
				t.Errorf("%s: got %v, want lock.ErrHeld", what, err)
			}
			if n := w.Traffic().Requests[zktest.OpCreate] - before; n != 0 {
				t.Errorf("%s: a try that fails made %d nodes", what, n)
			}
		}
		two := locked(t, w.another(3, 2).TryLock)
		refused("one is free", w.another(3, 2))
		one := locked(t, w.another(3, 1).TryLock)
		refused("none is free", w.another(3, 1))
		unlock(t, one)
		waiting := waits(t.Context(), w.another(3, 3).Lock)
		refused("one is free, and another contender waits for more", w.another(3, 1))
		unlock(t, two)
		unlock(t, got(t, waiting))
		synctest.Wait()
		unlock(t, locked(t, w.another(3, 3).TryLock))
		w.empty(locksPath, leasesPath)
	})
}

func TestPermitsThatCanNeverBeHadAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	client := open(t, zktest.Run(t))
	s := semaphore(t, client, lock.AgreedLimit(3), lock.SemaphoreConfig{})
	for _, n := range []int{0, -1, 4, lock.MaxPermits + 1} {
		for name, take := range map[string]func(context.Context) (*lock.Hold, error){
			"Acquire": permits{s, n}.Lock, "TryAcquire": permits{s, n}.TryLock,
		} {
			if _, err := take(t.Context()); err == nil || errors.Is(err, lock.ErrHeld) {
				t.Errorf("%s of %d of 3: got %v, want an error at once", name, n, err)
			}
		}
	}
	for _, limit := range []lock.Limit{
		{}, lock.AgreedLimit(0), lock.StoredLimit(-1), lock.WatchedLimit("x"), lock.WatchedLimit(path),
	} {
		if _, err := lock.NewSemaphore(client, path, limit, lock.SemaphoreConfig{}); err == nil {
			t.Errorf("NewSemaphore with limit %+v: got no error", limit)
		}
	}
	if s.Path() != path {
		t.Errorf("got path %s, want %s", s.Path(), path)
	}
}

// The nodes of Curator's InterProcessSemaphoreV2.
//
// Promise: 1
func TestPermitsAreTheNodesOfCuratorsSemaphore(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hold := locked(t, w.another(5, 2).Lock)
		names := w.nodes(leasesPath)
		lease := regexp.MustCompile(`^_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-lease-[0-9]{10}$`)
		if len(names) != 2 || !lease.MatchString(names[0]) || !lease.MatchString(names[1]) {
			t.Errorf("got the leases %v, want two of the form %s", names, lease)
		}
		// A client of Curator's that has a lease, and one that waits for one.
		curator := w.Session(t, 20*time.Second)
		mine, err := curator.Create(t.Context(), leasesPath+"/_c_0f8fad5b-d9cb-469f-a165-70867728950e-lease-", nil,
			zk.EphemeralSequential)
		if err != nil {
			t.Fatal(err)
		}
		node, err := curator.Create(t.Context(), locksPath+"/_c_1f8fad5b-d9cb-469f-a165-70867728950e-lock-", nil,
			zk.EphemeralSequential)
		if err != nil {
			t.Fatal(err)
		}
		waiting := waits(t.Context(), w.another(5, 3).Lock)
		none(t, "behind Curator's in the line", waiting)
		if err := curator.Delete(t.Context(), node.Path, -1); err != nil {
			t.Fatal(err)
		}
		none(t, "three of five permits are out, one of them Curator's", waiting)
		if err := curator.Delete(t.Context(), mine.Path, -1); err != nil {
			t.Fatal(err)
		}
		unlock(t, got(t, waiting))
		unlock(t, hold)
	})
}

func TestForeignChildrenAreNoPermits(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if err := locked(t, w.another(1, 1).Lock).UnlockWait(t.Context()); err != nil {
			t.Fatal(err)
		}
		other := w.Session(t, 20*time.Second)
		for _, dir := range []string{locksPath, leasesPath} {
			for _, name := range []string{"00-first", "zzz", "lease-1", "lock-x", "x-72057594037927936-0000000000"} {
				if _, err := other.Create(t.Context(), dir+"/"+name, nil, zk.Persistent); err != nil {
					t.Fatal(err)
				}
			}
		}
		unlock(t, locked(t, w.another(1, 1).TryLock))
	})
}

func TestHoldOfPermitsHasATokenAndAGuardForEach(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := permits{w.semaphore(lock.AgreedLimit(3)), 3}
		hold := locked(t, s.Lock)
		if guards := hold.Guards(); len(guards) != 3 {
			t.Errorf("got %d guards, want 3", len(guards))
		}
		if _, err := hold.Session().Multi(t.Context(), append(hold.Guards(), hold.Guard())...); err != nil {
			t.Errorf("the guards: %v", err)
		}
		time.Sleep(time.Second)
		node := leasesPath + "/" + w.nodes(leasesPath)[1]
		if err := w.Session(t, 20*time.Second).Delete(t.Context(), node, -1); err != nil {
			t.Fatal(err)
		}
		<-hold.Context().Done()
		if cause := context.Cause(hold.Context()); !errors.Is(cause, lock.ErrDeleted) {
			t.Errorf("got %v, want lock.ErrDeleted", cause)
		}
		if _, err := hold.Session().Multi(t.Context(), hold.Guards()...); !errors.Is(err, zk.NoNode) {
			t.Errorf("the guards: got %v, want zk.NoNode", err)
		}
		if err := hold.Unlock(); !errors.Is(err, lock.ErrDeleted) {
			t.Errorf("Unlock: got %v, want lock.ErrDeleted", err)
		}
		w.empty(leasesPath)
		next := locked(t, s.Lock)
		if next.Token() <= hold.Token() {
			t.Errorf("got token %d after %d", next.Token(), hold.Token())
		}
		if err := next.UnlockWait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestThousandPermitsComeAndGoTogether(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hold := locked(t, w.another(lock.MaxPermits, lock.MaxPermits).Lock)
		if n := len(w.nodes(leasesPath)); n != lock.MaxPermits || len(hold.Guards()) != n {
			t.Errorf("got %d leases, %d guards, want %d", n, len(hold.Guards()), lock.MaxPermits)
		}
		waiting := waits(t.Context(), w.another(lock.MaxPermits, 1).Lock)
		none(t, "all are taken", waiting)
		unlock(t, hold)
		unlock(t, got(t, waiting))
		w.empty(leasesPath)
	})
}

// Promise: 5
func TestLossOfTheSessionEndsPermitsAndRestartsWaitersInTheirOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.semaphore(lock.AgreedLimit(2))
		hold := locked(t, permits{s, 2}.Lock)
		var waiting []<-chan result
		for range 10 {
			waiting = append(waiting, waits(t.Context(), permits{s, 2}.Lock))
		}
		w.ExpireSession(hold.Session().ID())
		<-hold.Context().Done()
		if cause := context.Cause(hold.Context()); !errors.Is(cause, zk.ErrExpired) {
			t.Errorf("got %v, want zk.ErrExpired", cause)
		}
		token := hold.Token()
		for i, c := range waiting {
			next := got(t, c)
			if next.Token() <= token || next.Session() == hold.Session() {
				t.Fatalf("waiter %d: got token %d after %d", i, next.Token(), token)
			}
			token = next.Token()
			none(t, fmt.Sprintf("behind waiter %d", i), waiting[i+1:]...)
			unlock(t, next)
		}
		w.empty(locksPath, leasesPath)
	})
}

func TestPermitsOfAClosedClientAreFree(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, 20*time.Second)
		hold := locked(t, permits{semaphore(t, client, lock.AgreedLimit(3), lock.SemaphoreConfig{}), 3}.Lock)
		waiting := waits(t.Context(), w.another(3, 2).Lock)
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		unlock(t, got(t, waiting))
		if hold.Context().Err() == nil {
			t.Error("the hold of a closed client goes on")
		}
	})
}

func TestPermitsReportToHooks(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var told []string
		cfg := lock.SemaphoreConfig{Hooks: lock.Hooks{
			Enqueued: func(context.Context, lock.Event) { told = append(told, "enqueued") },
			Acquired: func(context.Context, lock.Event) { told = append(told, "acquired") },
			Released: func(lock.Event) { told = append(told, "released") },
			Lost:     func(lock.Event) { told = append(told, "lost") },
		}}
		other := locked(t, w.another(2, 1).Lock)
		waiting := waits(t.Context(),
			permits{semaphore(t, w.Client(t, 20*time.Second), lock.AgreedLimit(2), cfg), 2}.Lock)
		unlock(t, other)
		unlock(t, got(t, waiting))
		if want := []string{"enqueued", "acquired", "released"}; !slices.Equal(told, want) {
			t.Errorf("got %v, want %v", told, want)
		}
	})
}

// The node is deleted when the transaction that takes the permit is on its way, and the permit stays free.
func TestFirstInLineWhoseNodeIsDeletedWhileItTakesAFreePermitJoinsAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		unlock(t, locked(t, w.another(1, 1).Lock))
		synctest.Wait()
		slow, arrives := context.WithCancel(t.Context())
		defer arrives()
		ctx, giveUp := context.WithCancel(t.Context())
		defer giveUp()
		w.Control(func(r zktest.Request) zktest.Fault {
			switch {
			case r.Op != zktest.OpMulti:
			case r.Nth == 1:
				return zktest.Until(slow)
			case r.Nth > 10: // it tries again and again
				giveUp()
			}
			return zktest.Pass
		})
		first := waits(ctx, w.another(1, 1).Lock)
		node := locksPath + "/" + w.nodes(locksPath)[0]
		if err := w.Session(t, 20*time.Second).Delete(t.Context(), node, -1); err != nil {
			t.Fatal(err)
		}
		arrives()
		unlock(t, got(t, first))
		w.empty(locksPath, leasesPath)
	})
}
