package classic_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/queue/classic"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// Promise: 7
func TestItemOfADeadConsumerIsDeliveredAgainInItsOldPlace(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		if !k.locks {
			t.Skip("an item is gone when it is taken")
		}
		q := w.queue(k)
		fill(t, q, 3)
		dead := w.queue(k)
		first, err := dead.take(t.Context(), true)
		must(t, err)
		second, err := q.take(t.Context(), true)
		must(t, err)
		if first.body != "body 0" || second.body != "body 1" {
			t.Fatalf("got %s and %s", first.body, second.body)
		}
		w.HalfOpen(first.item.Session().ID())
		<-first.item.Context().Done()
		time.Sleep(2 * timeout) // until the server has ended the session, too
		again, err := q.take(t.Context(), true)
		must(t, err)
		if again.body != "body 0" {
			t.Errorf("got %s, want the item of the dead consumer, which stands first", again.body)
		}
		if err := first.done(t.Context()); !errors.Is(err, classic.ErrLost) {
			t.Errorf("the dead consumer's Done returns %v, want ErrLost", err)
		}
		must(t, again.done(t.Context()))
		must(t, second.done(t.Context()))
		wantBodies(t, drain(t, q), "body 2")
	})
}

// Curator's consumers look again only when an item comes (see test/bugs-found.md).
//
// Promise: 7
func TestWaitingTakeIsToldThatALockHasGone(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		if !k.locks {
			t.Skip("an item is gone when it is taken")
		}
		q, other := w.queue(k), w.queue(k)
		fill(t, q, 1)
		held, err := other.take(t.Context(), true)
		must(t, err)
		if _, err := q.take(t.Context(), false); !errors.Is(err, classic.ErrEmpty) {
			t.Fatalf("got %v, want ErrEmpty: the only item is locked", err)
		}
		got := make(chan *taken, 1)
		go func() {
			if x, err := q.take(t.Context(), true); err == nil {
				got <- x
			}
		}()
		synctest.Wait()
		must(t, held.item.Release(t.Context()))
		must(t, (<-got).done(t.Context()))
		if err := held.done(t.Context()); err != nil {
			t.Errorf("got %v from an item that another consumer has done, want nil", err)
		}
	})
}

// Promise: 7
func TestReleasedItemComesNextAlsoIfLaterOnesAreListed(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		q := w.queue(k)
		if !k.locks {
			fill(t, q, 1)
			x, err := q.take(t.Context(), true)
			must(t, err)
			if x.item != nil && !errors.Is(x.item.Release(t.Context()), classic.ErrRemoved) {
				t.Error("an item that was removed cannot be left in its place")
			}
			return
		}
		want := fill(t, q, 5)
		x, err := q.take(t.Context(), true)
		must(t, err)
		must(t, x.item.Release(t.Context()))
		held, err := x.item.Held(t.Context())
		if held || err != nil {
			t.Errorf("Held is %v, %v after Release", held, err)
		}
		if err := x.done(t.Context()); !errors.Is(err, classic.ErrLost) {
			t.Errorf("Done after Release returns %v, want ErrLost", err)
		}
		wantBodies(t, drain(t, q), want...)
	})
}

// CURATOR-56, -224, -231, -250: names grew with each time that an item was put back, or lost what they said.
//
// Promise: 7
func TestRequeueKeepsPriorityTimeAndIDAndNamesDoNotGrow(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		q := w.queue(k)
		fill(t, q, 2)
		before := w.names(k.dir)
		x, err := q.take(t.Context(), true)
		must(t, err)
		if x.item == nil {
			return // Simple has no items, only bodies
		}
		for range 5 {
			must(t, x.item.Requeue(t.Context()))
			x, err = q.take(t.Context(), true)
			must(t, err)
		}
		must(t, x.item.Requeue(t.Context()))
		after := w.names(k.dir)
		if len(after) != 2 {
			t.Fatalf("got %q, want two items", after)
		}
		for _, name := range after {
			if base := name[:len(name)-10]; base != before[0][:len(before[0])-10] {
				t.Errorf("got %q, want the name to begin as %q does", name, before[0])
			}
		}
		if got := drain(t, q); len(got) != 2 || got[0] == got[1] {
			t.Errorf("got %q, want each item once", got)
		}
	})
}

// Promise: 7
func TestOnePutWakesOneGoroutineOfAProcess(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		const waiters = 50
		q, writer := w.queue(k), w.queue(k)
		fill(t, writer, 1) // the directories and the receipts are there
		x, err := q.take(t.Context(), true)
		must(t, err)
		must(t, x.done(t.Context()))
		var wg sync.WaitGroup
		for range waiters {
			wg.Go(func() {
				if x, err := q.take(t.Context(), true); err != nil {
					t.Error(err)
				} else {
					must(t, x.done(t.Context()))
				}
			})
		}
		synctest.Wait()
		before := w.Traffic().Requests
		must(t, writer.put(t.Context(), "one"))
		synctest.Wait()
		after := w.Traffic().Requests
		// Each look at the directories is two lists at most, and after the item has gone the next one looks.
		if lists := after[zktest.OpGetChildren] - before[zktest.OpGetChildren]; lists > 16 {
			t.Errorf("one put made %d waiters list %d times", waiters, lists)
		}
		fill(t, writer, waiters-1)
		wg.Wait()
	})
}

func TestTryTakeDoesNotWaitForThoseWhoWait(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		q := w.queue(k)
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := q.take(ctx, true)
			left <- err
		}()
		synctest.Wait()
		began := time.Now()
		if _, err := q.take(t.Context(), false); !errors.Is(err, classic.ErrEmpty) || time.Since(began) > 0 {
			t.Errorf("got %v after %v, want ErrEmpty at once", err, time.Since(began))
		}
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
	})
}

// Promise: 7
func TestDepthIsNotListedForEachItem(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		const depth = 200
		q := w.queue(k)
		want := fill(t, q, depth)
		before := w.Traffic().Requests[zktest.OpGetChildren]
		wantBodies(t, drain(t, q), want...)
		if lists := w.Traffic().Requests[zktest.OpGetChildren] - before; lists > 8 {
			t.Errorf("%d items took %d lists", depth, lists)
		}
	})
}

func TestManyConsumersTakeEachItemOnce(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		const producers, consumers, each = 3, 4, 25
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var mu sync.Mutex // guards seen
		seen := map[string]int{}
		var putting, taking sync.WaitGroup
		for c := range consumers {
			q := w.queue(k)
			for range 1 + c%2 {
				taking.Go(func() {
					for {
						x, err := q.take(ctx, true)
						if err != nil {
							if !errors.Is(err, context.Canceled) {
								t.Error(err)
							}
							return
						}
						must(t, x.done(context.WithoutCancel(ctx)))
						mu.Lock()
						seen[x.body]++
						if len(seen) == producers*each {
							cancel()
						}
						mu.Unlock()
					}
				})
			}
		}
		for p := range producers {
			q := w.queue(k)
			putting.Go(func() {
				for i := range each {
					must(t, q.put(t.Context(), fmt.Sprintf("%d/%d", p, i)))
				}
			})
		}
		putting.Wait()
		taking.Wait()
		for body, times := range seen {
			if times != 1 {
				t.Errorf("%s was taken %d times", body, times)
			}
		}
	})
}

func TestGuardRefusesWritesOnceTheLockIsGone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := open(t, w, classic.NewKazooLocking, classic.Config{})
		must(t, q.Put(t.Context(), []byte("body"), classic.DefaultPriority))
		item, err := q.Take(t.Context())
		must(t, err)
		write := func() error {
			write := zk.CreateOp("/written-", nil, zk.PersistentSequential)
			_, err := item.Session().Multi(t.Context(), item.Guard(), write)
			return err
		}
		must(t, write())
		if held, err := item.Held(t.Context()); !held || err != nil {
			t.Errorf("Held is %v, %v", held, err)
		}
		must(t, item.Release(t.Context()))
		if err := write(); !errors.Is(err, zk.NoNode) {
			t.Errorf("got %v, want zk.NoNode", err)
		}
	})
}

// Promise: 7
func TestItemThatOthersRemoveIsLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := open(t, w, classic.NewKazooLocking, classic.Config{})
		must(t, q.PutAll(t.Context(), [][]byte{[]byte("a"), []byte("b")}, 5))
		item, err := q.Take(t.Context())
		must(t, err)
		must(t, w.Session(t, timeout).Delete(t.Context(), path+"/entries/"+item.Name(), -1))
		if err := item.Done(t.Context()); !errors.Is(err, classic.ErrLost) {
			t.Errorf("got %v, want ErrLost", err)
		}
		wantBodies(t, w.names(path+"/taken"))
		if n, err := q.Len(t.Context()); n != 1 || err != nil {
			t.Errorf("got length %d, %v, want 1", n, err)
		}
	})
}

func TestRemoveByIDLeavesItemsThatAreHandled(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := open(t, w, classic.NewCuratorID, classic.Config{LockPath: locks})
		for _, id := range []string{"a", "b", "a", "a"} {
			must(t, q.Put(t.Context(), id, []byte(id)))
		}
		item, err := q.Take(t.Context())
		must(t, err)
		if n, err := q.Remove(t.Context(), "a"); n != 2 || err != nil {
			t.Errorf("got %d, %v, want 2 removed: the third is being handled", n, err)
		}
		must(t, item.Done(t.Context()))
		wantBodies(t, w.names(path), "queue-|b|0000000001")
	})
}

func TestRemoveByIDGoesOnBehindAnItemThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, lockPath := range []string{"", locks} {
		t.Run(lockPath, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				q := open(t, w, classic.NewCuratorID, classic.Config{LockPath: lockPath})
				must(t, q.Put(t.Context(), "a", []byte("first")))
				_, err := w.Session(t, timeout).Create(
					t.Context(), path+"/queue-|a|", []byte("nonsense"), zk.PersistentSequential)
				must(t, err)
				must(t, q.Put(t.Context(), "a", []byte("last")))
				if n, err := q.Remove(t.Context(), "a"); n != 2 || !errors.Is(err, classic.ErrCorrupt) {
					t.Errorf("got %d, %v, want 2 removed and ErrCorrupt", n, err)
				}
				wantBodies(t, w.names(path), "queue-|a|0000000001")
				wantBodies(t, w.names(locks))
			})
		})
	}
}

func TestRemoveByIDSaysWhatItMayHaveRemoved(t *testing.T) {
	t.Parallel()
	for _, lockPath := range []string{"", locks} {
		t.Run(lockPath, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				q := open(t, w, classic.NewCuratorID, classic.Config{LockPath: lockPath})
				for _, body := range []string{"first", "last"} {
					must(t, q.Put(t.Context(), "a", []byte(body)))
				}
				w.mute(func(r zktest.Request) bool {
					return isMulti(r) && strings.HasPrefix(r.Parts[0].Path, path+"/") ||
						isMulti(r) && len(r.Parts) > 1 && strings.HasPrefix(r.Parts[1].Path, path+"/")
				})
				n, err := q.Remove(t.Context(), "a")
				unresolved, ok := errors.AsType[*classic.UnresolvedError](err)
				if n != 1 || !ok || string(unresolved.Item.Body()) != "first" {
					t.Errorf("got %d, %v, want 1 removed and an UnresolvedError with the other", n, err)
				}
				wantBodies(t, w.names(path))
			})
		})
	}
}

func TestSimpleHasTheFormsOfTheOriginal(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, ctx := open(t, w, classic.NewSimple, classic.Config{}), t.Context()
		empty := func(name string, f func(context.Context) ([]byte, bool, error)) {
			if body, ok, err := f(ctx); body != nil || ok || err != nil {
				t.Errorf("%s of an empty queue: got %q, %v, %v", name, body, ok, err)
			}
		}
		fails := func(name string, f func(context.Context) ([]byte, error)) {
			if _, err := f(ctx); !errors.Is(err, classic.ErrEmpty) {
				t.Errorf("%s of an empty queue: got %v, want ErrEmpty", name, err)
			}
		}
		empty("Peek", q.Peek)
		empty("Poll", q.Poll)
		fails("Element", q.Element)
		fails("Remove", q.Remove)
		for i := range 5 {
			must(t, q.Offer(ctx, fmt.Append(nil, i)))
		}
		var got []string
		for _, f := range []func(context.Context) ([]byte, error){q.Element, q.Remove, q.Take} {
			body, err := f(ctx)
			must(t, err)
			got = append(got, string(body))
		}
		for _, f := range []func(context.Context) ([]byte, bool, error){
			q.Peek, q.Poll,
			func(ctx context.Context) ([]byte, bool, error) { return q.PollFor(ctx, time.Second) },
		} {
			body, ok, err := f(ctx)
			if !ok || err != nil {
				t.Fatalf("got %v, %v", ok, err)
			}
			got = append(got, string(body))
		}
		wantBodies(t, got, "0", "0", "1", "2", "2", "3")
	})
}

func TestPollForEndsAtItsTimeAndTellsWhenNobodyAnswered(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := open(t, w, classic.NewSimple, classic.Config{})
		began := time.Now()
		if _, ok, err := q.PollFor(t.Context(), time.Minute); ok || err != nil || time.Since(began) != time.Minute {
			t.Errorf("got %v, %v after %v, want nothing after a minute", ok, err, time.Since(began))
		}
		w.Cut()
		if _, ok, err := q.PollFor(t.Context(), 3*timeout); ok || err == nil {
			t.Errorf("got %v, %v without a server, want an error", ok, err)
		}
	})
}

func TestPollForWithoutATimeLooksOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := open(t, w, classic.NewSimple, classic.Config{})
		for _, limit := range []time.Duration{0, -time.Second} {
			must(t, q.Offer(t.Context(), []byte("ready")))
			if body, ok, err := q.PollFor(t.Context(), limit); string(body) != "ready" || !ok || err != nil {
				t.Errorf("within %v: got %q, %v, %v, want the item", limit, body, ok, err)
			}
			if _, ok, err := q.PollFor(t.Context(), limit); ok || err != nil {
				t.Errorf("within %v: got %v, %v, want nothing", limit, ok, err)
			}
		}
	})
}

func TestLockOfAnItemThatOthersHaveDoneIsNotLeftBehind(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		q, other := w.queue(k), w.queue(k)
		fill(t, q, 4)
		first, err := q.take(t.Context(), true) // and knows of the rest
		must(t, err)
		second, err := other.take(t.Context(), true)
		must(t, err)
		must(t, second.done(t.Context()))
		must(t, first.done(t.Context()))
		wantBodies(t, []string{first.body, second.body}, "body 0", "body 1")
		wantBodies(t, drain(t, q), "body 2", "body 3")
		wantBodies(t, w.names(k.dir))
		wantBodies(t, w.names(k.lockDir()))
	})
}
