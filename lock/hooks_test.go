package lock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// diary writes down what hooks are told.
type diary struct {
	mu     sync.Mutex // guards the fields below
	told   []string   // since the last read
	all    []string
	events []lock.Event
}

func (d *diary) write(what string, e lock.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.told, d.all = append(d.told, what), append(d.all, what)
	d.events = append(d.events, e)
}

func (d *diary) hooks() lock.Hooks {
	return lock.Hooks{
		Enqueued: func(_ context.Context, e lock.Event) { d.write("enqueued", e) },
		Acquired: func(_ context.Context, e lock.Event) { d.write("acquired", e) },
		Failed:   func(_ context.Context, e lock.Event) { d.write("failed", e) },
		Released: func(e lock.Event) { d.write("released", e) },
		Lost:     func(e lock.Event) { d.write("lost", e) },
	}
}

// read returns what was told since the last time, once everything has come to rest.
func (d *diary) read() []string {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	told := d.told
	d.told = nil
	return told
}

func (d *diary) want(t *testing.T, want ...string) {
	t.Helper()
	if got := d.read(); !slices.Equal(got, want) {
		t.Errorf("the hooks were told %v, want %v", got, want)
	}
}

// wantInAnyOrder is want for what several goroutines tell: the next may have the lock before the one who gave it up
// tells of it.
func (d *diary) wantInAnyOrder(t *testing.T, want ...string) {
	t.Helper()
	got := d.read()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the hooks were told %v, want %v in any order", got, want)
	}
}

// eachWay runs a test with a mutex that hands off and one that does not.
func eachWay(t *testing.T, test func(t *testing.T, w *world, d *diary, m *lock.Mutex)) {
	t.Helper()
	for name, handoff := range map[string]lock.Handoff{"hand-off": {}, "strict": lock.StrictFIFO} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				d := new(diary)
				test(t, w, d, w.mutex(lock.Config{Hooks: d.hooks(), Handoff: handoff}))
			})
		})
	}
}

func TestHooksAreToldOnceOfEachStep(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, w *world, d *diary, m *lock.Mutex) {
		since := time.Now()
		hold := acquire(t, m)
		d.want(t, "acquired")
		time.Sleep(3 * time.Second)
		unlock(t, hold)
		unlock(t, hold)
		d.want(t, "released")
		for i, e := range d.events {
			took := []time.Duration{0, 3 * time.Second}[i]
			if e.Path != path || e.Node != hold.Path() || e.Token != hold.Token() || e.Took != took || e.Err != nil ||
				!e.Since.Equal(since) {
				t.Errorf("event %d: got %+v", i, e)
			}
		}
		tried, err := m.TryLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.TryLock(t.Context()); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("got %v", err)
		}
		unlock(t, tried)
		d.want(t, "acquired", "failed", "released")
	})
}

// The answer to CURATOR-592.
func TestHooksAreToldWhenAnAcquisitionHasToWait(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, w *world, d *diary, m *lock.Mutex) {
		other := acquire(t, w.mutex(lock.Config{}))
		first := lockInBackground(t.Context(), m)
		d.want(t, "enqueued")
		second := lockInBackground(t.Context(), m) // behind another process and behind the first
		d.want(t, "enqueued")
		time.Sleep(5 * time.Second)
		unlock(t, other)
		hold := got(t, first)
		d.want(t, "acquired")
		if e := d.events[2]; e.Took != 5*time.Second || time.Since(e.Since) != e.Took {
			t.Errorf("got %v since %v for a wait of 5s", e.Took, e.Since)
		}
		unlock(t, hold)
		unlock(t, got(t, second))
		d.wantInAnyOrder(t, "released", "acquired", "released")
	})
}

// A wait that goes on under the next session is one wait.
func TestWaitAcrossSessionsIsToldOnce(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, w *world, d *diary, m *lock.Mutex) {
		other := acquire(t, w.mutex(lock.Config{}))
		waiting := lockInBackground(t.Context(), m)
		synctest.Wait()
		for _, id := range w.Sessions() {
			if id != other.Session().ID() {
				w.ExpireSession(id)
			}
		}
		time.Sleep(time.Second)
		unlock(t, other)
		unlock(t, got(t, waiting))
		d.want(t, "enqueued", "acquired", "released")
	})
}

func TestLossIsToldOnceAndInPlaceOfTheRelease(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, w *world, d *diary, m *lock.Mutex) {
		hold := acquire(t, m)
		w.ExpireSession(hold.Session().ID())
		d.want(t, "acquired", "lost")
		if e := d.events[1]; !errors.Is(e.Err, zk.ErrExpired) || e.Token != hold.Token() {
			t.Errorf("got %+v", e)
		}
		_ = hold.Unlock() // was lost
		d.want(t)

		hold = acquire(t, m)
		w.Cut()
		<-hold.Context().Done()
		d.want(t, "acquired", "lost")
		if e := d.events[3]; !errors.Is(e.Err, zk.ErrLost) {
			t.Errorf("got %+v", e)
		}
		w.Heal()
	})
}

func TestNestedHoldsAreNotTold(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, w *world, d *diary, m *lock.Mutex) {
		outer := acquire(t, m)
		inner := lockWith(lock.Reenter(outer.Context()), t, m)
		unlock(t, outer)
		d.want(t, "acquired")
		unlock(t, inner)
		d.want(t, "released")

		outer = acquire(t, m)
		inner = lockWith(lock.Reenter(outer.Context()), t, m)
		w.ExpireSession(outer.Session().ID())
		d.want(t, "acquired", "lost")
		_, _ = inner.Unlock(), outer.Unlock() // were lost
		d.want(t)
	})
}

func TestReadWriteLocksAndSetsTellTheirHooks(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		d := new(diary)
		client := w.Client(t, 20*time.Second)
		m := rwmutex(t, client, lock.RWConfig{Hooks: d.hooks()})
		for _, take := range []func(context.Context) (*lock.Hold, error){m.TryLock, m.TryRLock} {
			unlock(t, locked(t, take))
			d.want(t, "acquired", "released")
		}
		hold := locked(t, m.Lock)
		d.want(t, "acquired")
		first, second := waits(t.Context(), m.RLock), waits(t.Context(), m.RLock)
		d.want(t, "enqueued", "enqueued")
		writer := waits(t.Context(), m.Lock)
		d.want(t, "enqueued")
		if err := m.Downgrade(t.Context(), hold); err != nil {
			t.Fatal(err)
		}
		d.want(t, "acquired", "acquired")
		unlock(t, got(t, first))
		unlock(t, got(t, second))
		d.want(t, "released", "released")
		if err := m.Upgrade(t.Context(), hold); err != nil {
			t.Fatal(err)
		}
		d.want(t)
		unlock(t, hold)
		d.wantInAnyOrder(t, "released", "acquired")
		lost := got(t, writer)
		w.ExpireSession(lost.Session().ID())
		d.want(t, "lost")
		_ = lost.Unlock() // was lost
		d.want(t)

		s, err := lock.NewSet(client, []string{pathA, pathB}, lock.SetConfig{Hooks: d.hooks()})
		if err != nil {
			t.Fatal(err)
		}
		unlock(t, locked(t, s.TryLock))
		d.want(t, "acquired", "released")
		hold = locked(t, w.set(pathB).Lock)
		all := waits(t.Context(), s.Lock)
		d.want(t, "enqueued")
		unlock(t, hold)
		unlock(t, got(t, all))
		d.want(t, "acquired", "released")
		if e := d.events[len(d.events)-1]; e.Path != pathA+" and "+pathB {
			t.Errorf("got path %q", e.Path)
		}
	})
}

// Hooks may use the lock that they are told of: nothing of ours is held while they run.
func TestHooksMayUseTheLock(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var m *lock.Mutex
		var problems []string
		use := func(what string) {
			if h, err := m.TryLock(t.Context()); err == nil {
				h.Unlock()
			} else if !errors.Is(err, lock.ErrHeld) {
				problems = append(problems, fmt.Sprintf("%s: %v", what, err))
			}
		}
		busy := false
		once := func(what string) {
			if !busy {
				busy = true
				use(what)
				busy = false
			}
		}
		m = w.mutex(lock.Config{Hooks: lock.Hooks{
			Enqueued: func(context.Context, lock.Event) { once("enqueued") },
			Acquired: func(context.Context, lock.Event) { once("acquired") },
			Failed:   func(context.Context, lock.Event) { once("failed") },
			Released: func(lock.Event) { once("released") },
			Lost:     func(lock.Event) { once("lost") },
		}})
		unlock(t, acquire(t, m))
		other := acquire(t, w.mutex(lock.Config{}))
		waiting := lockInBackground(t.Context(), m)
		synctest.Wait()
		unlock(t, other)
		hold := got(t, waiting)
		w.ExpireSession(hold.Session().ID())
		synctest.Wait()
		_ = hold.Unlock() // was lost
		if len(problems) > 0 {
			t.Error(problems)
		}
	})
}
