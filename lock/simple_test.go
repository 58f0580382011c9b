package lock_test

import (
	"context"
	"errors"
	"fmt"
	stdpath "path"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

func (w *world) simple() *lock.Simple { return w.simpleWith(lock.SimpleConfig{}) }

func (w *world) simpleWith(cfg lock.SimpleConfig) *lock.Simple {
	w.t.Helper()
	s, err := lock.NewSimple(w.Client(w.t, 20*time.Second), path, cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// free fails the test unless there is no node at the lock's path.
func (w *world) free() {
	w.t.Helper()
	synctest.Wait()
	if _, exists, err := w.Session(w.t, 20*time.Second).Exists(w.t.Context(), path); err != nil || exists {
		w.t.Fatalf("a node is left behind at %s, or that is unknown: %v", path, err)
	}
}

func TestSimpleLockIsItsOneNode(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.simple()
		first := locked(t, s.Lock)
		if first.Path() != path || s.Path() != path || len(first.Guards()) != 1 {
			t.Errorf("got the node %s, %d guards, want %s and one", first.Path(), len(first.Guards()), path)
		}
		if _, err := first.Session().Multi(t.Context(), first.Guard()); err != nil {
			t.Errorf("the guard: %v", err)
		}
		for _, other := range []*lock.Simple{s, w.simple()} {
			if _, err := other.TryLock(t.Context()); !errors.Is(err, lock.ErrHeld) {
				t.Errorf("got %v, want lock.ErrHeld", err)
			}
		}
		waiting := []<-chan result{waits(t.Context(), s.Lock), waits(t.Context(), w.simple().Lock)}
		none(t, "behind the first", waiting...)
		unlock(t, first)
		var second *lock.Hold
		for second == nil { // either of them
			select {
			case r := <-waiting[0]:
				second, waiting = r.hold, waiting[1:]
			case r := <-waiting[1]:
				second, waiting = r.hold, waiting[:1]
			}
		}
		none(t, "behind the second", waiting...)
		unlock(t, second)
		third := got(t, waiting[0])
		if second.Token() <= first.Token() || third.Token() <= second.Token() {
			t.Errorf("tokens do not grow: %d, %d, %d", first.Token(), second.Token(), third.Token())
		}
		if err := third.UnlockWait(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.free()
		unlock(t, locked(t, s.TryLock))
		w.free()
		w.NoWatches(t)
	})
}

// Clients that have the form alone put whatever they like into the node.
//
// Promise: 1
func TestSimpleLockOfOtherClientsIsRespected(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		unlock(t, locked(t, w.simple().Lock))
		synctest.Wait()
		other := w.Session(t, 20*time.Second)
		if _, err := other.Create(t.Context(), path, []byte("mine"), zk.Ephemeral); err != nil {
			t.Fatal(err)
		}
		waiting := waits(t.Context(), w.simple().Lock)
		if _, err := other.Set(t.Context(), path, []byte("still mine"), -1); err != nil {
			t.Fatal(err)
		}
		none(t, "behind another client", waiting)
		if err := other.Delete(t.Context(), path, -1); err != nil {
			t.Fatal(err)
		}
		unlock(t, got(t, waiting))
	})
}

// The herd: every waiter is woken.
//
// Promise: 6
func TestUnlockOfASimpleLockWakesEverybody(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const waiters = 50
		hold := locked(t, w.simple().Lock)
		for range waiters {
			waits(t.Context(), w.simple().Lock) // of which one comes in
		}
		time.Sleep(time.Minute)
		before := w.Traffic().Events
		if err := hold.UnlockWait(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if n := w.Traffic().Events - before; n != waiters {
			t.Errorf("got %d watch events with %d waiters, want one for each", n, waiters)
		}
	})
}

// Promise: 4
func TestLostRepliesLeaveNoSimpleLock(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]zktest.Fault{
		"reply lost": zktest.DropReply, "request lost": zktest.Refuse, "cut before": zktest.CutBefore,
		"cut after": zktest.CutAfter,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				for step, reached := 1, true; reached; step++ {
					a, b := w.simple(), w.simple()
					over := w.hit(step, fault)
					for range 2 {
						hold := locked(t, a.Lock)
						next := waits(t.Context(), b.Lock)
						none(t, fmt.Sprintf("step %d", step), next)
						unlock(t, hold)
						unlock(t, got(t, next))
					}
					reached = over()
					time.Sleep(time.Second)
					w.free()
				}
			})
		})
	}
}

// The answer to the removal is lost, and the next one has the lock when it is tried again: that must not remove the
// next one's node.
//
// Promise: 1
func TestUnlockWhoseReplyIsLostDoesNotUnlockTheNext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hold := locked(t, w.simple().Lock)
		next := waits(t.Context(), w.simple().Lock)
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpDelete && r.Nth == 1 {
				return zktest.DropReply
			}
			return zktest.Pass
		})
		if err := hold.UnlockWait(t.Context()); err != nil {
			t.Fatal(err)
		}
		second := got(t, next)
		time.Sleep(time.Minute)
		if err := second.Context().Err(); err != nil {
			t.Errorf("the next hold has ended: %v", context.Cause(second.Context()))
		}
		if _, err := w.simple().TryLock(t.Context()); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("behind the second: got %v, want lock.ErrHeld", err)
		}
		unlock(t, second)
	})
}

// Promise: 4
func TestCallerThatLeavesWhileItTakesASimpleLockLeavesNoNode(t *testing.T) {
	t.Parallel()
	leaveAtEachStep(t, func(w *world) locker { return w.simple() }, func(t *testing.T, w *world, _ locker) {
		t.Helper()
		w.free()
	})
}

// A partition may hold a creation up until after the hold that a later attempt has made, or after its caller has left.
//
// Promise: 4
func TestSimpleLockThatIsMadeTooLateIsRemoved(t *testing.T) {
	t.Parallel()
	for _, leaves := range []bool{false, true} {
		t.Run(fmt.Sprintf("caller leaves: %v", leaves), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				const timeout = 20 * time.Second
				client := w.Client(t, timeout)
				sess, err := client.Session(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				s, err := lock.NewSimple(client, path, lock.SimpleConfig{})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := sess.Create(t.Context(), stdpath.Dir(path), nil, zk.Persistent); err != nil {
					t.Fatal(err)
				}
				looked, look := context.WithCancel(t.Context())
				answer, proceed := context.WithCancel(t.Context())
				attempts := 0
				w.Control(func(r zktest.Request) zktest.Fault {
					switch {
					case r.Op == zktest.OpDelete && r.Path != path: // the barrier before the search for the node
						return zktest.Until(looked)
					case r.Op != zktest.OpCreate || r.Path != path:
						return zktest.Pass
					}
					if attempts++; attempts == 1 {
						return zktest.DropReply
					}
					return zktest.ReplyUntil(answer)
				})
				ctx, leave := context.WithCancel(t.Context())
				first := waits(ctx, s.Lock)
				time.Sleep(2 * time.Second)
				// It is as if the first attempt's node had not been made yet.
				other := w.Session(t, timeout)
				data, _, err := other.Get(t.Context(), path)
				if err = errors.Join(err, other.Delete(t.Context(), path, -1)); err != nil {
					t.Fatal(err)
				}
				look()
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if attempts != 2 {
					t.Fatalf("after %d attempts, want 2", attempts)
				}
				if leaves {
					leave()
				}
				synctest.Wait()
				proceed()
				w.Control(nil)
				if r := <-first; leaves != (r.err != nil) {
					t.Fatal(r.err)
				} else if !leaves {
					unlock(t, r.hold)
				}
				time.Sleep(timeout / 2)
				if _, err := sess.Create(t.Context(), path, data, zk.Ephemeral); err != nil { // the first attempt
					t.Fatal(err)
				}
				patient, cancel := context.WithTimeout(t.Context(), 20*timeout)
				defer cancel()
				next := waits(patient, w.simple().Lock)
				none(t, "behind the late node", next)
				hold := got(t, next)
				time.Sleep(20 * timeout)
				if sess.Err() != nil || hold.Context().Err() != nil {
					t.Errorf("the session ended: %v; the next hold: %v", sess.Err(), context.Cause(hold.Context()))
				}
				unlock(t, hold)
				w.free()
				leave()
			})
		})
	}
}

func TestWaiterForASimpleLockThatLeavesTouchesNobodyElse(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hold := locked(t, w.simple().Lock)
		stays := waits(t.Context(), w.simple().Lock)
		ctx, leave := context.WithCancel(t.Context())
		leaves := waits(ctx, w.simple().Lock)
		before := w.Traffic().Events
		leave()
		if r := <-leaves; !errors.Is(r.err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", r.err)
		}
		synctest.Wait()
		if n := w.Traffic().Events - before; n != 0 {
			t.Errorf("a waiter that left made %d events", n)
		}
		none(t, "behind the holder", stays)
		unlock(t, hold)
		unlock(t, got(t, stays))
		w.NoWatches(t)
	})
}

func TestLossOfTheSessionEndsASimpleHoldAndRestartsItsWaiters(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.simple()
		hold := locked(t, s.Lock)
		waiting := waits(t.Context(), s.Lock)
		w.ExpireSession(hold.Session().ID())
		<-hold.Context().Done()
		if cause := context.Cause(hold.Context()); !errors.Is(cause, zk.ErrExpired) {
			t.Errorf("got %v, want zk.ErrExpired", cause)
		}
		if _, err := hold.Session().Multi(t.Context(), hold.Guard()); !errors.Is(err, zk.ErrExpired) {
			t.Errorf("the guard: got %v, want zk.ErrExpired", err)
		}
		next := got(t, waiting)
		if next.Token() <= hold.Token() {
			t.Errorf("got token %d after %d", next.Token(), hold.Token())
		}
		if err := hold.Unlock(); !errors.Is(err, zk.ErrExpired) {
			t.Errorf("Unlock: got %v, want zk.ErrExpired", err)
		}
		synctest.Wait()
		if err := next.Context().Err(); err != nil {
			t.Errorf("the next hold has ended with the one before: %v", err)
		}
		unlock(t, next)
		w.free()
	})
}

// An operator deletes the node, and another has the lock when the first is unlocked: that must not unlock the other.
//
// Promise: 1
func TestSimpleHoldWhoseNodeOthersDeleteIsToldAndUnlocksNobodyElse(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hold := locked(t, w.simple().Lock)
		time.Sleep(time.Second)
		waiting := waits(t.Context(), w.simple().Lock)
		if err := w.Session(t, 20*time.Second).Delete(t.Context(), path, -1); err != nil {
			t.Fatal(err)
		}
		<-hold.Context().Done()
		if cause := context.Cause(hold.Context()); !errors.Is(cause, lock.ErrDeleted) {
			t.Errorf("got %v, want lock.ErrDeleted", cause)
		}
		next := got(t, waiting)
		if err := hold.UnlockWait(t.Context()); !errors.Is(err, lock.ErrDeleted) {
			t.Errorf("Unlock: got %v, want lock.ErrDeleted", err)
		}
		time.Sleep(time.Second)
		if err := next.Context().Err(); err != nil {
			t.Errorf("the next hold has ended: %v", context.Cause(next.Context()))
		}
		unlock(t, next)
		w.free()
	})
}

// Promise: 1
func TestLockInsideASimpleHoldIsNestedInIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var d diary
		s, other := w.simpleWith(lock.SimpleConfig{Hooks: d.hooks()}), w.simple()
		outer := locked(t, s.Lock)
		inner := lockedIn(t, outer, s.Lock)
		third := lockedIn(t, inner, s.TryLock)
		if inner.Token() != outer.Token() || third.Token() != outer.Token() {
			t.Errorf("nested holds have the tokens %d and %d, want %d", inner.Token(), third.Token(), outer.Token())
		}
		if _, err := other.TryLock(lock.Reenter(outer.Context())); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("another simple lock inside: got %v, want lock.ErrHeld", err)
		}
		for _, h := range []*lock.Hold{outer, third, inner} {
			if _, err := other.TryLock(t.Context()); !errors.Is(err, lock.ErrHeld) {
				t.Errorf("before all are unlocked: got %v, want lock.ErrHeld", err)
			}
			unlock(t, h)
		}
		w.free()
		again := locked(t, func(context.Context) (*lock.Hold, error) {
			return s.Lock(lock.Reenter(context.WithoutCancel(outer.Context())))
		})
		if again.Token() <= outer.Token() {
			t.Errorf("inside a hold that is over: got token %d after %d", again.Token(), outer.Token())
		}
		unlock(t, again)
		w.free()
		if n := len(d.read()); n != 4 {
			t.Errorf("the hooks were told %q, want two acquisitions and two releases", d.read())
		}
	})
}

func TestInspectShowsWhoHasASimpleLock(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hold := locked(t, w.simpleWith(lock.SimpleConfig{Label: "nightly"}).Lock)
		waiting := waits(t.Context(), w.simple().Lock)
		w.wantRoles("a simple lock", "H")
		c := w.line()[0]
		if !c.Known || c.Owner.Label != "nightly" || c.Path != path || c.Session != hold.Session().ID() ||
			c.Token != hold.Token() ||
			c.Kind != lock.Exclusive || c.Revoked != nil {
			t.Errorf("got %+v", c)
		}
		unlock(t, hold)
		unlock(t, got(t, waiting))
		w.wantRoles("a simple lock that is free", "")
		other := w.Session(t, 20*time.Second)
		if _, err := other.Create(t.Context(), path, []byte("mine"), zk.Ephemeral); err != nil {
			t.Fatal(err)
		}
		if line := w.line(); len(line) != 1 || !line[0].Holder || line[0].Known || string(line[0].Data) != "mine" ||
			line[0].Session != other.ID() {
			t.Errorf("another client's: got %+v", line)
		}
		if err := other.Delete(t.Context(), path, -1); err != nil {
			t.Fatal(err)
		}
		for _, mode := range []zk.Mode{zk.Persistent, zk.Container} { // of which neither is a lock
			if _, err := other.Create(t.Context(), path, nil, mode); err != nil {
				t.Fatal(err)
			}
			w.wantRoles("a node that belongs to no contender", "")
			if err := other.Delete(t.Context(), path, -1); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Promise: 2
func TestHolderOfASimpleLockIsToldWhoRevokesIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hold := locked(t, w.simple().Lock)
		letHoldsAge()
		waiting := waits(t.Context(), w.simple().Lock)
		done := w.revoke(lock.RevokeOptions{Reason: "drain"})
		<-hold.Context().Done()
		revoked, ok := errors.AsType[*lock.RevokedError](context.Cause(hold.Context()))
		if !ok || revoked.Revocation.Reason != "drain" {
			t.Errorf("got cause %v", context.Cause(hold.Context()))
		}
		none(t, "behind one who was asked", waiting)
		if c := w.line()[0]; !c.Known || c.Revoked == nil {
			t.Errorf("got %+v, want the holder known still, and asked", c)
		}
		asked, _, err := hold.Session().Get(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		unlock(t, hold)
		next := got(t, waiting)
		if r := <-done; r.err != nil || len(r.list) != 1 || r.list[0].Ending != lock.EndingReleased {
			t.Errorf("got %+v, want one holder who has released it", r)
		}

		// The request was on its way when the lock passed on: it reaches the next one's node, which has the same name.
		letHoldsAge()
		if _, err := next.Session().Set(t.Context(), path, asked, -1); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := next.Context().Err(); err != nil {
			t.Errorf("one who was not asked: %v", context.Cause(next.Context()))
		}
		if c := w.line()[0]; c.Revoked != nil {
			t.Errorf("got %+v, want no holder asked", c)
		}
		unlock(t, next)
		w.free()
	})
}

// Promise: 2
func TestHolderOfASimpleLockMayRefuseARevocation(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		keep := func(context.Context, lock.Revocation) bool { return false }
		hold := locked(t, w.simpleWith(lock.SimpleConfig{OnRevoke: keep}).Lock)
		letHoldsAge()
		r := <-w.revoke(lock.RevokeOptions{Grace: time.Second})
		if !errors.Is(r.err, lock.ErrKept) || hold.Context().Err() != nil {
			t.Errorf("got %+v, the hold ended by %v, want lock.ErrKept", r, context.Cause(hold.Context()))
		}
		waiting := waits(t.Context(), w.simple().Lock)
		if r := <-w.revoke(lock.RevokeOptions{Grace: time.Second, Force: true}); r.err != nil ||
			r.list[0].Ending != lock.EndingForced {
			t.Errorf("got %+v, want one holder who was forced", r)
		}
		next := got(t, waiting)
		synctest.Wait()
		if cause := context.Cause(hold.Context()); !errors.Is(cause, lock.ErrDeleted) {
			t.Errorf("got cause %v, want lock.ErrDeleted", cause)
		}
		unlock(t, next)
		w.free()
	})
}

// Another client may know its node by what it has written into it.
//
// Promise: 2
func TestRevokeLeavesTheNodeOfAnotherClientsSimpleLockAsItIs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		unlock(t, locked(t, w.simple().Lock))
		other := w.Session(t, 20*time.Second)
		synctest.Wait()
		if _, err := other.Create(t.Context(), path, []byte("mine"), zk.Ephemeral); err != nil {
			t.Fatal(err)
		}
		if r := <-w.revoke(lock.RevokeOptions{Grace: time.Second}); !errors.Is(r.err, lock.ErrKept) {
			t.Errorf("got %+v, want lock.ErrKept", r)
		}
		if data, _, err := other.Get(t.Context(), path); err != nil || string(data) != "mine" {
			t.Errorf("got %q, %v in the node", data, err)
		}
		if r := <-w.revoke(lock.RevokeOptions{Grace: time.Second, Force: true}); r.err != nil ||
			r.list[0].Ending != lock.EndingForced {
			t.Errorf("got %+v, want one holder who was forced", r)
		}
		w.free()
	})
}

func TestPathsThatCannotBeASimpleLockAreRefused(t *testing.T) {
	t.Parallel()
	client := open(t, zktest.Run(t))
	for _, p := range []string{"", "x", "/", "/zookeeper", "/a/"} {
		if _, err := lock.NewSimple(client, p, lock.SimpleConfig{}); err == nil {
			t.Errorf("NewSimple at %q: got no error", p)
		}
	}
}

// The reply to an unlock is held back, the same client locks again, and then the connection breaks: the unlock that is
// repeated must not hit the next node, which has the same name and the same session.
//
// Promise: 1
func TestUnlockThatIsRepeatedDoesNotUnlockTheNextOfTheSameSession(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.simple()
		hold := locked(t, s.Lock)
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpDelete && r.Nth == 1 {
				return zktest.DelayReply(time.Second)
			}
			return zktest.Pass
		})
		unlock(t, hold)
		synctest.Wait()
		waiting := waits(t.Context(), s.Lock)
		w.Drop()
		next := got(t, waiting)
		time.Sleep(time.Minute)
		if err := next.Context().Err(); err != nil {
			t.Errorf("the next hold has ended: %v", context.Cause(next.Context()))
		}
		if _, err := w.simple().TryLock(t.Context()); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("beside the next: got %v, want lock.ErrHeld", err)
		}
		unlock(t, next)
	})
}

// The removal is on its way still when its connection is gone, and a repetition of it would be on its way as well when
// the lock passes on.
func TestUnlockThatIsOnItsWayIsNotRepeatedOnceItIsDone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hold := locked(t, w.simple().Lock)
		next := waits(t.Context(), w.simple().Lock)
		id := hold.Session().ID()
		done, proceed := context.WithCancel(t.Context())
		defer proceed()
		removals := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op != zktest.OpDelete || r.Session != id {
				return zktest.Pass
			}
			switch removals++; removals {
			case 1:
				return zktest.Refuse
			case 2:
				return zktest.Until(done)
			}
			return zktest.Pass
		})
		unlock(t, hold)
		letHoldsAge()
		if err := w.Session(t, 20*time.Second).Delete(t.Context(), path, -1); err != nil { // the first removal
			t.Fatal(err)
		}
		second := got(t, next)
		proceed()
		letHoldsAge()
		if err := second.Context().Err(); err != nil || removals < 2 {
			t.Errorf("after %d removals the next hold has ended: %v", removals, context.Cause(second.Context()))
		}
		unlock(t, second)
		w.free()
	})
}

// Another client makes the node between the read and the attempt.
func TestTryLockOfASimpleLockThatComesTooLateLeavesNoWatch(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		unlock(t, locked(t, w.simple().Lock))
		letHoldsAge()
		stopped, proceed := context.WithCancel(t.Context())
		defer proceed()
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpCreate && r.Nth == 1 {
				return zktest.Until(stopped)
			}
			return zktest.Pass
		})
		late := waits(t.Context(), w.simple().TryLock)
		other := w.Session(t, 20*time.Second)
		if _, err := other.Create(t.Context(), path, nil, zk.Ephemeral); err != nil {
			t.Fatal(err)
		}
		proceed()
		if r := <-late; !errors.Is(r.err, lock.ErrHeld) {
			t.Fatalf("got %v, want lock.ErrHeld", r.err)
		}
		letHoldsAge()
		before := w.Traffic().Events
		if err := other.Delete(t.Context(), path, -1); err != nil {
			t.Fatal(err)
		}
		letHoldsAge()
		if n := w.Traffic().Events - before; n != 0 {
			t.Errorf("one who tried once has got %d watch events, want none", n)
		}
	})
}

// A request that is on its way when the lock passes on must not take the name of the next one away, who is not asked.
func TestRevocationThatComesTooLateLeavesTheNodeOfTheNextAsItIs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		refuse := func(context.Context, lock.Revocation) bool { return false }
		hold := locked(t, w.simpleWith(lock.SimpleConfig{OnRevoke: refuse}).Lock)
		letHoldsAge()
		if r := <-w.revoke(lock.RevokeOptions{Grace: time.Second}); !errors.Is(r.err, lock.ErrKept) {
			t.Fatalf("got %+v, want lock.ErrKept", r)
		}
		stopped, proceed := context.WithCancel(t.Context())
		defer proceed()
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpSetData && r.Path == path {
				return zktest.Until(stopped)
			}
			return zktest.Pass
		})
		late := w.revoke(lock.RevokeOptions{Grace: time.Second})
		synctest.Wait()
		if err := hold.UnlockWait(t.Context()); err != nil {
			t.Fatal(err)
		}
		other := w.Session(t, 20*time.Second)
		if _, err := other.Create(t.Context(), path, []byte("mine"), zk.Ephemeral); err != nil {
			t.Fatal(err)
		}
		proceed()
		if r := <-late; r.err != nil || len(r.list) != 1 || r.list[0].Ending != lock.EndingReleased {
			t.Errorf("got %+v, want one holder who has released it", r)
		}
		if data, _, err := other.Get(t.Context(), path); err != nil || string(data) != "mine" {
			t.Errorf("the next one's node says %q, %v", data, err)
		}
	})
}
