package lock_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

const curatorsWord = "__REVOKE__"

// revoking is a Revoke in the background.
type revoking struct {
	list []lock.Revoked
	err  error
}

func (w *world) revoke(opts lock.RevokeOptions) <-chan revoking {
	client := w.Client(w.t, 20*time.Second)
	c := make(chan revoking, 1)
	go func() {
		list, err := lock.Revoke(w.t.Context(), client, path, opts)
		c <- revoking{list, err}
	}()
	return c
}

// letHoldsAge lets holds grow so old that they watch their own nodes.
func letHoldsAge() { time.Sleep(time.Second); synctest.Wait() }

// Promise: 2
func TestHolderIsToldWhoRevokesAndWhyAndKeepsTheLockUntilItUnlocks(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.mutex(lock.Config{Label: "the nightly job"})
		hold := acquire(t, m)
		letHoldsAge()
		waiting := lockInBackground(t.Context(), w.mutex(lock.Config{}))
		done := w.revoke(lock.RevokeOptions{Reason: "rack 7 moves", Label: "ops"})
		<-hold.Context().Done()
		revoked, ok := errors.AsType[*lock.RevokedError](context.Cause(hold.Context()))
		if !ok || !errors.Is(revoked, lock.ErrRevoked) || revoked.Revocation.Reason != "rack 7 moves" ||
			revoked.Revocation.By.Label != "ops" {
			t.Fatalf("got cause %+v", context.Cause(hold.Context()))
		}
		if !strings.Contains(revoked.Error(), "rack 7 moves") {
			t.Errorf("the cause says %q, not why", revoked)
		}
		if _, err := m.TryLock(t.Context()); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("while the revoked holder still finishes: got %v, want lock.ErrHeld", err)
		}
		synctest.Wait()
		if len(waiting) > 0 || len(done) > 0 {
			t.Fatal("the lock passed on before it was unlocked")
		}
		line := w.line()
		if line[0].Owner.Label != "the nightly job" || line[0].Revoked == nil || line[1].Revoked != nil {
			t.Errorf("got %+v, want the first, and it alone, to be known still and revoked", line)
		}
		unlock(t, hold) // fails if another client had it meanwhile
		unlock(t, got(t, waiting))
		if r := <-done; r.err != nil || len(r.list) != 1 || r.list[0].Ending != lock.EndingReleased ||
			r.list[0].Holder.Path != line[0].Path {
			t.Errorf("got %+v, want one holder who has released the lock", r)
		}
	})
}

func TestHolderThatKeepsTheLockIsForcedAfterTheGraceAndNoSooner(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const grace = 30 * time.Second
		hold := acquire(t, w.mutex(lock.Config{}))
		letHoldsAge()
		waiting := lockInBackground(t.Context(), w.mutex(lock.Config{}))
		begin := time.Now()
		r := <-w.revoke(lock.RevokeOptions{Grace: grace})
		if !errors.Is(r.err, lock.ErrKept) || r.list[0].Ending != lock.EndingKept {
			t.Fatalf("without force: got %+v, want lock.ErrKept", r)
		}
		done := w.revoke(lock.RevokeOptions{Grace: grace, Force: true})
		next := got(t, waiting)
		if took := time.Since(begin); took < 2*grace || took > 2*grace+time.Second {
			t.Errorf("the next one had the lock after %v, want two graces of %v", took, grace)
		}
		if r := <-done; r.err != nil || r.list[0].Ending != lock.EndingForced {
			t.Errorf("got %+v, want one holder who was forced", r)
		}
		synctest.Wait() // until the holder has heard of it, which is no sooner than the next one
		if err := hold.Unlock(); !errors.Is(err, lock.ErrDeleted) {
			t.Errorf("Unlock after force: got %v, want lock.ErrDeleted", err)
		}
		if next.Token() <= hold.Token() {
			t.Errorf("token %d after %d", next.Token(), hold.Token())
		}
		unlock(t, next)
	})
}

// Curator's Revoker writes its word and nothing else, and Curator's holders look for that word and nothing else.
//
// Promise: 2
func TestRevocationSpeaksCuratorsWord(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := w.Session(t, 20*time.Second)
		hold := acquire(t, w.mutex(lock.Config{}))
		letHoldsAge()
		if _, err := sess.Set(t.Context(), hold.Path(), []byte(curatorsWord), -1); err != nil {
			t.Fatal(err)
		}
		<-hold.Context().Done()
		if cause := context.Cause(hold.Context()); !errors.Is(cause, lock.ErrRevoked) {
			t.Errorf("revoked as Curator does: got %v, want lock.ErrRevoked", cause)
		}
		if err := hold.UnlockWait(t.Context()); err != nil {
			t.Fatal(err)
		}
		theirs, err := sess.Create(t.Context(), path+"/_c_0f8fad5b-d9cb-469f-a165-70867728950e-lock-", nil,
			zk.EphemeralSequential)
		if err != nil {
			t.Fatal(err)
		}
		done := w.revoke(lock.RevokeOptions{Reason: "Curator would not read it"})
		synctest.Wait()
		if data, _, err := sess.Get(t.Context(), theirs.Path); err != nil || string(data) != curatorsWord {
			t.Errorf("got %q, %v in a revocable Curator's node, want %q", data, err, curatorsWord)
		}
		if err := sess.Delete(t.Context(), theirs.Path, -1); err != nil {
			t.Fatal(err)
		}
		if r := <-done; r.err != nil || r.list[0].Ending != lock.EndingReleased {
			t.Errorf("got %+v", r)
		}
	})
}

// Promise: 2
func TestHolderMayRefuseARevocationOrFinishFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var asked atomic.Int32
		finish := make(chan struct{})
		hold := acquire(t, w.mutex(lock.Config{OnRevoke: func(ctx context.Context, r lock.Revocation) bool {
			if asked.Add(1) == 1 {
				return false
			}
			select {
			case <-finish:
			case <-ctx.Done():
			}
			return true
		}}))
		letHoldsAge()
		for i := range 2 {
			if r := <-w.revoke(lock.RevokeOptions{Grace: time.Minute}); !errors.Is(r.err, lock.ErrKept) {
				t.Fatalf("revocation %d: got %+v, want lock.ErrKept", i, r)
			}
			if err := hold.Context().Err(); err != nil {
				t.Fatalf("revocation %d ended the hold: %v", i, context.Cause(hold.Context()))
			}
		}
		if n := asked.Load(); n != 2 {
			t.Errorf("the holder was asked %d times for two revocations", n)
		}
		close(finish)
		<-hold.Context().Done()
		unlock(t, hold)
	})
}

// A holder that unlocks after a revocation had the lock until then: nothing was lost. With force, it was lost.
func TestHooksTellARevokedHoldThatWasUnlockedAsReleased(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		d := new(diary)
		m := w.mutex(lock.Config{Hooks: d.hooks()})
		hold := acquire(t, m)
		letHoldsAge()
		w.revoke(lock.RevokeOptions{})
		<-hold.Context().Done()
		d.want(t, "acquired")
		unlock(t, hold)
		d.want(t, "released")
		if e := d.events[1]; !errors.Is(e.Err, lock.ErrRevoked) {
			t.Errorf("released: got error %v, want lock.ErrRevoked", e.Err)
		}
		hold = acquire(t, m)
		if r := <-w.revoke(lock.RevokeOptions{Force: true}); r.err != nil {
			t.Fatal(r.err)
		}
		d.want(t, "acquired", "lost")
		if err := hold.Unlock(); !errors.Is(err, lock.ErrDeleted) {
			t.Errorf("got %v, want lock.ErrDeleted", err)
		}
		d.want(t)
	})
}

func TestRevokedProcessGoesToTheEndOfTheLine(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.mutex(lock.Config{Retain: time.Hour})
		hold := acquire(t, m)
		letHoldsAge()
		here := lockers(t, m, 3)
		there := lockInBackground(t.Context(), w.mutex(lock.Config{}))
		synctest.Wait()
		done := w.revoke(lock.RevokeOptions{})
		<-hold.Context().Done()
		unlock(t, hold)
		other := got(t, there) // before the goroutines that share the revoked node
		none(t, "behind another process", here...)
		unlock(t, other)
		for _, c := range here {
			hold = got(t, c)
			unlock(t, hold)
		}
		if r := <-done; r.err != nil {
			t.Fatal(r.err)
		}
		// A lock that is only retained is released at once.
		time.Sleep(time.Minute)
		if r := <-w.revoke(lock.RevokeOptions{}); r.err != nil || len(r.list) != 1 ||
			r.list[0].Ending != lock.EndingReleased {
			t.Errorf("a kept lock: got %+v", r)
		}
	})
}

func TestSessionLossAfterARevocationRestartsTheLocalLine(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.mutex(lock.Config{})
		hold := acquire(t, m)
		letHoldsAge()
		here := lockers(t, m, 2)
		w.revoke(lock.RevokeOptions{})
		<-hold.Context().Done()
		w.ExpireSession(hold.Session().ID()) // it is never unlocked
		for _, c := range here {
			unlock(t, got(t, c))
		}
	})
}

func TestAllWhoHoldAreRevokedOrThoseThatWereChosen(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var readers []*lock.Hold
		for range 3 {
			readers = append(readers, locked(t, w.rw(lock.RWConfig{}).RLock))
		}
		letHoldsAge()
		writer := waits(t.Context(), w.rw(lock.RWConfig{}).Lock)
		synctest.Wait()
		chosen := readers[1]
		isChosen := func(c lock.Contender) bool { return c.Session == chosen.Session().ID() }
		done := w.revoke(lock.RevokeOptions{Holder: isChosen})
		<-chosen.Context().Done()
		unlock(t, chosen)
		if r := <-done; r.err != nil || len(r.list) != 1 {
			t.Fatalf("got %+v, want the chosen one", r)
		}
		if readers[0].Context().Err() != nil || readers[2].Context().Err() != nil {
			t.Fatal("a reader that was not chosen was revoked")
		}
		done = w.revoke(lock.RevokeOptions{})
		<-readers[0].Context().Done()
		<-readers[2].Context().Done()
		unlock(t, readers[0])
		unlock(t, readers[2])
		if r := <-done; r.err != nil || len(r.list) != 2 {
			t.Fatalf("got %+v, want the two other readers and not the writer that waited", r)
		}
		hold := got(t, writer)
		if hold.Context().Err() != nil {
			t.Error("the writer behind was revoked")
		}
		letHoldsAge()
		done = w.revoke(lock.RevokeOptions{})
		<-hold.Context().Done()
		unlock(t, hold)
		if r := <-done; r.err != nil {
			t.Fatal(r.err)
		}
	})
}

func TestRevocationOfOnePathEndsASet(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hold := locked(t, w.set(pathA, path).Lock)
		letHoldsAge()
		done := w.revoke(lock.RevokeOptions{Reason: "one of them"})
		<-hold.Context().Done()
		if cause := context.Cause(hold.Context()); !errors.Is(cause, lock.ErrRevoked) {
			t.Errorf("got %v, want lock.ErrRevoked", cause)
		}
		unlock(t, hold)
		if r := <-done; r.err != nil {
			t.Fatal(r.err)
		}
		w.empty(pathA, path)
	})
}

func TestRequestThatComesWhileOneStillWaitsIsHeardByTheHolder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := w.Session(t, 20*time.Second)
		first, second := acquire(t, w.mutex(lock.Config{})), lockInBackground(t.Context(), w.mutex(lock.Config{}))
		synctest.Wait()
		if _, err := sess.Set(t.Context(), w.line()[1].Path, []byte(curatorsWord), -1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		unlock(t, first)
		hold := got(t, second)
		<-hold.Context().Done()
		unlock(t, hold)
	})
}

func TestNobodyToRevokeIsNoError(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if r := <-w.revoke(lock.RevokeOptions{Force: true, Record: true}); r.err != nil || r.list != nil {
			t.Errorf("got %+v", r)
		}
		client := w.Client(t, 20*time.Second)
		for _, opts := range []lock.RevokeOptions{{Grace: -1}, {Reason: strings.Repeat("x", 1025)}, {Reason: "\xff"}} {
			if _, err := lock.Revoke(t.Context(), client, path, opts); err == nil {
				t.Errorf("Revoke(%+v): got no error", opts)
			}
		}
		if _, err := lock.Revoke(t.Context(), client, "locks", lock.RevokeOptions{}); err == nil {
			t.Error("a path that is none: got no error")
		}
	})
}

func TestRevocationsAreRecordedBesideThePath(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, 20*time.Second)
		if list, err := lock.Revocations(t.Context(), client, path); err != nil || len(list) != 0 {
			t.Fatalf("before: got %+v, %v", list, err)
		}
		for i := range 40 {
			hold := acquire(t, w.mutex(lock.Config{Label: "job"}))
			done := w.revoke(lock.RevokeOptions{Record: true, Force: true, Grace: time.Second, Reason: "drill"})
			if i == 0 {
				synctest.Wait() // asked, and in its grace
				list, err := lock.Revocations(t.Context(), client, path)
				if err != nil || len(list) != 1 || list[0].Over {
					t.Errorf("in the grace: got %+v, %v", list, err)
				}
			}
			if r := <-done; r.err != nil {
				t.Fatal(r.err)
			}
			_ = hold.Unlock() // was deleted
		}
		list, err := lock.Revocations(t.Context(), client, path)
		if err != nil || len(list) != 32 {
			t.Fatalf("got %d records, %v, want the last 32", len(list), err)
		}
		for _, r := range list {
			if !r.Over || !r.Force || r.Request.Reason != "drill" || len(r.Holders) != 1 ||
				r.Holders[0].Ending != lock.EndingForced || r.Holders[0].Owner.Label != "job" {
				t.Fatalf("got %+v", r)
			}
		}
	})
}

func TestRecordOfARevocationHasTheACLThatIsWanted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := w.Session(t, 20*time.Second)
		wanted := []zk.ACL{{Perms: zk.PermRead | zk.PermWrite, ID: zk.ID{Scheme: "world", ID: "anyone"}}}
		for _, acl := range [][]zk.ACL{wanted, nil} {
			hold := acquire(t, w.mutex(lock.Config{}))
			r := <-w.revoke(lock.RevokeOptions{Record: true, ACL: acl, Force: true, Grace: time.Second})
			if r.err != nil {
				t.Fatal(r.err)
			}
			_ = hold.Unlock() // was deleted
			if acl == nil {
				acl = zk.OpenACL()
			}
			got, _, err := sess.GetACL(t.Context(), lock.RecordsPath(path))
			if err != nil || !slices.Equal(got, acl) {
				t.Errorf("got %+v, %v, want %+v", got, err, acl)
			}
			if err := sess.Delete(t.Context(), lock.RecordsPath(path), -1); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Every request of a forced revocation is hit by every fault in turn. The holder is revoked once, and the record has it
// once.
func TestRevocationSurvivesLostReplies(t *testing.T) {
	t.Parallel()
	for _, fault := range []zktest.Fault{zktest.DropReply, zktest.Refuse, zktest.CutBefore, zktest.CutAfter} {
		for nth := 1; nth <= 12; nth++ {
			t.Run("", func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					hold := acquire(t, w.mutex(lock.Config{}))
					letHoldsAge()
					client := w.Client(t, 20*time.Second)
					_ = session(t, client)
					w.Control(func(r zktest.Request) zktest.Fault {
						if r.Seq == nth {
							return fault
						}
						return zktest.Pass
					})
					list, err := lock.Revoke(t.Context(), client, path,
						lock.RevokeOptions{Force: true, Record: true, Grace: time.Second})
					w.Control(nil)
					if err != nil || len(list) != 1 {
						t.Fatalf("got %+v, %v", list, err)
					}
					if line := w.line(); len(line) != 0 {
						t.Errorf("still there: %+v", line)
					}
					records, err := lock.Revocations(t.Context(), client, path)
					if err != nil || len(records) != 1 || !records[0].Over {
						t.Errorf("got %+v, %v", records, err)
					}
					if !errors.Is(context.Cause(hold.Context()), lock.ErrRevoked) {
						t.Errorf("got cause %v", context.Cause(hold.Context()))
					}
				})
			})
		}
	}
}

// A holder with two nodes loses both to force, also if another client has deleted one of them before.
//
// Promise: 2
func TestForceTakesBothNodesOfAContenderOrTheOneThatIsLeft(t *testing.T) {
	t.Parallel()
	for _, missing := range []string{"none", "-lock-", "__lock__"} {
		t.Run(missing, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				hold := acquire(t, w.mutex(lock.Config{Layout: lock.Both}))
				letHoldsAge()
				w.HalfOpen(hold.Session().ID())
				done := w.revoke(lock.RevokeOptions{Force: true, Grace: 3 * time.Second})
				time.Sleep(time.Second)
				if missing != "none" {
					w.deleteOne(t, missing, 0)
				}
				if r := <-done; r.err != nil || len(r.list) != 1 || r.list[0].Ending != lock.EndingForced {
					t.Errorf("got %+v, want one holder who was forced", r)
				}
				w.empty(path)
			})
		})
	}
}

// A node goes between force's look and its deletion.
func TestForceGoesOnWhenANodeGoesMeanwhile(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hold := acquire(t, w.mutex(lock.Config{Layout: lock.Both}))
		letHoldsAge()
		w.HalfOpen(hold.Session().ID())
		done := w.revoke(lock.RevokeOptions{Force: true, Grace: 3 * time.Second})
		time.Sleep(time.Second)
		stopped, proceed := context.WithCancel(t.Context())
		defer proceed()
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpMulti && len(r.Parts) == 2 {
				return zktest.Until(stopped)
			}
			return zktest.Pass
		})
		time.Sleep(3 * time.Second)
		w.deleteOne(t, "__lock__", 0)
		proceed()
		if r := <-done; r.err != nil || r.list[0].Ending != lock.EndingForced {
			t.Errorf("got %+v, want one holder who was forced", r)
		}
		w.empty(path)
	})
}

// All nodes of a simple lock have one name: who comes next must not be taken for the one who was asked.
//
// Promise: 2
func TestForceLeavesTheNextHolderOfASimpleLockAlone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hold := locked(t, w.simple().Lock)
		client := w.Client(t, 20*time.Second)
		next, err := lock.NewSimple(client, path, lock.SimpleConfig{})
		if err != nil {
			t.Fatal(err)
		}
		waiting := waits(t.Context(), next.Lock)
		letHoldsAge()
		done := w.revoke(lock.RevokeOptions{Force: true, Grace: 5 * time.Second})
		<-hold.Context().Done()
		own, theirs := hold.Session().ID(), session(t, client).ID()
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpGetData && r.Session != own && r.Session != theirs {
				return zktest.Delay(time.Second) // the revoker lists the line when the next contender is in
			}
			return zktest.Pass
		})
		synctest.Wait()
		unlock(t, hold)
		second := got(t, waiting)
		time.Sleep(time.Minute)
		if r := <-done; r.err != nil || len(r.list) != 1 || r.list[0].Ending != lock.EndingReleased {
			t.Errorf("got %+v, want one holder who has released the lock", r)
		}
		if err := second.Context().Err(); err != nil {
			t.Errorf("the next one has lost its lock: %v", context.Cause(second.Context()))
		}
		unlock(t, second)
	})
}

// A node's data says whose node it is. A revocation does not overwrite it where no holder would read the request, and
// elsewhere it keeps the former data in the request.
//
// Promise: 9
func TestRevocationLosesNobodysName(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := w.Session(t, 20*time.Second)
		for _, c := range []struct{ name, after string }{
			{"0f8fad5bd9cb469fa16570867728950e__lock__", "who I am"},
			{"1f8fad5bd9cb469fa16570867728950e__rlock__", "who I am"},
			{guid + "-__READ__", "who I am"},
			{guid + "-__WRIT__", "who I am"},
			{guid + "-latch-", "who I am"},
			{guid + "-lock-", curatorsWord}, // may be that of an InterProcessMutex that is revocable
		} {
			node := w.foreign(sess, c.name, zk.EphemeralSequential)
			if _, err := sess.Set(t.Context(), node, []byte("who I am"), -1); err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"who I am", c.after} { // the second time it may have been written over
				r := <-w.revoke(lock.RevokeOptions{Grace: time.Second, Record: true})
				if !errors.Is(r.err, lock.ErrKept) || len(r.list) != 1 || string(r.list[0].Holder.Data) != want {
					t.Fatalf("%s: got %+v, want ErrKept of %q", c.name, r, want)
				}
			}
			if data, _, err := sess.Get(t.Context(), node); err != nil || string(data) != c.after {
				t.Errorf("%s: got %q, %v, want %q", c.name, data, err, c.after)
			}
			records, err := lock.Revocations(t.Context(), w.Client(t, 20*time.Second), path)
			if err != nil {
				t.Fatal(err)
			}
			if got := records[len(records)-1].Holders[0].Data; got != "who I am" {
				t.Errorf("%s: it is recorded as %q", c.name, got)
			}
			if err := sess.Delete(t.Context(), node, -1); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestForceThatIsNotAllowedForcesNobody(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := w.Session(t, 20*time.Second)
		if _, err := sess.Create(t.Context(), "/locks", nil, zk.Persistent); err != nil {
			t.Fatal(err)
		}
		noDelete := []zk.ACL{{Perms: zk.PermAll &^ zk.PermDelete, ID: zk.ID{Scheme: "world", ID: "anyone"}}}
		if _, err := sess.CreateNode(t.Context(), zk.Node{Path: path, ACL: noDelete}); err != nil {
			t.Fatal(err)
		}
		acquire(t, w.mutex(lock.Config{}))
		r := <-w.revoke(lock.RevokeOptions{Force: true, Grace: time.Second, Record: true})
		if !errors.Is(r.err, zk.NoAuth) || len(r.list) != 1 || r.list[0].Ending != lock.EndingKept {
			t.Errorf("got %+v, want zk.NoAuth, and a holder who has kept the lock", r)
		}
		records, err := lock.Revocations(t.Context(), w.Client(t, 20*time.Second), path)
		if err != nil || len(records) != 1 || !records[0].Over || records[0].Holders[0].Ending != lock.EndingKept {
			t.Errorf("recorded is %+v, %v", records, err)
		}
	})
}

func TestRevocationWhoseCallerLeavesIsRecordedAsOver(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		acquire(t, w.mutex(lock.Config{}))
		client := w.Client(t, 20*time.Second)
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		_, err := lock.Revoke(ctx, client, path, lock.RevokeOptions{Record: true})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v, want the context's end", err)
		}
		records, err := lock.Revocations(t.Context(), client, path)
		if err != nil || len(records) != 1 || !records[0].Over || records[0].Holders[0].Ending != lock.EndingKept {
			t.Errorf("recorded is %+v, %v", records, err)
		}
	})
}

// Two revoke at the same time, and neither has seen a record of the other's.
func TestRevocationsThatBeginTogetherAreBothRecorded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hold := acquire(t, w.mutex(lock.Config{OnRevoke: func(context.Context, lock.Revocation) bool { return false }}))
		stopped, proceed := context.WithCancel(t.Context())
		defer proceed()
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpCreate && r.Path == lock.RecordsPath(path) && r.Nth == 1 {
				return zktest.Until(stopped)
			}
			return zktest.Pass
		})
		first := w.revoke(lock.RevokeOptions{Record: true, Grace: time.Second, Reason: "first"})
		synctest.Wait()
		second := <-w.revoke(lock.RevokeOptions{Record: true, Grace: time.Second, Reason: "second"})
		if !errors.Is(second.err, lock.ErrKept) {
			t.Errorf("the second: got %+v, want lock.ErrKept", second)
		}
		proceed()
		if r := <-first; !errors.Is(r.err, lock.ErrKept) {
			t.Errorf("the first: got %+v, want lock.ErrKept", r)
		}
		records, err := lock.Revocations(t.Context(), w.Client(t, 20*time.Second), path)
		var reasons []string
		for _, r := range records {
			reasons = append(reasons, r.Request.Reason)
		}
		if err != nil || !slices.Equal(reasons, []string{"second", "first"}) {
			t.Errorf("recorded is %q, %v", reasons, err)
		}
		unlock(t, hold)
	})
}

// Names come again when the numbers of a directory begin anew.
func TestRecordTellsHoldersOfOneNameApart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := w.Session(t, 20*time.Second)
		node := w.foreign(sess, guid+"-lock-0000000000", zk.Ephemeral)
		for _, word := range []string{"who I am", curatorsWord} { // the second was asked before, without a record
			if _, err := sess.Set(t.Context(), node, []byte(word), -1); err != nil {
				t.Fatal(err)
			}
			if r := <-w.revoke(lock.RevokeOptions{Grace: time.Second, Record: true}); !errors.Is(r.err, lock.ErrKept) {
				t.Fatalf("got %+v, want lock.ErrKept", r)
			}
			records, err := lock.Revocations(t.Context(), w.Client(t, 20*time.Second), path)
			if err != nil {
				t.Fatal(err)
			}
			if got := records[len(records)-1].Holders[0].Data; got != word {
				t.Errorf("it is recorded as %q, want %q", got, word)
			}
			if err := sess.Delete(t.Context(), node, -1); err != nil {
				t.Fatal(err)
			}
			w.foreign(sess, guid+"-lock-0000000000", zk.Ephemeral)
		}
	})
}

// Their program may look for the names of those ahead, or not, so they are asked only if they are chosen.
func TestContenderThatMayHoldIsRevokedIfItIsChosen(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := w.Session(t, 20*time.Second)
		w.foreign(sess, guid+"-lock-", zk.EphemeralSequential)
		may := w.foreign(sess, "0f8fad5bd9cb469fa16570867728950e__lock__", zk.EphemeralSequential)
		w.wantRoles("Curator and kazoo", "H?")
		r := <-w.revoke(lock.RevokeOptions{
			Grace: time.Second, Force: true, Holder: func(c lock.Contender) bool { return c.MayHold },
		})
		if r.err != nil || len(r.list) != 1 || r.list[0].Holder.Path != may || r.list[0].Ending != lock.EndingForced {
			t.Errorf("got %+v", r)
		}
		w.wantRoles("Curator is left", "H")
	})
}

func TestRecordsFitIntoANode(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := w.Session(t, 20*time.Second)
		w.foreign(sess, guid+"-__READ__", zk.EphemeralSequential)
		data := bytes.Repeat([]byte("x"), 256)
		b := sess.Batch()
		var last *zk.Future[zk.Created]
		for range 250 {
			last = b.Create(path+"/"+guid+"-__READ__", data, zk.EphemeralSequential)
		}
		b.Send()
		if _, err := last.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, reason := range []string{"first", "second", "third"} {
			r := <-w.revoke(lock.RevokeOptions{Grace: time.Second, Reason: reason, Record: true})
			if !errors.Is(r.err, lock.ErrKept) || len(r.list) != 251 {
				t.Fatalf("%v, and %d holders", r.err, len(r.list))
			}
		}
		records, err := lock.Revocations(t.Context(), w.Client(t, 20*time.Second), path)
		if err != nil || len(records) != 2 || records[1].Request.Reason != "third" || len(records[1].Holders) != 251 {
			t.Errorf("got %d records, %v, want the last two", len(records), err)
		}
	})
}
