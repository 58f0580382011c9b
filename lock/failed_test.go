package lock_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// A told is one kind of lock with hooks, and how to take it.
type told struct {
	kind lock.Kind
	make func(w *world, client *zk.Client, hooks lock.Hooks) (take, try takeFunc)
}

// toldKinds has every way to take something in this package.
var toldKinds = map[string]told{
	"mutex": {kind: lock.Exclusive, make: func(w *world, client *zk.Client, hooks lock.Hooks) (take, try takeFunc) {
		return w.toldMutex(client, lock.Config{Hooks: hooks})
	}},
	"strict mutex": {
		kind: lock.Exclusive, make: func(w *world, client *zk.Client, hooks lock.Hooks) (take, try takeFunc) {
			return w.toldMutex(client, lock.Config{Hooks: hooks, Handoff: lock.StrictFIFO})
		},
	},
	"retained mutex": {
		kind: lock.Exclusive, make: func(w *world, client *zk.Client, hooks lock.Hooks) (take, try takeFunc) {
			return w.toldMutex(client, lock.Config{Hooks: hooks, Retain: time.Second})
		},
	},
	"mutex with delay": {
		kind: lock.Exclusive, make: func(w *world, client *zk.Client, hooks lock.Hooks) (take, try takeFunc) {
			return w.toldMutex(client, lock.Config{Hooks: hooks, Delay: time.Second})
		},
	},
	"writer": {kind: lock.Writer, make: func(w *world, client *zk.Client, hooks lock.Hooks) (take, try takeFunc) {
		m := rwmutex(w.t, client, lock.RWConfig{Hooks: hooks})
		return m.Lock, m.TryLock
	}},
	"reader": {kind: lock.Reader, make: func(w *world, client *zk.Client, hooks lock.Hooks) (take, try takeFunc) {
		m := rwmutex(w.t, client, lock.RWConfig{Hooks: hooks})
		return m.RLock, m.TryRLock
	}},
	"strict reader": {
		kind: lock.Reader, make: func(w *world, client *zk.Client, hooks lock.Hooks) (take, try takeFunc) {
			m := rwmutex(w.t, client, lock.RWConfig{Hooks: hooks, Handoff: lock.StrictFIFO})
			return m.RLock, m.TryRLock
		},
	},
	"set": {kind: lock.Exclusive, make: func(w *world, client *zk.Client, hooks lock.Hooks) (take, try takeFunc) {
		s, err := lock.NewSet(client, []string{path, path + "-2"}, lock.SetConfig{Hooks: hooks})
		if err != nil {
			w.t.Fatal(err)
		}
		return s.Lock, s.TryLock
	}},
	"permits": {kind: lock.Permit, make: func(w *world, client *zk.Client, hooks lock.Hooks) (take, try takeFunc) {
		p := permits{semaphore(w.t, client, lock.AgreedLimit(2), lock.SemaphoreConfig{Hooks: hooks}), 2}
		return p.Lock, p.TryLock
	}},
	"simple": {kind: lock.Exclusive, make: func(w *world, client *zk.Client, hooks lock.Hooks) (take, try takeFunc) {
		s, err := lock.NewSimple(client, path, lock.SimpleConfig{Hooks: hooks})
		if err != nil {
			w.t.Fatal(err)
		}
		return s.Lock, s.TryLock
	}},
}

func (w *world) toldMutex(client *zk.Client, cfg lock.Config) (take, try takeFunc) {
	w.t.Helper()
	m, err := lock.NewMutex(client, path, cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	return m.Lock, m.TryLock
}

// inTheWay takes the lock of that kind for another client, so that one of the kind has to wait.
func (k told) inTheWay(w *world) *lock.Hold {
	w.t.Helper()
	client := w.Client(w.t, 20*time.Second)
	if k.kind == lock.Reader {
		return locked(w.t, rwmutex(w.t, client, lock.RWConfig{}).Lock)
	}
	take, _ := k.make(w, client, lock.Hooks{})
	return locked(w.t, take)
}

// toldOf runs a test for each kind.
func toldOf(t *testing.T, test func(t *testing.T, w *world, k told)) {
	t.Helper()
	for name, k := range toldKinds {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) { test(t, w, k) })
		})
	}
}

// wantFailure checks the last event, which is to be of a failure.
func (d *diary) wantFailure(t *testing.T, k told, err error, queued bool, took time.Duration) {
	t.Helper()
	e := d.events[len(d.events)-1]
	if !errors.Is(e.Err, err) || e.Kind != k.kind || e.Queued != queued || e.Took != took || e.ID == 0 ||
		!strings.HasPrefix(e.Path, path) || e.Node != "" || e.Token != 0 || e.How != 0 {
		t.Errorf("got %+v, want %v of a %v, queued %v, after %v", e, err, k.kind, queued, took)
	}
}

func TestEachAcquisitionThatFailsIsToldOnce(t *testing.T) {
	t.Parallel()
	toldOf(t, func(t *testing.T, w *world, k told) {
		d := new(diary)
		client := w.Client(t, 20*time.Second)
		take, try := k.make(w, client, d.hooks())
		fails := func(take takeFunc, ctx context.Context, want error) {
			t.Helper()
			if _, err := take(ctx); !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		}
		why := errors.New("enough")
		over, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		for _, take := range []takeFunc{take, try} {
			fails(take, over, why)
			d.want(t, "failed")
			d.wantFailure(t, k, why, false, 0)
		}

		other := k.inTheWay(w)
		fails(try, t.Context(), lock.ErrHeld)
		d.want(t, "failed")
		d.wantFailure(t, k, lock.ErrHeld, false, 0)
		ctx, cancelWait := context.WithTimeout(t.Context(), 3*time.Second)
		fails(take, ctx, context.DeadlineExceeded)
		cancelWait()
		d.want(t, "enqueued", "failed")
		d.wantFailure(t, k, context.DeadlineExceeded, true, 3*time.Second)
		if n := len(d.events); d.events[n-1].ID != d.events[n-2].ID || d.events[n-2].Kind != k.kind {
			t.Errorf("got %+v, want the same ID and kind as in %+v", d.events[n-2], d.events[n-1])
		}
		unlock(t, other)
		time.Sleep(2 * time.Second) // it is not even retained

		unlock(t, locked(t, take))
		d.want(t, "acquired", "released")
		w.Mute() // the caller leaves while the reply is under way
		client2 := w.Client(t, 20*time.Second)
		take, _ = k.make(w, client2, d.hooks())
		w.Heal()
		session(t, client2)
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpCreate || r.Op == zktest.OpMulti {
				return zktest.DelayReply(5 * time.Second)
			}
			return zktest.Pass
		})
		time.Sleep(2 * time.Second) // what was retained is gone
		ctx, cancelWait = context.WithTimeout(t.Context(), time.Second)
		fails(take, ctx, context.DeadlineExceeded)
		cancelWait()
		w.Control(nil)
		time.Sleep(time.Minute)
		d.want(t, "failed")
		d.wantFailure(t, k, context.DeadlineExceeded, false, time.Second)

		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpCreate || r.Op == zktest.OpMulti {
				return zktest.Answer(zk.NoAuth)
			}
			return zktest.Pass
		})
		fails(take, t.Context(), zk.NoAuth)
		w.Control(nil)
		d.want(t, "failed")
		d.wantFailure(t, k, zk.NoAuth, false, 0)

		_ = client2.Close()
		fails(take, t.Context(), zk.ErrClosed)
		d.want(t, "failed")
		d.wantFailure(t, k, zk.ErrClosed, false, 0)
	})
}

// What was enqueued fails in the end when its client is closed, or a server refuses to let it go on.
func TestWaiterWhoseClientIsClosedIsToldAsFailed(t *testing.T) {
	t.Parallel()
	toldOf(t, func(t *testing.T, w *world, k told) {
		d := new(diary)
		client := w.Client(t, 20*time.Second)
		take, _ := k.make(w, client, d.hooks())
		other := k.inTheWay(w)
		first, second := waits(t.Context(), take), waits(t.Context(), take)
		d.want(t, "enqueued", "enqueued")
		_ = client.Close()
		for _, waiting := range []<-chan result{first, second} {
			if r := <-waiting; !errors.Is(r.err, zk.ErrClosed) {
				t.Errorf("got %v, want zk.ErrClosed", r.err)
			}
		}
		d.want(t, "failed", "failed")
		d.wantFailure(t, k, zk.ErrClosed, true, 0)
		unlock(t, other)
	})
}

// A lost reply, or a session that ends while it waits, is neither a failure nor a second acquisition.
func TestAcquisitionThatIsTriedAgainIsToldOnce(t *testing.T) {
	t.Parallel()
	toldOf(t, func(t *testing.T, w *world, k told) {
		d := new(diary)
		take, _ := k.make(w, w.Client(t, 20*time.Second), d.hooks())
		dropped := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			if (r.Op == zktest.OpCreate || r.Op == zktest.OpMulti) && dropped < 3 {
				dropped++
				return zktest.DropReply
			}
			return zktest.Pass
		})
		hold := locked(t, take)
		w.Control(nil)
		unlock(t, hold)
		d.want(t, "acquired", "released")
		time.Sleep(time.Minute)

		other := k.inTheWay(w)
		waiting := waits(t.Context(), take)
		for _, id := range w.Sessions() {
			if id != other.Session().ID() {
				w.ExpireSession(id)
			}
		}
		time.Sleep(time.Second)
		d.want(t, "enqueued")
		unlock(t, other)
		lost := got(t, waiting)
		w.ExpireSession(lost.Session().ID())
		<-lost.Context().Done()
		d.want(t, "acquired", "lost")
		_ = lost.Unlock() // was lost
		d.want(t)
	})
}

func TestBadNumberOfPermitsIsToldAsAFailure(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		d := new(diary)
		s := semaphore(t, w.Client(t, 20*time.Second), lock.AgreedLimit(2), lock.SemaphoreConfig{Hooks: d.hooks()})
		for _, n := range []int{0, 3, lock.MaxPermits + 1} {
			if _, err := s.Acquire(t.Context(), n); err == nil {
				t.Errorf("%d permits were given", n)
			}
			if _, err := s.TryAcquire(t.Context(), n); err == nil {
				t.Errorf("%d permits were given", n)
			}
			d.want(t, "failed", "failed")
		}
	})
}

func TestNestingThatIsRefusedIsToldAsAFailure(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		d := new(diary)
		m := w.rw(lock.RWConfig{Hooks: d.hooks()})
		hold := locked(t, m.RLock)
		if _, err := m.Lock(lock.Reenter(hold.Context())); !errors.Is(err, lock.ErrUpgradeConflict) {
			t.Errorf("got %v, want lock.ErrUpgradeConflict", err)
		}
		d.want(t, "acquired", "failed")
		d.wantFailure(t, told{kind: lock.Writer}, lock.ErrUpgradeConflict, false, 0)
		unlock(t, hold)
		d.want(t, "released")
	})
}

func (d *diary) hows(t *testing.T, want ...lock.How) {
	t.Helper()
	synctest.Wait()
	var got []lock.How
	for i, e := range d.events {
		if e.Took > time.Hour {
			t.Errorf("took %v", e.Took)
		}
		if d.all[i] == "acquired" {
			got = append(got, e.How)
		}
	}
	d.events, d.all = nil, nil
	slices.Sort(got) // those of two goroutines may come in any order
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("acquired by %v, want %v", got, want)
	}
}

func TestHooksAreToldHowAHoldWasAcquired(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		d := new(diary)
		m := w.mutex(lock.Config{Hooks: d.hooks(), Retain: time.Minute})
		hold := acquire(t, m)
		waiting := lockInBackground(t.Context(), m)
		synctest.Wait()
		unlock(t, hold)
		unlock(t, got(t, waiting))
		unlock(t, acquire(t, m))
		tried, err := m.TryLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		waiting = lockInBackground(t.Context(), m)
		synctest.Wait()
		unlock(t, tried)
		unlock(t, got(t, waiting))
		d.hows(t, lock.FromServer, lock.HandedOff, lock.Retained, lock.Retained, lock.HandedOff)
		time.Sleep(time.Hour) // it is not retained any more
		unlock(t, acquire(t, m))
		d.hows(t, lock.FromServer)
		time.Sleep(time.Hour)

		strict := w.mutex(lock.Config{Hooks: d.hooks(), Handoff: lock.StrictFIFO})
		hold = acquire(t, strict)
		waiting = lockInBackground(t.Context(), strict)
		synctest.Wait()
		unlock(t, hold)
		unlock(t, got(t, waiting))
		d.hows(t, lock.FromServer, lock.FromServer)

		rw := w.rw(lock.RWConfig{Hooks: d.hooks()})
		hold = locked(t, rw.Lock)
		readers := []<-chan result{waits(t.Context(), rw.RLock), waits(t.Context(), rw.RLock)}
		unlock(t, hold)
		first := got(t, readers[0])
		unlock(t, got(t, readers[1]))
		unlock(t, locked(t, rw.RLock))
		unlock(t, locked(t, rw.TryRLock))
		unlock(t, first)
		d.hows(t, lock.FromServer, lock.FromServer, lock.HandedOff, lock.HandedOff, lock.HandedOff)
		if names := fmt.Sprint(lock.FromServer, lock.HandedOff, lock.Retained, lock.How(9)); names !=
			"server handoff retained How(9)" {
			t.Errorf("got %q", names)
		}
	})
}

func TestReleaseAfterASuspensionSaysSo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		d := new(diary)
		m := w.mutex(lock.Config{Hooks: d.hooks(), OnSuspend: lock.EndHold})
		hold := acquire(t, m)
		w.Drop(hold.Session().ID())
		<-hold.Context().Done()
		time.Sleep(2 * time.Second) // in the world's time
		unlock(t, hold)
		d.want(t, "acquired", "released")
		if e := d.events[1]; !errors.Is(e.Err, lock.ErrSuspended) || e.ID != d.events[0].ID {
			t.Errorf("got %+v, want lock.ErrSuspended and ID %d", e, d.events[0].ID)
		}
		if got := d.events[1].Stopping; got != 2*time.Second {
			t.Errorf("the holder went on for %v, want 2s", got)
		}
	})
}

// A ledger checks that each acquisition is told of in the promised order.
type ledger struct {
	t *testing.T

	mu    sync.Mutex // guards the fields below
	last  map[uint64]string
	count map[string]int
}

func (l *ledger) write(what string, e lock.Event, after ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last := l.last[e.ID]; !slices.Contains(after, last) {
		l.t.Errorf("%q after %q: %+v", what, last, e)
	} else if (what == "acquired" || what == "failed") && e.Queued != (last == "enqueued") {
		l.t.Errorf("%q after %q with Queued %v", what, last, e.Queued)
	}
	if (e.Err != nil) != (what == "failed" || what == "lost") && what != "released" || e.Took < 0 {
		l.t.Errorf("%q with error %v after %v", what, e.Err, e.Took)
	}
	l.last[e.ID] = what
	l.count[what]++
}

func (l *ledger) hooks() lock.Hooks {
	return lock.Hooks{
		Enqueued: func(_ context.Context, e lock.Event) { l.write("enqueued", e, "") },
		Acquired: func(_ context.Context, e lock.Event) { l.write("acquired", e, "", "enqueued") },
		Failed:   func(_ context.Context, e lock.Event) { l.write("failed", e, "", "enqueued") },
		Released: func(e lock.Event) { l.write("released", e, "acquired") },
		Lost:     func(e lock.Event) { l.write("lost", e, "acquired") },
	}
}

// Whatever goes wrong, what begins ends: gauges that add and subtract return to zero.
func TestHooksBalanceUnderRandomFaults(t *testing.T) {
	t.Parallel()
	for range soak.Pick(1, 5) {
		toldOf(t, func(t *testing.T, w *world, k told) { balances(t, w, k, rand.Uint64()) })
	}
}

func balances(t *testing.T, w *world, k told, seed uint64) {
	t.Helper()
	t.Logf("seed %d", seed)
	random, dice := rand.New(rand.NewPCG(seed, 0)), rand.New(rand.NewPCG(seed, 1))
	faults := []zktest.Fault{
		zktest.Refuse, zktest.CutBefore, zktest.DropReply, zktest.CutAfter, zktest.Mute, zktest.DelayReply(time.Second),
	}
	w.Control(func(zktest.Request) zktest.Fault {
		if i := dice.IntN(150); i < len(faults) {
			return faults[i]
		}
		return zktest.Pass
	})
	l := &ledger{t: t, last: make(map[uint64]string), count: make(map[string]int)}
	ctx, calm := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var mu sync.Mutex // guards the two below
	holds, failures := 0, 0
	for i := range 3 {
		kind := k
		if i == 0 && k.kind == lock.Reader { // or none would have to wait
			kind = toldKinds["writer"]
		}
		take, try := kind.make(w, w.Client(t, time.Duration(2+random.IntN(8))*time.Second), l.hooks())
		for range 3 {
			taste := rand.New(rand.NewPCG(seed, random.Uint64()))
			wg.Go(func() {
				for ctx.Err() == nil {
					take := take
					if taste.IntN(4) == 0 {
						take = try
					}
					inside, cancel := context.WithTimeout(ctx, time.Duration(taste.IntN(4000))*time.Millisecond)
					h, err := take(inside)
					mu.Lock()
					if err == nil {
						holds++
					} else {
						failures++
					}
					mu.Unlock()
					<-time.After(time.Duration(1+taste.IntN(300)) * time.Millisecond)
					cancel()
					if err == nil {
						_ = h.Unlock() // it may have been lost
					}
				}
			})
		}
	}
	for range 30 {
		<-time.After(time.Duration(random.IntN(3000)) * time.Millisecond)
		w.wreak(random)
		if ids := w.Sessions(); len(ids) > 0 && random.IntN(5) == 0 {
			w.ExpireSession(ids[random.IntN(len(ids))])
		}
	}
	w.Control(nil)
	w.Heal()
	w.ReleaseWatches()
	calm()
	wg.Wait()
	<-time.After(time.Minute)
	l.mu.Lock()
	defer l.mu.Unlock()
	for last := range maps.Values(l.last) {
		if last == "enqueued" || last == "acquired" {
			t.Errorf("the last that was told of an acquisition is %q", last)
		}
	}
	c := l.count
	if c["acquired"] != holds || c["failed"] != failures || c["released"]+c["lost"] != holds ||
		len(l.last) != holds+failures || c["enqueued"] == 0 || holds == 0 || failures == 0 {
		t.Errorf("told %v of %d holds and %d failures", c, holds, failures)
	}
}

// What hooks add to an acquisition without hooks is nothing.
func TestHooksThatAreNotSetAllocateNothing(t *testing.T) {
	srv := zktest.Run(t)
	m, err := lock.NewMutex(srv.Client(t, 10*time.Second), path, lock.Config{Retain: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	unlock(t, acquire(t, m))
	ctx := t.Context()
	each := math.Inf(1)
	for range 10 { // the least counts: others of the process allocate, too, such as this test's server
		each = min(each, testing.AllocsPerRun(100, func() {
			h, err := m.Lock(ctx)
			if err != nil {
				t.Fatal(err)
			}
			_ = h.Unlock()
		}))
	}
	if each > 1 { // the hold
		t.Errorf("got %v allocations for an acquisition in memory, want 1", each)
	}
}
