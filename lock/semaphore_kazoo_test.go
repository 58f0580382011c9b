package lock_test

import (
	"context"
	"errors"
	"fmt"
	stdpath "path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// kazooLine is where kazoo's Semaphore has its line.
const kazooLine = path + "-__lock__"

// kazoos is n of limit permits in kazoo's layout.
func (w *world) kazoos(limit, n int) permits {
	w.t.Helper()
	cfg := lock.SemaphoreConfig{Layout: lock.Kazoo}
	return permits{semaphore(w.t, w.Client(w.t, 20*time.Second), lock.StoredLimit(limit), cfg), n}
}

// kazooLease makes the node of a kazoo Semaphore that has a lease, and returns its session and its path.
func (w *world) kazooLease() (*zk.Session, string) {
	w.t.Helper()
	sess := w.Session(w.t, 20*time.Second)
	node := path + "/0f8fad5bd9cb469fa16570867728950e"
	if _, err := sess.Create(w.t.Context(), node, []byte("kazoo-1"), zk.Ephemeral); err != nil {
		w.t.Fatal(err)
	}
	return sess, node
}

// Promise: 1, 5
func TestKazoosPermitsAreGivenOutUpToTheLimitAndInOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		two, one := locked(t, w.kazoos(4, 2).Lock), locked(t, w.kazoos(4, 1).Lock)
		data, stat, err := w.Session(t, 20*time.Second).Get(t.Context(), path)
		if err != nil || string(data) != "4" || stat.EphemeralOwner != 0 || stat.NumChildren != 3 {
			t.Errorf("got %q, %+v, %v at the path, want a persistent node with 4 and three children", data, stat, err)
		}
		for _, node := range w.nodes(path) {
			if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(node) {
				t.Errorf("kazoo would not name a lease %s", node)
			}
		}
		large, small := waits(t.Context(), w.kazoos(4, 3).Lock), waits(t.Context(), w.kazoos(4, 1).Lock)
		none(t, "one permit is left: too few for the first, and the second came later", large, small)
		unlock(t, one)
		none(t, "two are left", large, small)
		unlock(t, two)
		three := got(t, large)
		last := got(t, small)
		if one.Token() <= two.Token() || three.Token() <= one.Token() || last.Token() <= three.Token() {
			t.Errorf("tokens do not grow: %d, %d, %d, %d", two.Token(), one.Token(), three.Token(), last.Token())
		}
		if _, err := w.kazoos(4, 1).TryLock(t.Context()); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("all are taken: got %v, want lock.ErrHeld", err)
		}
		if len(three.Guards()) != 3 {
			t.Errorf("got %d guards for three permits", len(three.Guards()))
		}
		unlock(t, three)
		unlock(t, last)
		w.empty(path, kazooLine)
	})
}

// Kazoo counts every child of the path as a lease, and has the inner lock while it waits for one.
//
// Promise: 1
func TestKazoosLeasesAndItsWaitersCount(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		unlock(t, locked(t, w.kazoos(1, 1).Lock)) // makes the path, and stores the limit
		sess, lease := w.kazooLease()
		behindLease := waits(t.Context(), w.kazoos(1, 1).Lock)
		none(t, "kazoo has the lease", behindLease)
		if err := sess.Delete(t.Context(), lease, -1); err != nil {
			t.Fatal(err)
		}
		unlock(t, got(t, behindLease))

		const name = kazooLine + "/0f8fad5bd9cb469fa16570867728950e__lock__"
		inner, err := sess.Create(t.Context(), name, []byte("b'kazoo-1'"), zk.EphemeralSequential)
		if err != nil {
			t.Fatal(err)
		}
		behindWaiter := waits(t.Context(), w.kazoos(1, 1).Lock)
		none(t, "kazoo is about to take the lease", behindWaiter)
		if _, err := w.kazoos(1, 1).TryLock(t.Context()); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("got %v, want lock.ErrHeld", err)
		}
		_, lease = w.kazooLease()
		if err := sess.Delete(t.Context(), inner.Path, -1); err != nil {
			t.Fatal(err)
		}
		none(t, "kazoo has the lease again", behindWaiter)
		if err := sess.Delete(t.Context(), lease, -1); err != nil {
			t.Fatal(err)
		}
		unlock(t, got(t, behindWaiter))
	})
}

// kazoo's Semaphore fails on a path that has null for its data, so the path is made with its limit.
//
// Promise: 1
func TestPathIsMadeWithItsLimit(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpSetData && r.Path == path {
				t.Errorf("the path was made without its limit: %+v", r)
			}
			return zktest.Pass
		})
		unlock(t, locked(t, w.kazoos(2, 1).Lock))
	})
}

// A path without a limit may be a container that another recipe has left: it is made anew, once, though replies are
// lost. One with a list of its own, or below a node of others, was made by hand, and only set.
//
// Promise: 1
func TestLimitIsStoredInANodeThatStays(t *testing.T) {
	t.Parallel()
	without := func(perms zk.Perms) []zk.ACL {
		return []zk.ACL{{Perms: zk.PermAll &^ perms, ID: zk.OpenACL()[0].ID}}
	}
	for name, row := range map[string]struct {
		node   zk.Node
		parent []zk.ACL
	}{
		"container":    {node: zk.Node{Path: path, Mode: zk.Container}},
		"by hand":      {node: zk.Node{Path: path, ACL: without(zk.PermAdmin)}},
		"below others": {node: zk.Node{Path: path}, parent: without(zk.PermDelete)},
	} {
		node := row.node
		for fault, f := range map[string]zktest.Fault{
			"none": zktest.Pass, "lost reply": zktest.DropReply, "cut": zktest.CutBefore,
			"refused": zktest.Answer(zk.ThrottledOp),
		} {
			t.Run(name+" "+fault, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					sess := w.Session(t, 20*time.Second)
					if _, err := sess.CreateAll(t.Context(), node, zk.Parents{}); err != nil {
						t.Fatal(err)
					}
					if row.parent != nil {
						if _, err := sess.SetACL(t.Context(), stdpath.Dir(path), row.parent, -1); err != nil {
							t.Fatal(err)
						}
					}
					old, _, _ := sess.Exists(t.Context(), path)
					hit := false
					w.Control(func(r zktest.Request) zktest.Fault {
						stores := r.Op == zktest.OpMulti && r.Parts[0].Path == path || r.Op == zktest.OpSetData
						if r.Session == sess.ID() || hit || !stores {
							return zktest.Pass
						}
						hit = true
						return f
					})
					unlock(t, locked(t, w.kazoos(2, 1).Lock))
					data, stat, err := sess.Get(t.Context(), path)
					if err != nil || string(data) != "2" {
						t.Errorf("got %q, %v, want the limit", data, err)
					}
					acl, _, err := sess.GetACL(t.Context(), path)
					if err != nil || node.ACL != nil && !slices.Equal(acl, node.ACL) {
						t.Errorf("got %v, %v, want the list as before", acl, err)
					}
					if anew := stat.Czxid != old.Czxid; !hit || anew != (name == "container") {
						t.Errorf("the node was made anew: %t; a request was met: %t", anew, hit)
					}
				})
			})
		}
	}
}

// Promise: 1
func TestKazoosSemaphoreHasOneLimit(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hold := locked(t, w.kazoos(2, 1).Lock)
		for _, take := range []takeFunc{w.kazoos(3, 1).Lock, w.kazoos(3, 1).TryLock} {
			_, err := take(t.Context())
			if !errors.Is(err, lock.ErrLimit) || !strings.Contains(err.Error(), "stored 2, given 3") {
				t.Errorf("got %v, want lock.ErrLimit with both numbers", err)
			}
		}
		// A waiter learns of a change, too.
		waiting := waits(t.Context(), w.kazoos(2, 2).Lock)
		none(t, "one is left", waiting)
		if _, err := w.Session(t, 20*time.Second).Set(t.Context(), path, []byte("many"), -1); err != nil {
			t.Fatal(err)
		}
		if r := <-waiting; !errors.Is(r.err, lock.ErrLimit) {
			t.Errorf("got %v, want lock.ErrLimit", r.err)
		}
		unlock(t, hold)
		client := w.Client(t, 20*time.Second)
		for name, c := range map[string]struct {
			limit  lock.Limit
			layout lock.Layout
		}{
			"agreed":      {lock.AgreedLimit(2), lock.Kazoo},
			"watched":     {lock.WatchedLimit(limitPath), lock.Kazoo},
			"two layouts": {lock.StoredLimit(2), lock.Both},
		} {
			if _, err := lock.NewSemaphore(client, path, c.limit, lock.SemaphoreConfig{Layout: c.layout}); err == nil {
				t.Errorf("%s: was accepted", name)
			}
		}
	})
}

// Every request of taking permits and giving them back is hit in turn, in each way.
func TestLostRepliesLeaveNoLeaseOfKazoos(t *testing.T) {
	t.Parallel()
	faults := map[string]zktest.Fault{
		"reply lost": zktest.DropReply, "request lost": zktest.Refuse, "cut before": zktest.CutBefore,
		"cut after": zktest.CutAfter,
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				reached := true
				for step := range soak.Steps(name, faults) {
					if !reached {
						break
					}
					a, b := w.kazoos(3, 2), w.kazoos(3, 2)
					over := w.hit(step, fault)
					for range 2 {
						hold := locked(t, a.Lock)
						next := waits(t.Context(), b.Lock)
						none(t, fmt.Sprintf("step %d: one of three permits is left", step), next)
						unlock(t, hold)
						unlock(t, got(t, next))
					}
					reached = over()
					time.Sleep(time.Second)
					w.empty(path, kazooLine)
					unlock(t, locked(t, w.kazoos(3, 3).TryLock))
				}
			})
		})
	}
}

func TestCallerThatLeavesWhileKazoosPermitsAreTakenLeavesNoLease(t *testing.T) {
	t.Parallel()
	leaveAtEachStep(t, func(w *world) locker { return w.kazoos(2, 2) },
		func(t *testing.T, w *world, s locker) {
			t.Helper()
			w.empty(path, kazooLine)
			unlock(t, locked(t, s.TryLock))
		})
}

// A holder whose session falls silent knows before the next one is in.
//
// Promise: 2
func TestHolderOfKazoosPermitsIsToldBeforeTheNextIsIn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hold := locked(t, w.kazoos(1, 1).Lock)
		next := waits(t.Context(), w.kazoos(1, 1).Lock)
		w.HalfOpen(hold.Session().ID())
		<-hold.Context().Done()
		none(t, "the holder's session lasts a while yet", next)
		second := got(t, next)
		if second.Token() <= hold.Token() {
			t.Errorf("got token %d after %d", second.Token(), hold.Token())
		}
		unlock(t, second)
	})
}

// Many programs name their nodes so.
func TestNodeThatIsNotOfASessionIsNoPermit(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := w.Session(t, 20*time.Second)
		w.foreign(sess, "0f8fad5bd9cb469fa16570867728950e", zk.Persistent)
		list, err := lock.Inspect(t.Context(), w.Client(t, 20*time.Second), path)
		if err != nil || len(list) > 0 {
			t.Errorf("got %+v, %v, want none", list, err)
		}
	})
}

func TestInspectAndRevokeKnowKazoosPermits(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hold := locked(t, w.kazoos(3, 2).Lock)
		_, lease := w.kazooLease()
		waiting := waits(t.Context(), w.kazoos(3, 1).Lock)
		none(t, "all are taken", waiting)
		client := w.Client(t, 20*time.Second)
		list, err := lock.Inspect(t.Context(), client, path)
		if err != nil || len(list) != 4 {
			t.Fatalf("got %+v, %v, want three permits and a waiter", list, err)
		}
		for i, c := range list {
			if c.Kind != lock.Permit || c.Holder != (i < 3) || c.Known != (i != 2) || c.Group != 0 || c.MayHold {
				t.Errorf("%d: got %+v", i, c)
			}
		}
		if list[2].Path != lease || string(list[2].Data) != "kazoo-1" || list[0].Token != hold.Token() {
			t.Errorf("got %+v", list[:3])
		}
		if n, err := lock.InspectNumbers(t.Context(), client, path); err != nil || n.Path != kazooLine {
			t.Errorf("got numbers %+v, %v", n, err)
		}

		letHoldsAge()
		ended := w.revoke(lock.RevokeOptions{
			Grace: time.Minute, Force: true, Holder: func(c lock.Contender) bool { return c.Holder },
		})
		<-hold.Context().Done()
		if !errors.Is(context.Cause(hold.Context()), lock.ErrRevoked) {
			t.Errorf("got cause %v", context.Cause(hold.Context()))
		}
		unlock(t, hold)
		unlock(t, got(t, waiting))
		r := <-ended
		if r.err != nil || len(r.list) != 3 || r.list[2].Ending != lock.EndingForced {
			t.Errorf("got %+v", r)
		}
		data, _, err := w.Session(t, 20*time.Second).Get(t.Context(), path)
		if err != nil || string(data) != "3" {
			t.Errorf("the limit became %q, %v", data, err)
		}
		synctest.Wait()
		w.empty(path, kazooLine)
	})
}
