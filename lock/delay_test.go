package lock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

const delay = 2 * time.Minute // longer than anything else in these tests takes

func (w *world) delayed() *lock.Mutex {
	w.t.Helper()
	return w.mutex(lock.Config{Delay: delay})
}

// gone waits until the node is deleted, and returns when that was.
func (w *world) gone(node string) time.Time {
	w.t.Helper()
	_, there, watch, err := w.Session(w.t, 20*time.Second).ExistsW(w.t.Context(), node)
	if err != nil {
		w.t.Fatal(err)
	}
	defer watch.Close()
	if there {
		if _, err := watch.Next(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
	return time.Now()
}

// waited checks that the lock came to the next one so long after the last one was lost, and not much later.
func waited(t *testing.T, lost time.Time, want time.Duration) {
	t.Helper()
	if took := time.Since(lost); took < want || took > want+30*time.Second {
		t.Errorf("the next one had the lock %v after the loss, want %v", took, want)
	}
}

// lose loses the hold as a crash does: its session falls silent and times out.
func (w *world) lose(hold *lock.Hold) time.Time {
	w.t.Helper()
	w.HalfOpen(hold.Session().ID())
	return w.gone(hold.Path())
}

// Promise: 2
func TestLockRestsAfterItsHoldersSessionHasEnded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hold := acquire(t, w.delayed())
		waiting := lockInBackground(t.Context(), w.delayed())
		synctest.Wait()
		lost := w.lose(hold)
		next := got(t, waiting)
		waited(t, lost, delay)
		unlock(t, next)
		w.empty(path, lock.DelayPath(path))

		lost = w.lose(acquire(t, w.delayed()))
		unlock(t, acquire(t, w.delayed())) // a later contender, in an empty line
		waited(t, lost, delay)
		w.empty(path, lock.DelayPath(path))
	})
}

// Promise: 2
func TestLockRestsAfterItsHoldersNodeWasDeletedByForce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hold := acquire(t, w.delayed())
		letHoldsAge()
		lost := time.Now()
		if err := w.Session(t, 20*time.Second).Delete(t.Context(), hold.Path(), -1); err != nil {
			t.Fatal(err)
		}
		<-hold.Context().Done()
		_ = hold.UnlockWait(t.Context()) // comes too late, and is no farewell
		unlock(t, acquire(t, w.delayed()))
		waited(t, lost, delay)

		acquire(t, w.delayed())
		if r := <-w.revoke(lock.RevokeOptions{Grace: time.Millisecond, Force: true}); r.err != nil {
			t.Fatal(r.err)
		}
		lost = time.Now()
		unlock(t, acquire(t, w.delayed()))
		waited(t, lost, delay)
		w.empty(path, lock.DelayPath(path))
	})
}

// Promise: 2
func TestNobodyWaitsAfterAnUnlock(t *testing.T) {
	t.Parallel()
	for _, cfg := range []lock.Config{{}, {Handoff: lock.StrictFIFO}} {
		cfg.Delay = delay
		t.Run("", func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				begin := time.Now()
				a, b := w.mutex(cfg), w.mutex(cfg)
				for range 5 {
					hold := acquire(t, a)
					waiting := append(lockers(t, a, 2), lockInBackground(t.Context(), b))
					unlock(t, hold)
					for _, c := range waiting {
						unlock(t, got(t, c))
					}
					synctest.Wait()
					hold, err := b.TryLock(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					unlock(t, hold)
				}
				hold := acquire(t, a)
				done := w.revoke(lock.RevokeOptions{Grace: time.Minute, Force: true}) // who gives way is not lost
				<-hold.Context().Done()
				unlock(t, hold)
				<-done
				unlock(t, acquire(t, b))
				if took := time.Since(begin); took > time.Minute {
					t.Errorf("clean unlocks made others wait: it took %v", took)
				}
				time.Sleep(2 * time.Second)
				w.empty(path, lock.DelayPath(path))
			})
		})
	}
}

// Many holders were lost and never followed: as readers are, and sets. Their delays pass together, and all of their
// marks go.
func TestThousandsOfMarksAreOutwaitedAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const n = 1100 // more than are asked for at once
		sess := w.Session(t, 20*time.Second)
		dir := zk.Node{Path: lock.DelayPath(path)}
		if _, err := sess.CreateAll(t.Context(), dir, zk.Parents{}); err != nil {
			t.Fatal(err)
		}
		var marks []zk.Op
		for i := range n {
			data := fmt.Sprintf(`{"delayNs":%d}`, delay-time.Duration(i)*time.Millisecond)
			marks = append(marks, zk.CreateOp(fmt.Sprintf("%s/lost-%d", dir.Path, i), []byte(data), zk.Persistent))
		}
		if _, err := sess.Multi(t.Context(), marks...); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		hold := acquire(t, w.delayed())
		waited(t, begin, delay)
		if names, _, err := sess.Children(t.Context(), dir.Path); err != nil || len(names) != 1 {
			t.Errorf("got %d marks, %v, want the holder's", len(names), err)
		}
		unlock(t, hold)
	})
}

// What was lost while it only waited for the lock, or for the delay, had nothing under way.
func TestOnlyHoldersMakeOthersWait(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		begin := time.Now()
		hold := acquire(t, w.delayed())
		leaver := w.Client(t, 20*time.Second)
		m, err := lock.NewMutex(leaver, path, lock.Config{Delay: delay})
		if err != nil {
			t.Fatal(err)
		}
		lockInBackground(t.Context(), m)
		synctest.Wait()
		_ = leaver.Close() // a waiter goes without a word
		unlock(t, hold)
		hold = acquire(t, w.delayed())
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("a waiter that was lost made others wait: it took %v", took)
		}

		lost := w.lose(hold)
		resting := w.Client(t, 20*time.Second)
		if m, err = lock.NewMutex(resting, path, lock.Config{Delay: delay}); err != nil {
			t.Fatal(err)
		}
		lockInBackground(t.Context(), m)
		time.Sleep(delay / 2)
		_ = resting.Close() // one that waits for the delay does
		unlock(t, acquire(t, w.delayed()))
		waited(t, lost, delay)

		lost = w.lose(acquire(t, w.delayed()))
		ctx, cancel := context.WithTimeout(t.Context(), delay/4)
		if _, err := w.delayed().Lock(ctx); !errors.Is(err, context.DeadlineExceeded) { // one gives up
			t.Errorf("in the delay: got %v, want the context's end", err)
		}
		cancel()
		waiting := lockInBackground(t.Context(), w.delayed())
		time.Sleep(delay / 4)
		line := w.line()
		if err := w.Session(t, 20*time.Second).Delete(t.Context(), line[0].Path, -1); err != nil { // one is deleted
			t.Fatal(err)
		}
		unlock(t, got(t, waiting))
		waited(t, lost, delay)
		w.empty(path, lock.DelayPath(path))
	})
}

func TestTryLockDoesNotWaitForTheDelay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lost := w.lose(acquire(t, w.delayed()))
		m := w.delayed()
		for time.Since(lost) < delay-time.Minute {
			if _, err := m.TryLock(t.Context()); !errors.Is(err, lock.ErrHeld) {
				t.Fatalf("%v after the loss: got %v, want lock.ErrHeld", time.Since(lost), err)
			}
			time.Sleep(delay / 6)
		}
		time.Sleep(delay)
		hold, err := m.TryLock(t.Context())
		if err != nil {
			t.Fatalf("long after the delay: %v", err)
		}
		unlock(t, hold)
		w.empty(path, lock.DelayPath(path))
	})
}

// The delay that counts is the lost holder's: it knows how long its writes linger. A holder without a delay neither
// observes nor causes one.
func TestHoldersWithoutADelayNeitherCauseNorObserveOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		plain := w.mutex(lock.Config{})
		w.lose(acquire(t, plain))
		begin := time.Now()
		w.Heal()
		hold := acquire(t, w.delayed())
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("one without a delay made others wait: it took %v", took)
		}
		lost := w.lose(hold)
		unlock(t, acquire(t, w.mutex(lock.Config{})))
		if took := time.Since(lost); took > time.Minute {
			t.Errorf("one without a delay had to wait for %v", took)
		}
		unlock(t, acquire(t, w.mutex(lock.Config{Delay: time.Second})))
		waited(t, lost, delay)
		w.empty(path, lock.DelayPath(path))
	})
}

// delayedKinds are locks with a delay for a client each time that they are asked for, and where they leave their marks.
func (w *world) delayedKinds() map[string]func() func(context.Context) (*lock.Hold, error) {
	cfg, rw := lock.Config{Delay: delay}, lock.RWConfig{Delay: delay}
	set := func(cfg lock.SetConfig) func(context.Context) (*lock.Hold, error) {
		w.t.Helper()
		s, err := lock.NewSet(w.Client(w.t, 20*time.Second), []string{path, pathA}, cfg)
		if err != nil {
			w.t.Fatal(err)
		}
		return s.Lock
	}
	both := lock.SetConfig{Delay: delay, Layout: lock.Both}
	return map[string]func() func(context.Context) (*lock.Hold, error){
		"mutex": func() func(context.Context) (*lock.Hold, error) { return w.mutex(cfg).Lock },
		"two nodes": func() func(context.Context) (*lock.Hold, error) {
			return w.mutex(lock.Config{Delay: delay, Layout: lock.Both}).Lock
		},
		"set":       func() func(context.Context) (*lock.Hold, error) { return set(lock.SetConfig{Delay: delay}) },
		"large set": func() func(context.Context) (*lock.Hold, error) { return set(both) },
		"writer":    func() func(context.Context) (*lock.Hold, error) { return w.rw(rw).Lock },
		"reader": func() func(context.Context) (*lock.Hold, error) { // the next of whom is a writer
			m := w.rw(rw)
			first := true
			return func(ctx context.Context) (*lock.Hold, error) {
				take := m.Lock
				if first {
					take = m.RLock
				}
				first = false
				return take(ctx)
			}
		},
	}
}

// Every request of a lock and its unlock is hit by every fault in turn: it stays clean, and a loss stays a loss.
//
// Promise: 2
func TestDelaySurvivesLostReplies(t *testing.T) {
	t.Parallel()
	for kind := range new(world).delayedKinds() {
		faults := map[string]zktest.Fault{
			"reply lost": zktest.DropReply, "request lost": zktest.Refuse, "cut before": zktest.CutBefore,
			"cut after": zktest.CutAfter,
		}
		for name, fault := range faults {
			t.Run(kind+", "+name, func(t *testing.T) {
				t.Parallel()
				for nth := range soak.Steps(name, faults) {
					if nth > soak.Pick(10, 16) {
						break
					}
					zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
						delaySurvives(t, &world{srv, t}, kind, nth, fault)
					}, zktest.SessionTimeouts(time.Second, time.Minute))
				}
			})
		}
	}
}

func delaySurvives(t *testing.T, w *world, kind string, nth int, fault zktest.Fault) {
	t.Helper()
	begin := time.Now()
	another := w.delayedKinds()[kind]
	take := another()
	aim := func() {
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Seq == nth {
				return fault
			}
			return zktest.Pass
		})
	}
	aim()
	for range 2 {
		if err := locked(t, take).UnlockWait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	w.Control(nil)
	hold := locked(t, another())
	if took := time.Since(begin); took > time.Minute {
		t.Fatalf("after clean unlocks the next one waited for %v", took)
	}
	if marks := w.nodes(lock.DelayPath(path)); len(marks) != 1 {
		t.Errorf("a holder leaves %v, want one node", marks)
	}
	lost := w.lose(hold)
	aim()
	hold = locked(t, take)
	w.Control(nil)
	waited(t, lost, delay)
	if err := hold.UnlockWait(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.empty(path, lock.DelayPath(path), pathA, lock.DelayPath(pathA))
}

// What a set has lost rests at each of its paths, for a mutex as well, and the delays of several paths pass at once.
//
// Promise: 2
func TestPathsOfALostSetRest(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		whole := func() *lock.Set {
			s, err := lock.NewSet(w.Client(t, 20*time.Second), []string{path, pathA}, lock.SetConfig{Delay: delay})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		lost := w.lose(locked(t, whole().Lock))
		if _, err := whole().TryLock(t.Context()); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("in the delay: got %v, want lock.ErrHeld", err)
		}
		mutex := waits(t.Context(), w.delayed().Lock)
		unlock(t, got(t, mutex))
		waited(t, lost, delay)
		lost = w.lose(locked(t, whole().Lock))
		unlock(t, locked(t, whole().Lock))
		waited(t, lost, delay)
		w.empty(path, lock.DelayPath(path), pathA, lock.DelayPath(pathA))
	})
}

// Readers have nothing under way that other readers must not meet.
//
// Promise: 2
func TestReadersRestAfterWritersAndWritersAfterAnybody(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		rw := func() *lock.RWMutex { return w.rw(lock.RWConfig{Delay: delay}) }
		atOnce := func(lost time.Time) {
			t.Helper()
			if took := time.Since(lost); took > time.Minute {
				t.Errorf("it took %v", took)
			}
		}
		writer := func(m *lock.RWMutex) *lock.Hold { return locked(t, m.Lock) }
		reader := func(m *lock.RWMutex) *lock.Hold { return locked(t, m.RLock) }
		leave := func(h *lock.Hold) { // an upgrade finds readers that are about to leave
			t.Helper()
			if err := h.UnlockWait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		type change = func(context.Context, *lock.Hold) error
		changed := func(h *lock.Hold, change change) *lock.Hold {
			t.Helper()
			if err := change(t.Context(), h); err != nil {
				t.Fatal(err)
			}
			return h
		}
		for _, lose := range []func() *lock.Hold{
			func() *lock.Hold { return writer(rw()) },
			func() *lock.Hold { m := rw(); return changed(reader(m), m.Upgrade) },
		} {
			lost := w.lose(lose())
			if _, err := rw().TryRLock(t.Context()); !errors.Is(err, lock.ErrHeld) {
				t.Errorf("a reader after a writer: got %v, want lock.ErrHeld", err)
			}
			leave(reader(rw()))
			waited(t, lost, delay)
		}
		for _, lose := range []func() *lock.Hold{
			func() *lock.Hold { return reader(rw()) },
			func() *lock.Hold { m := rw(); return changed(writer(m), m.Downgrade) },
		} {
			lost := w.lose(lose())
			hold := reader(rw())
			atOnce(lost)
			leave(hold)
			leave(writer(rw()))
			waited(t, lost, delay)
		}
		begin := time.Now() // a hold that changed its kind and was unlocked causes no wait
		m := rw()
		leave(changed(writer(m), m.Downgrade))
		leave(changed(reader(m), m.Upgrade))
		leave(writer(rw()))
		atOnce(begin)
		letHoldsAge()
		w.empty(path, lock.DelayPath(path))
	})
}

func TestDelayIsRefusedWhereThereIsNone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, 20*time.Second)
		if _, err := lock.NewMutex(client, path, lock.Config{Delay: -1}); err == nil {
			t.Error("a negative delay: got no error")
		}
		if _, err := lock.NewMutex(client, path, lock.Config{Delay: 1, Retain: 1}); err == nil {
			t.Error("a retained lock: got no error")
		}
		if _, err := lock.NewRWMutex(client, path, lock.RWConfig{Delay: -1}); err == nil {
			t.Error("a negative delay of a read/write lock: got no error")
		}
		if _, err := lock.NewSet(client, []string{path}, lock.SetConfig{Delay: -1}); err == nil {
			t.Error("a negative delay of a set: got no error")
		}
		if _, err := lock.NewMutex(client, path, lock.Config{OnSuspend: 7}); err == nil {
			t.Error("an OnSuspend that is none: got no error")
		}
	})
}

// Promise: 2
func TestDisconnectEndsTheHoldOnlyIfThatIsWanted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		keeps, ends := acquire(t, w.mutex(lock.Config{})), locked(t, w.set(pathA).Lock)
		unlock(t, ends)
		s, err := lock.NewSet(w.Client(t, 20*time.Second), []string{pathA}, lock.SetConfig{OnSuspend: lock.EndHold})
		if err != nil {
			t.Fatal(err)
		}
		rw, err := lock.NewRWMutex(w.Client(t, 20*time.Second), pathB, lock.RWConfig{OnSuspend: lock.EndHold})
		if err != nil {
			t.Fatal(err)
		}
		m, err := lock.NewMutex(w.Client(t, 20*time.Second), pathC,
			lock.Config{OnSuspend: lock.EndHold, Retain: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		holds := []*lock.Hold{locked(t, s.Lock), locked(t, rw.RLock), acquire(t, m)}
		time.Sleep(time.Minute)
		here := lockInBackground(t.Context(), m)
		synctest.Wait()
		w.Drop() // a blip: it is connected again before the test looks
		for i, h := range holds {
			<-h.Context().Done()
			if cause := context.Cause(h.Context()); !errors.Is(cause, lock.ErrSuspended) {
				t.Errorf("hold %d: got cause %v, want lock.ErrSuspended", i, cause)
			}
		}
		synctest.Wait()
		if len(here) > 0 {
			t.Error("the lock passed on before it was unlocked")
		}
		for _, h := range holds {
			unlock(t, h) // no other client had it meanwhile
		}
		unlock(t, got(t, here))
		if err := keeps.Context().Err(); err != nil {
			t.Errorf("a blip ended a hold that keeps: %v", context.Cause(keeps.Context()))
		}
		unlock(t, keeps)
		alone := acquire(t, m)
		w.Drop()
		<-alone.Context().Done()
		if err := alone.UnlockWait(t.Context()); err != nil {
			t.Error(err)
		}
		w.empty(pathC) // the lock is not kept: the next hold could not go on
		last := acquire(t, m)
		w.HalfOpen(last.Session().ID())
		<-last.Context().Done()
		cause := context.Cause(last.Context())
		if !errors.Is(cause, lock.ErrSuspended) && !errors.Is(cause, zk.ErrLost) {
			t.Errorf("got cause %v", cause)
		}
	})
}

// Promise: 2
func TestLockRestsAfterAChangedHoldWasDeletedByForce(t *testing.T) {
	t.Parallel()
	for name := range changes(nil) {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				c := changes(w.rw(lock.RWConfig{Delay: delay}))[name]
				hold := locked(t, c.take)
				if err := c.to(t.Context(), hold); err != nil {
					t.Fatal(err)
				}
				letHoldsAge()
				lost := time.Now()
				w.removeNode(0)
				<-hold.Context().Done()
				if err := hold.UnlockWait(t.Context()); !errors.Is(err, lock.ErrDeleted) {
					t.Errorf("got %v, want lock.ErrDeleted", err)
				}
				next := locked(t, w.rw(lock.RWConfig{Delay: delay}).Lock)
				waited(t, lost, delay)
				unlock(t, next)
			})
		})
	}
}

// The node is deleted before its mark is on its way: the mark must not be made, or it would make others wait for
// a contender that never held the lock.
//
// Promise: 2
func TestContenderWhoseNodeIsGoneLeavesNoMark(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		stopped, proceed := context.WithCancel(t.Context())
		defer proceed()
		first := true
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpMulti && first {
				first = false
				return zktest.Until(stopped)
			}
			return zktest.Pass
		})
		waiting := waits(t.Context(), w.delayed().Lock)
		none(t, "its mark is on its way", waiting)
		w.removeNode(0)
		other := acquire(t, w.mutex(lock.Config{}))
		proceed()
		time.Sleep(time.Second)
		none(t, "behind the contender that came instead", waiting)
		w.empty(lock.DelayPath(path))
		unlock(t, other)
		unlock(t, got(t, waiting))
	})
}

// The holder may still be at work, and has not unlocked: the next one waits, although the node went with no session.
func TestUncertainHolderThatDoesNotUnlockLeavesItsDelay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, 20*time.Second)
		m, err := lock.NewMutex(client, path, lock.Config{Delay: 5 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		hold := acquire(t, m)
		letHoldsAge()
		next := lockInBackground(t.Context(), w.delayed())
		letHoldsAge()
		w.Control(zktest.WithoutQuorum(session(t, client).ID()))
		<-hold.Context().Done()
		lost := time.Now()
		time.Sleep(time.Second)
		w.Control(nil)
		second := got(t, next)
		if rested := time.Since(lost); rested < 5*time.Minute {
			t.Errorf("got the lock %v after the loss, want no less than 5 minutes", rested)
		}
		unlock(t, second)
	})
}

// What an acquisition waited for can be told apart: others in the line, and then the delay.
func TestAcquiredSaysWhenTheContenderWasFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hold := acquire(t, w.delayed())
		d := new(diary)
		called := time.Now()
		waiting := lockInBackground(t.Context(), w.mutex(lock.Config{Delay: delay, Hooks: d.hooks()}))
		synctest.Wait()
		lost := w.lose(hold)
		next := got(t, waiting)
		d.want(t, "enqueued", "acquired")
		e := d.events[1]
		if e.First < lost.Sub(called) || e.Took < e.First+delay {
			t.Errorf("it was first after %v and acquired after %v; the lock was lost after %v",
				e.First, e.Took, lost.Sub(called))
		}
		unlock(t, next)
		d.want(t, "released")
		if e := d.events[2]; e.First != 0 || e.Stopping != 0 {
			t.Errorf("got %+v", e)
		}
	})
}
