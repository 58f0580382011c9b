package lock_test

// Changes of a hold's kind, and its end.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// No quorum confirms the session, and so the hold ends while its change is asked for again and again. The change is
// done when the lock was given up, and before the old node has gone.
func TestChangeThatIsDoneAfterItsHoldHasEndedLeavesNoNode(t *testing.T) {
	t.Parallel()
	for name := range changes(nil) {
		for _, rest := range []time.Duration{0, delay} {
			t.Run(fmt.Sprint(name, " ", rest), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					m := rwmutex(t, w.Client(t, certainTimeout), lock.RWConfig{Delay: rest})
					c := changes(m)[name]
					hold := locked(t, c.take)
					id := hold.Session().ID()
					var late atomic.Bool
					done := false
					refuse := zktest.WithoutQuorum(id)
					w.Control(func(r zktest.Request) zktest.Fault {
						creates := r.Op == zktest.OpCreate ||
							slices.ContainsFunc(r.Parts, func(p zktest.Part) bool { return p.Op == zktest.OpCreate })
						if done = done || late.Load() && r.Session == id && creates; done {
							return zktest.Pass
						}
						return refuse(r)
					})
					changed := make(chan error, 1)
					go func() { changed <- c.to(t.Context(), hold) }()
					<-hold.Context().Done()
					time.Sleep(certainTimeout) // it was given up by then
					late.Store(true)
					if err := <-changed; !errors.Is(err, zk.ErrUncertain) {
						t.Errorf("got %v, want zk.ErrUncertain", err)
					}
					time.Sleep(certainTimeout)
					if err := hold.Session().Err(); err != nil {
						t.Fatalf("the session has ended, and all of its nodes: %v", err)
					}
					w.Control(nil)
					w.empty(path)
					marks, _, err := w.Session(t, certainTimeout).Children(t.Context(), path+"-__delay__")
					if rest > 0 && (len(marks) != 1 || err != nil) {
						t.Errorf("got the marks %v, %v, want one: the holder may still be at work", marks, err)
					}
					if err := hold.Unlock(); !errors.Is(err, zk.ErrUncertain) {
						t.Errorf("Unlock: got %v, want zk.ErrUncertain", err)
					}
				})
			})
		}
	}
}

// The node that a change makes is the one to wait for, whichever the hold had when Unlock was called.
func TestUnlockWaitBesideAChangeWaitsForTheNewNode(t *testing.T) {
	t.Parallel()
	for name := range changes(nil) {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				c := changes(w.rw(lock.RWConfig{}))[name]
				hold := locked(t, c.take)
				old := hold.Path()
				made, proceed := context.WithCancel(t.Context())
				defer proceed()
				removed, finish := context.WithCancel(t.Context())
				defer finish()
				w.Control(func(r zktest.Request) zktest.Fault {
					switch {
					case r.Op == zktest.OpDelete && r.Path != old:
						return zktest.Until(removed)
					case r.Op == zktest.OpCreate, r.Op == zktest.OpMulti:
						return zktest.Until(made)
					}
					return zktest.Pass
				})
				changed := make(chan error, 1)
				go func() { changed <- c.to(t.Context(), hold) }()
				synctest.Wait()
				unlocked := make(chan error, 1)
				go func() { unlocked <- hold.UnlockWait(t.Context()) }()
				synctest.Wait()
				proceed()
				if err := <-changed; err != nil {
					t.Errorf("the change: %v", err)
				}
				synctest.Wait()
				if len(unlocked) > 0 {
					t.Error("UnlockWait has returned, and the removal of the new node is on its way")
				}
				finish()
				if err := <-unlocked; err != nil {
					t.Error(err)
				}
				w.Control(nil)
				w.empty(path)
			})
		})
	}
}

// A downgrade is on its way when work under the hold asks for it once more.
func TestWriterIsNotNestedInAHoldThatBecomesAReaders(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.rw(lock.RWConfig{})
		hold := locked(t, m.Lock)
		made, proceed := context.WithCancel(t.Context())
		defer proceed()
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpMulti {
				return zktest.Until(made)
			}
			return zktest.Pass
		})
		changed := make(chan error, 1)
		go func() { changed <- m.Downgrade(t.Context(), hold) }()
		synctest.Wait()
		inner := waits(lock.Reenter(hold.Context()), m.Lock)
		proceed()
		if err := <-changed; err != nil {
			t.Fatal(err)
		}
		if r := <-inner; !errors.Is(r.err, lock.ErrUpgradeConflict) {
			t.Errorf("got %v, %v, want lock.ErrUpgradeConflict", r.hold, r.err)
		}
		unlock(t, hold)
		w.Control(nil)
		w.empty(path)
	})
}

// Two readers share a node. One unlocks, and then the session ends: the lock was not lost to that one.
func TestChangeOfAHoldThatWasUnlockedBeforeTheLossSaysSo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.rw(lock.RWConfig{})
		hold, other := locked(t, m.RLock), locked(t, m.RLock)
		unlock(t, hold)
		w.ExpireSession(hold.Session().ID())
		<-other.Context().Done()
		if err := m.Upgrade(t.Context(), hold); !errors.Is(err, lock.ErrUnlocked) {
			t.Errorf("got %v, want lock.ErrUnlocked", err)
		}
		if err := m.Upgrade(t.Context(), other); !errors.Is(err, zk.ErrExpired) {
			t.Errorf("the other: got %v, want zk.ErrExpired", err)
		}
		if err := other.Unlock(); !errors.Is(err, zk.ErrExpired) {
			t.Errorf("Unlock: got %v, want zk.ErrExpired", err)
		}
	})
}
