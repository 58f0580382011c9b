package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
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

var layouts = []lock.Layout{lock.Curator, lock.Kazoo, lock.Both}

const uuid = `_c_[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-`

func TestNodesAreNamedAsTheLayoutSays(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		take := func(layout lock.Layout, what string) (*lock.Hold, error) {
			m := w.rw(lock.RWConfig{Layout: layout})
			switch what {
			case "read":
				return m.RLock(t.Context())
			case "write":
				return m.Lock(t.Context())
			default:
				return w.mutex(lock.Config{Layout: layout}).Lock(t.Context())
			}
		}
		for _, c := range []struct {
			layout lock.Layout
			what   string
			want   []string
		}{
			{lock.Curator, "mutex", []string{"lock-"}},
			{lock.Kazoo, "mutex", []string{"__lock__"}},
			{lock.Both, "mutex", []string{"__lock__", "lock-"}},
			{lock.Curator, "write", []string{"__WRIT__"}},
			{lock.Kazoo, "write", []string{"__lock__"}},
			{lock.Both, "write", []string{"__WRIT__", "__lock__"}},
			{lock.Curator, "read", []string{"__READ__"}},
			{lock.Kazoo, "read", []string{"__rlock__"}},
			{lock.Both, "read", []string{"__READ__", "__rlock__"}},
		} {
			hold, err := take(c.layout, c.what)
			if err != nil {
				t.Fatal(err)
			}
			got := w.nodes(path)
			slices.SortFunc(got, func(a, b string) int { return strings.Compare(a[len("_c_")+37:], b[len("_c_")+37:]) })
			if len(got) != len(c.want) {
				t.Fatalf("%v %s: got nodes %v, want %v", c.layout, c.what, got, c.want)
			}
			for i, name := range got {
				if !regexp.MustCompile("^" + uuid + c.want[i] + `\d{10}$`).MatchString(name) {
					t.Errorf("%v %s: got node %s, want one of %s", c.layout, c.what, name, c.want[i])
				}
			}
			unlock(t, hold)
			synctest.Wait()
			if left := w.nodes(path); len(left) != 0 {
				t.Fatalf("%v %s: left behind: %v", c.layout, c.what, left)
			}
		}
	})
}

func TestLayoutThatIsNoneIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, layout := range []lock.Layout{-1, lock.Both + 1} {
			if _, err := lock.NewMutex(w.Client(t, 20*time.Second), path, lock.Config{Layout: layout}); err == nil {
				t.Errorf("%v: no error", layout)
			}
		}
	})
}

// Whatever the layouts of two contenders of ours, they exclude each other, and the one that came first is served first.
//
// Promise: 1
func TestContendersOfAllLayoutsStandInOneLine(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, retain := range []time.Duration{0, time.Hour} {
			held := acquire(t, w.mutex(lock.Config{Layout: lock.Both}))
			var waiting []<-chan result
			for i := range 9 {
				waiting = append(waiting,
					lockInBackground(t.Context(), w.mutex(lock.Config{Layout: layouts[i%3], Retain: retain})))
				synctest.Wait()
			}
			for i, c := range waiting {
				none(t, fmt.Sprintf("waiter %d", i), waiting[i:]...)
				unlock(t, held)
				held = got(t, c)
			}
			unlock(t, held)
			synctest.Wait()
		}
	})
}

// A contender needs its second node: if another client deletes it, the programs that know no other node come in.
func TestHoldEndsWhenItsSecondNodeIsDeletedByOthers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.mutex(lock.Config{Layout: lock.Both})
		hold := acquire(t, m)
		time.Sleep(time.Second) // the hold has lasted long enough to watch its nodes
		w.deleteOne(t, "__lock__", 0)
		<-hold.Context().Done()
		if cause := context.Cause(hold.Context()); !errors.Is(cause, lock.ErrDeleted) {
			t.Errorf("got cause %v, want lock.ErrDeleted", cause)
		}
		unlockLost(t, hold)
		unlock(t, acquire(t, m))
	})
}

// Who knows only the second node comes in when that is gone: a write that checks both nodes is refused then.
//
// Promise: 3
func TestGuardsCheckBothNodesOfAContender(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		rw, err := lock.NewRWMutex(w.Client(t, 20*time.Second), path, lock.RWConfig{Layout: lock.Both})
		if err != nil {
			t.Fatal(err)
		}
		mutex := w.mutex(lock.Config{Layout: lock.Both})
		for _, take := range []func(context.Context) (*lock.Hold, error){mutex.Lock, rw.Lock, rw.RLock} {
			hold := locked(t, take)
			if len(hold.Guards()) != 2 {
				t.Fatalf("got %d guards, want 2", len(hold.Guards()))
			}
			if _, err := hold.Session().Multi(t.Context(), hold.Guards()...); err != nil {
				t.Errorf("while both are there: %v", err)
			}
			names := w.nodes(path)
			for _, name := range names {
				if path+"/"+name != hold.Path() {
					other := session(t, w.Client(t, 20*time.Second))
					if err := other.Delete(t.Context(), path+"/"+name, -1); err != nil {
						t.Fatal(err)
					}
				}
			}
			if _, err := hold.Session().Multi(t.Context(), hold.Guards()...); !errors.Is(err, zk.NoNode) {
				t.Errorf("without the second node: got %v, want zk.NoNode", err)
			}
			_ = hold.UnlockWait(t.Context())
		}
	})
}

func TestWaiterWhoseSecondNodeIsDeletedByOthersIsNotLetIn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hold := acquire(t, w.mutex(lock.Config{}))
		waiting := lockInBackground(t.Context(), w.mutex(lock.Config{Layout: lock.Both}))
		synctest.Wait()
		behind := lockInBackground(t.Context(), w.mutex(lock.Config{}))
		synctest.Wait()
		w.deleteOne(t, "__lock__", 0)
		synctest.Wait()
		unlock(t, hold)
		next := got(t, behind)
		none(t, "the one that lost its node", waiting)
		unlock(t, next)
		unlock(t, got(t, waiting))
	})
}

// deleteOne deletes the node number i of those whose names contain what.
func (w *world) deleteOne(t *testing.T, what string, i int) {
	t.Helper()
	names := slices.DeleteFunc(w.nodes(path), func(name string) bool { return !strings.Contains(name, what) })
	if err := session(t, w.Client(t, 20*time.Second)).Delete(t.Context(), path+"/"+names[i], -1); err != nil {
		t.Fatal(err)
	}
}

func unlockLost(t *testing.T, h *lock.Hold) {
	t.Helper()
	if err := h.Unlock(); !errors.Is(err, lock.ErrDeleted) {
		t.Errorf("unlock: got %v, want lock.ErrDeleted", err)
	}
}

// Every request of what a lock with two nodes does is hit in turn, in each way: never one node without the other for
// long, never an orphan.
//
// Promise: 4
func TestLostRepliesMakeNoOrphanOfTwoNodes(t *testing.T) {
	t.Parallel()
	faults := map[string]zktest.Fault{
		"reply lost": zktest.DropReply, "request lost": zktest.Refuse, "cut before": zktest.CutBefore,
		"cut after": zktest.CutAfter,
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				for step := range soak.Steps(name, faults) {
					m, rw := w.mutex(lock.Config{Layout: lock.Both}), w.rw(lock.RWConfig{Layout: lock.Both})
					session(t, w.Client(t, 20*time.Second))
					reached := false
					w.Control(func(r zktest.Request) zktest.Fault {
						if r.Seq != step {
							return zktest.Pass
						}
						reached = true
						return fault
					})
					for range 3 {
						hold := acquire(t, m)
						none(t, fmt.Sprintf("step %d: beside the holder", step), w.brief(t, lock.Kazoo))
						unlock(t, hold)
					}
					time.Sleep(time.Second)
					hold := locked(t, rw.Lock)
					if err := rw.Downgrade(t.Context(), hold); err != nil {
						t.Fatalf("step %d: %v", step, err)
					}
					unlock(t, locked(t, w.rw(lock.RWConfig{Layout: lock.Kazoo}).RLock))
					time.Sleep(time.Second) // its session may have to come back to give it back
					if err := rw.Upgrade(t.Context(), hold); err != nil {
						t.Fatalf("step %d: %v", step, err)
					}
					unlock(t, hold)
					w.Control(nil)
					time.Sleep(time.Second)
					if left := w.nodes(path); len(left) != 0 {
						t.Fatalf("step %d: left behind: %v", step, left)
					}
					if !reached {
						return
					}
				}
			})
		})
	}
}

// brief locks a mutex of the layout in the background, and unlocks it at once.
func (w *world) brief(t *testing.T, layout lock.Layout) <-chan result {
	t.Helper()
	m := w.mutex(lock.Config{Layout: layout})
	return waits(t.Context(), func(ctx context.Context) (*lock.Hold, error) {
		h, err := m.Lock(ctx)
		if err == nil {
			err = h.Unlock()
		}
		return h, err
	})
}

func TestSetStandsInTheLinesOfItsLayout(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, 20*time.Second)
		s, err := lock.NewSet(client, []string{path, "/locks/other"}, lock.SetConfig{Layout: lock.Both})
		if err != nil {
			t.Fatal(err)
		}
		hold := locked(t, s.Lock)
		for _, dir := range []string{path, "/locks/other"} {
			if got := w.nodes(dir); len(got) != 2 {
				t.Errorf("%s: got %v, want two nodes", dir, got)
			}
		}
		waiting := w.brief(t, lock.Kazoo)
		synctest.Wait()
		none(t, "beside the set", waiting)
		unlock(t, hold)
		if r := <-waiting; r.err != nil {
			t.Fatal(r.err)
		}
		synctest.Wait()
		w.empty(path, "/locks/other")
	})
}

func TestInspectShowsAContenderOnceAndEveryReader(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := session(t, w.Client(t, 20*time.Second))
		first := locked(t, w.rw(lock.RWConfig{Layout: lock.Both}).RLock)
		second := locked(t, w.rw(lock.RWConfig{Layout: lock.Kazoo}).RLock)
		for _, name := range []string{
			"_c_0f8fad5b-d9cb-469f-a165-70867728950e-__READ__", "0f8fad5bd9cb469fa16570867728950e__rlock__",
			"_c_1f8fad5b-d9cb-469f-a165-70867728950e-__WRIT__", "2f8fad5bd9cb469fa16570867728950e__rlock__", "foreign-",
		} {
			if _, err := sess.Create(t.Context(), path+"/"+name, []byte("theirs"), zk.EphemeralSequential); err != nil {
				t.Fatal(err)
			}
		}
		waiting := waits(t.Context(), w.rw(lock.RWConfig{Layout: lock.Both}).Lock)
		synctest.Wait()
		type seen struct{ holder, shared, known bool }
		want := []seen{
			{true, true, true},
			{true, true, true},
			{true, true, false},
			{true, true, false},
			{false, false, false},
			{false, true, false},
			{false, false, true},
		}
		list := w.line()
		var stand []seen
		for _, c := range list {
			stand = append(stand, seen{c.Holder, c.Kind == lock.Reader, c.Known})
		}
		if !slices.Equal(stand, want) {
			t.Fatalf("got %+v, want %+v", stand, want)
		}
		if list[0].Second == "" || list[1].Second != "" || list[6].Second == "" {
			t.Errorf("got second nodes %q, %q, %q, want one of the first and the last",
				list[0].Second, list[1].Second, list[6].Second)
		}
		if list[0].Path != first.Path() || list[1].Path != second.Path() {
			t.Errorf("got %s and %s first, want %s and %s", list[0].Path, list[1].Path, first.Path(), second.Path())
		}
		for _, name := range w.nodes(path) {
			if !strings.Contains(name, "foreign") && strings.Contains(name, "f8fad5b") {
				if err := sess.Delete(t.Context(), path+"/"+name, -1); err != nil {
					t.Fatal(err)
				}
			}
		}
		unlock(t, first)
		unlock(t, second)
		unlock(t, got(t, waiting))
	})
}

// Curator and kazoo compare the text of numbers, we compare numbers: near the wrap there is no order that all see.
//
// Promise: 9
func TestLineOfOthersNearTheWrapIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := session(t, w.Client(t, 20*time.Second))
		unlock(t, acquire(t, w.mutex(lock.Config{Layout: lock.Kazoo}))) // whose path stays
		for _, c := range []struct {
			next int32
			want error
		}{
			{1 << 30, lock.ErrHeld},
			{math.MaxInt32 - 1<<21, lock.ErrHeld},
			{math.MaxInt32 - 100, lock.ErrWrap},
			{math.MaxInt32, lock.ErrWrap},
			{math.MinInt32, lock.ErrWrap},
			{-100, lock.ErrWrap},
		} {
			w.PresetSequence(path, c.next)
			theirs, err := sess.Create(t.Context(), path+"/_c_0f8fad5b-d9cb-469f-a165-70867728950e-lock-",
				[]byte("10.0.0.1"), zk.EphemeralSequential)
			if err != nil {
				t.Fatal(err)
			}
			for _, layout := range layouts {
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, lock.ErrHeld)
				_, err = w.mutex(lock.Config{Layout: layout}).Lock(ctx)
				cancel()
				if !errors.Is(err, c.want) {
					t.Errorf("%d, %v: got %v, want %v", c.next, layout, err, c.want)
				}
				synctest.Wait()
				if got := w.nodes(path); len(got) != 1 {
					t.Errorf("%d, %v: left behind beside %s: %v", c.next, layout, theirs.Path, got)
				}
			}
			if err := sess.Delete(t.Context(), theirs.Path, -1); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A holder that waited behind a contender of one node is told when its own second node is deleted, like a holder that
// did not wait.
//
// Promise: 1
func TestHoldThatHasWaitedEndsWhenItsSecondNodeIsDeleted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		first := acquire(t, w.mutex(lock.Config{}))
		waiting := lockInBackground(t.Context(), w.mutex(lock.Config{Layout: lock.Both}))
		synctest.Wait()
		unlock(t, first)
		hold := got(t, waiting)
		time.Sleep(time.Second)
		w.deleteOne(t, "__lock__", 0)
		time.Sleep(time.Second)
		if cause := context.Cause(hold.Context()); !errors.Is(cause, lock.ErrDeleted) {
			t.Errorf("got %v, want lock.ErrDeleted", cause)
		}
		unlockLost(t, hold)
	})
}

// What is made for a lock is as closed as the lock.
func TestNodesParentsAndMarksHaveTheLocksACL(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		acl := zk.ACL{Perms: zk.PermAll &^ zk.PermAdmin, ID: zk.ID{Scheme: "world", ID: "anyone"}}
		hold := acquire(t, w.mutex(lock.Config{ACL: []zk.ACL{acl}, Delay: delay, Layout: lock.Both}))
		closed := []string{path, lock.DelayPath(path)}
		for _, dir := range []string{path, lock.DelayPath(path)} {
			for _, name := range w.nodes(dir) {
				closed = append(closed, dir+"/"+name)
			}
		}
		if len(closed) != 5 {
			t.Fatalf("got %v, want two directories, two nodes and a mark", closed)
		}
		for _, node := range closed {
			got, _, err := w.Session(t, 20*time.Second).GetACL(t.Context(), node)
			if err != nil || len(got) != 1 || got[0] != acl {
				t.Errorf("%s: got %v, %v, want %v", node, got, err, acl)
			}
		}
		unlock(t, hold)
	})
}
