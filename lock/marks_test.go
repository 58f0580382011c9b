package lock_test

// Marks of holders whose delay has passed, and of those who never held.

import (
	"context"
	"errors"
	stdpath "path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// The delay has passed, and the request that removes the mark of the lost holder is on its way when the node of the
// next one is deleted.
func TestContenderWhoseNodeIsDeletedWhileItClearsAMarkIsNotLetIn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.lose(acquire(t, w.delayed()))
		first := waits(t.Context(), w.delayed().Lock)
		time.Sleep(delay / 2)
		slow, arrives := context.WithCancel(t.Context())
		defer arrives()
		clears := make(chan struct{})
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op != zktest.OpDelete || stdpath.Dir(r.Path) != lock.DelayPath(path) {
				return zktest.Pass
			}
			if r.Nth == 1 {
				close(clears)
			}
			return zktest.Until(slow)
		})
		<-clears
		w.removeNode(0)
		other := acquire(t, w.mutex(lock.Config{}))
		w.Control(nil)
		arrives()
		none(t, "behind the one that came instead", first)
		came := time.Now()
		unlock(t, other)
		unlock(t, got(t, first))
		if took := time.Since(came); took > time.Minute { // it had not started, so it leaves no mark
			t.Errorf("it waited for %v when it had joined again", took)
		}
		letHoldsAge()
		w.empty(path, lock.DelayPath(path))
	})
}

// Meanwhile the mark looks younger than it is, as after a change to a leader whose clock is behind.
func TestDelayThatHasPassedIsNotWaitedForAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lost := w.lose(acquire(t, w.delayed()))
		next := waits(t.Context(), w.delayed().Lock)
		time.Sleep(delay / 2)
		sess, mark := w.Session(t, 20*time.Second), lock.DelayPath(path)+"/"+w.nodes(lock.DelayPath(path))[0]
		data, stat, err := sess.Get(t.Context(), mark)
		if err != nil || !strings.Contains(string(data), `"lost":true`) {
			t.Fatalf("got %s, %v, want the mark of a holder that was lost", data, err)
		}
		if _, err := sess.Set(t.Context(), mark, data, stat.Version); err != nil {
			t.Fatal(err)
		}
		unlock(t, got(t, next))
		waited(t, lost, delay)
		w.empty(path, lock.DelayPath(path))
	})
}

// The writer's mark is made, and its node deleted, when the caller leaves: it was never a writer.
func TestUpgradeThatIsCalledOffLeavesNoMark(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.rw(lock.RWConfig{Delay: delay})
		hold := locked(t, m.RLock)
		slow, arrives := context.WithCancel(t.Context())
		defer arrives()
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpMulti {
				return zktest.ReplyUntil(slow)
			}
			return zktest.Pass
		})
		ctx, leave := context.WithCancel(t.Context())
		upgraded := make(chan error, 1)
		go func() { upgraded <- m.Upgrade(ctx, hold) }()
		marks := w.nodes(lock.DelayPath(path))
		if len(marks) != 2 {
			t.Fatalf("got the marks %v, want the reader's and the writer's", marks)
		}
		writer := slices.IndexFunc(marks, func(name string) bool { return strings.Contains(name, "__WRIT__") })
		if err := w.Session(t, 20*time.Second).Delete(t.Context(), path+"/"+marks[writer], -1); err != nil {
			t.Fatal(err)
		}
		leave()
		if err := <-upgraded; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
		w.Control(nil)
		arrives()
		letHoldsAge()
		if left := w.nodes(lock.DelayPath(path)); len(left) != 1 || left[0] == marks[writer] {
			t.Errorf("got the marks %v, want the reader's alone", left)
		}
		unlock(t, hold)
		letHoldsAge()
		w.empty(path, lock.DelayPath(path))
	})
}

// The mark is made, and the node deleted, when the caller leaves: it never held the lock.
func TestCallerThatLeavesBeforeItHasStartedLeavesNoMark(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		slow, arrives := context.WithCancel(t.Context())
		defer arrives()
		w.Control(func(r zktest.Request) zktest.Fault {
			for _, p := range r.Parts {
				if stdpath.Dir(p.Path) == lock.DelayPath(path) {
					return zktest.ReplyUntil(slow)
				}
			}
			return zktest.Pass
		})
		unlock(t, acquire(t, w.mutex(lock.Config{}))) // the path is there
		sess := w.Session(t, 20*time.Second)
		if _, err := sess.Create(t.Context(), lock.DelayPath(path), nil, zk.Persistent); err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		leaves := waits(ctx, w.delayed().Lock)
		marks := w.nodes(lock.DelayPath(path))
		if len(marks) != 1 {
			t.Fatalf("got the marks %v, want one", marks)
		}
		if err := sess.Delete(t.Context(), path+"/"+marks[0], -1); err != nil {
			t.Fatal(err)
		}
		leave()
		if r := <-leaves; !errors.Is(r.err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", r.err)
		}
		w.Control(nil)
		arrives()
		letHoldsAge()
		w.empty(path, lock.DelayPath(path))
	})
}

// Readers are lost again and again, and no writer comes, for whom their marks would be.
func TestMarksOfLostReadersDoNotAddUp(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		rw, sess := w.rw(lock.RWConfig{Delay: delay}), w.Session(t, 20*time.Second)
		lose := func() time.Time {
			hold := locked(t, rw.RLock)
			if err := sess.Delete(t.Context(), hold.Path(), -1); err != nil {
				t.Fatal(err)
			}
			<-hold.Context().Done()
			return time.Now()
		}
		live := locked(t, w.rw(lock.RWConfig{Delay: delay}).RLock)
		for range 300 {
			lose()
			time.Sleep(delay / 10)
		}
		if n := len(w.nodes(lock.DelayPath(path))); n > 100 {
			t.Errorf("%d marks", n)
		}
		unlock(t, live)
		lost := lose()
		unlock(t, locked(t, rw.Lock))
		waited(t, lost, delay)
		letHoldsAge()
		w.empty(path, lock.DelayPath(path))
	})
}
