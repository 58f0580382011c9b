package queue_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

func itemsIn(t *testing.T, q *queue.Queue, state queue.State) (list []queue.Peeked) {
	t.Helper()
	for x, err := range q.Items(t.Context(), state) {
		if err != nil {
			t.Fatal(err)
		}
		if x.State != state {
			t.Errorf("item %s is said to be %v, want %v", x.Body, x.State, state)
		}
		one, err := q.Item(t.Context(), x.ID)
		if err != nil || string(one.Body) != string(x.Body) || one.State != state {
			t.Errorf("by its id item %s is %q, %v, %v", x.Body, one.Body, one.State, err)
		}
		list = append(list, x)
	}
	return list
}

func bodies(items []queue.Peeked) []string {
	var list []string
	for _, x := range items {
		list = append(list, string(x.Body))
	}
	return list
}

// Promise: 7
func TestItemsAreListedByTheirState(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, worker := w.queue(queue.Config{}.WithSegment(2)), w.queue(queue.Config{Prefetch: -1})
		put(t, q, "dead", queue.Message{Priority: -3})
		if err := take(t, worker).Reject(t.Context(), "bad"); err != nil {
			t.Fatal(err)
		}
		put(t, q, "failed", queue.Message{Priority: -2})
		if err := take(t, worker).Fail(t.Context(), errors.New("no")); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		putAll(t, q, 0, 5)
		put(t, q, "tomorrow", queue.Message{Delay: 24 * time.Hour, Timeout: time.Minute})
		put(t, q, "soon", queue.Message{Delay: time.Minute, Priority: 4})
		failed := take(t, worker)
		first := take(t, worker)
		wantBody(t, first, "0")

		if got, want := bodies(itemsIn(t, q, queue.Ready)), []string{"1", "2", "3", "4"}; !slices.Equal(got, want) {
			t.Errorf("got %v ready, want %v", got, want)
		}
		delayed := itemsIn(t, q, queue.Delayed)
		if len(delayed) != 2 || string(delayed[0].Body) != "soon" || delayed[0].Priority != 4 ||
			time.Until(delayed[0].DueAt).Round(time.Second) != time.Minute || delayed[1].Timeout != time.Minute {
			t.Errorf("got delayed %+v", delayed)
		}
		claimed := itemsIn(t, q, queue.Claimed)
		if got, want := bodies(claimed), []string{"failed", "0"}; !slices.Equal(got, want) {
			t.Fatalf("got %v claimed, want %v", got, want)
		}
		if c := claimed[0].Consumer; c == nil || c.PID != os.Getpid() || c.Program == "" || c.Host == "" || c.ID == "" {
			t.Errorf("got consumer %+v", c)
		}
		if x := claimed[0]; !x.Delivered || x.Attempts != 2 || len(x.Failures) != 1 || x.Priority != -2 {
			t.Errorf("got %+v", x)
		}
		dead := itemsIn(t, q, queue.Dead)
		if len(dead) != 1 || dead[0].Reason != "bad" || dead[0].Attempts != 1 || dead[0].DiedAt.IsZero() {
			t.Errorf("got dead %+v", dead)
		}
		for _, item := range []*queue.Item{failed, first} {
			done(t, item)
		}
		if x, err := q.Item(t.Context(), first.ID()); !errors.Is(err, queue.ErrNotFound) {
			t.Errorf("got %+v, %v, want ErrNotFound", x, err)
		}
		for _, err := range q.Items(t.Context(), 0) {
			if !errors.Is(err, zk.BadArguments) {
				t.Errorf("got %v, want BadArguments", err)
			}
		}
	})
}

func TestItemsThatAConsumerHasClaimedAheadAreNotDelivered(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, worker := w.queue(queue.Config{}), w.queue(queue.Config{Linger: time.Hour})
		putAll(t, q, 0, 100)
		doneInOrder(t, worker, 0, 10)
		take(t, worker)
		inHand, ahead := 0, 0
		for _, x := range itemsIn(t, q, queue.Claimed) {
			if x.Delivered {
				inHand++
			} else {
				ahead++
			}
		}
		if inHand == 0 || inHand > 2 || ahead == 0 {
			t.Errorf("got %d in hand and %d ahead", inHand, ahead)
		}
	})
}

// The whole queue is never in memory, nor in one reply.
//
// Promise: 7
func TestListingReadsAPartAtATime(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		putAll(t, q, 0, 5000)
		before := w.Traffic().Requests[zktest.OpMultiRead]
		for _, err := range q.Items(t.Context(), queue.Ready) {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		if n := w.Traffic().Requests[zktest.OpMultiRead] - before; n != 1 {
			t.Errorf("the first item took %d reads of 200 items", n)
		}
		large := make([]byte, 500<<10)
		for range 10 {
			if _, err := q.Put(t.Context(), queue.Message{Body: large, Priority: -1}); err != nil {
				t.Fatal(err)
			}
		}
		before = w.Traffic().Requests[zktest.OpGetData]
		for _, err := range q.Items(t.Context(), queue.Ready) {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		if n := w.Traffic().Requests[zktest.OpGetData] - before; n > 10 {
			t.Errorf("the first large item took %d reads", n)
		}
	})
}

// Promise: 7
func TestItemIsRemovedInEveryStateInWhichItIsNobodys(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{}.WithSegment(2))
		gone := w.queue(queue.Config{Prefetch: -1})
		ids := []string{put(t, q, "left behind", queue.Message{Priority: -9})}
		take(t, gone)
		worker := w.queue(queue.Config{Prefetch: -1})
		ids = append(ids, put(t, q, "given back", queue.Message{Priority: -8}))
		back := take(t, worker)
		ids = append(ids, put(t, q, "dead", queue.Message{Priority: -7}))
		if err := take(t, worker).Reject(t.Context(), "bad"); err != nil {
			t.Fatal(err)
		}
		if err := back.Return(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if err := worker.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, id := range w.Connected() {
			w.Server.ExpireSession(id)
		}
		putAll(t, q, 0, 5)
		ids = append(ids, put(t, q, "behind the cursor", queue.Message{}))
		ids = append(ids, put(t, q, "delayed", queue.Message{Delay: time.Hour}))
		wantLen(t, q, queue.Counts{Ready: 8, Delayed: 1, Dead: 1})
		for _, id := range ids {
			if err := q.Remove(t.Context(), id); err != nil {
				t.Error(err)
			}
			if err := q.Remove(t.Context(), id); !errors.Is(err, queue.ErrNotFound) {
				t.Errorf("once more: got %v, want ErrNotFound", err)
			}
		}
		wantLen(t, q, queue.Counts{Ready: 5})
		other := w.queue(queue.Config{})
		doneInOrder(t, other, 0, 5)
		pass(2 * time.Hour)
		wantEmpty(t, other)
		wantLen(t, q, queue.Counts{})
	})
}

// Promise: 7
func TestItemThatAConsumerHasIsNotRemoved(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, worker := w.queue(queue.Config{}), w.queue(queue.Config{Linger: time.Hour})
		putAll(t, q, 0, 50)
		doneInOrder(t, worker, 0, 10)
		held := take(t, worker)
		claimed := itemsIn(t, q, queue.Claimed)
		if len(claimed) < 2 {
			t.Fatalf("only %d items are claimed", len(claimed))
		}
		for _, x := range claimed {
			err := q.Remove(t.Context(), x.ID)
			e, ok := errors.AsType[*queue.ClaimedError](err)
			if !errors.Is(err, queue.ErrClaimed) || !ok || e.Consumer != *x.Consumer ||
				!strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) {
				t.Errorf("got %v, want that %+v has it", err, x.Consumer)
			}
		}
		done(t, held)
		doneInOrder(t, worker, 11, 50)
		wantEmpty(t, worker)
	})
}

// Whichever comes first, the claim of an item or its removal, decides, and the other sees it.
//
// Promise: 7
func TestRemovalAndClaimOfAnItemAtTheSameTime(t *testing.T) {
	t.Parallel()
	removes := func(r zktest.Request) bool {
		return len(r.Parts) == 3 && r.Parts[1].Op == zktest.OpDelete && r.Parts[2].Op == zktest.OpCheck
	}
	for _, free := range []bool{false, true} {
		for _, first := range []string{"claim", "removal", "claim of another"} {
			t.Run(fmt.Sprintf("%s first, free claim %v", first, free), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					q, worker := w.queue(queue.Config{}), w.queue(queue.Config{Prefetch: -1})
					putAll(t, q, 0, 3)
					if free {
						var held []*queue.Item
						for range 3 {
							held = append(held, take(t, worker))
						}
						for _, item := range held {
							if err := item.Return(t.Context(), 0); err != nil {
								t.Fatal(err)
							}
						}
					}
					target := itemsIn(t, q, queue.Ready)[map[string]int{"claim of another": 1}[first]]
					reached, sent := make(chan struct{}, 9), 0
					w.Control(func(r zktest.Request) zktest.Fault {
						if !removes(r) {
							return zktest.Pass
						}
						if sent++; sent > 1 || first == "removal" {
							return zktest.Pass
						}
						reached <- struct{}{}
						return zktest.Delay(time.Minute)
					})
					result := make(chan error, 1)
					go func() { result <- q.Remove(t.Context(), target.ID) }()
					var err error
					if first == "removal" {
						err = <-result
					} else {
						<-reached
					}
					item := take(t, worker)
					if first != "removal" {
						err = <-result
					}
					switch first {
					case "claim":
						if !errors.Is(err, queue.ErrClaimed) {
							t.Fatalf("got %v, want ErrClaimed", err)
						}
						wantBody(t, item, "0")
						done(t, item)
						doneInOrder(t, worker, 1, 3)
					case "removal":
						if err != nil {
							t.Fatal(err)
						}
						wantBody(t, item, "1")
						done(t, item)
						doneInOrder(t, worker, 2, 3)
					default:
						if err != nil {
							t.Fatal(err)
						}
						wantBody(t, item, "0")
						done(t, item)
						doneInOrder(t, worker, 2, 3)
					}
					wantEmpty(t, worker)
				})
			})
		}
	}
}

// A delayed item that becomes ready while it is being removed is removed where it has gone.
//
// Promise: 7
func TestItemThatBecomesReadyWhileItIsRemovedIsRemoved(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, worker := w.queue(queue.Config{}), w.queue(queue.Config{})
		id := put(t, q, "late", queue.Message{Delay: time.Minute, Priority: 5})
		put(t, q, "blocker", queue.Message{})
		pass(2 * time.Minute)
		held := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			if len(r.Parts) == 2 && r.Parts[1].Op == zktest.OpDelete && held == 0 {
				held++
				return zktest.Delay(time.Minute)
			}
			return zktest.Pass
		})
		result := make(chan error, 1)
		go func() { result <- q.Remove(t.Context(), id) }()
		pass(time.Second)
		done(t, take(t, worker)) // moves what is due
		if err := <-result; err != nil || held != 1 {
			t.Fatal(err, held)
		}
		wantEmpty(t, worker)
		wantLen(t, q, queue.Counts{})
	})
}

// Whichever request of a removal gets lost, or its reply: it removes the item, and says so.
//
// Promise: 7
func TestConnectionLostAtAnyStepOfARemovalChangesNothing(t *testing.T) {
	t.Parallel()
	faults := map[string]zktest.Fault{
		"request lost": zktest.Refuse, "cut before": zktest.CutBefore,
		"reply lost": zktest.DropReply, "cut after": zktest.CutAfter,
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				q := w.queue(queue.Config{})
				steps := 0
				for step := range soak.Steps(name, faults) {
					ids := []string{
						put(t, q, "ready", queue.Message{}), put(t, q, "delayed", queue.Message{Delay: time.Hour}),
					}
					put(t, q, "dead", queue.Message{Priority: -1})
					item := take(t, q)
					ids = append(ids, item.ID())
					if err := item.Reject(t.Context(), "bad"); err != nil {
						t.Fatal(err)
					}
					pass(2 * time.Second) // what was claimed ahead goes back
					remover, err := queue.New(w.Client(t, 20*time.Second), root, queue.Config{})
					if err != nil {
						t.Fatal(err)
					}
					reached := false
					w.Control(func(r zktest.Request) zktest.Fault {
						if r.Seq != step {
							return zktest.Pass
						}
						reached = true
						return fault
					})
					for _, id := range ids {
						if err := remover.Remove(t.Context(), id); err != nil {
							t.Fatalf("fault at step %d: %v", step, err)
						}
					}
					w.Control(nil)
					wantLen(t, q, queue.Counts{})
					if err := remover.Close(t.Context()); err != nil {
						t.Fatal(err)
					}
					if !reached {
						break
					}
					steps = step
				}
				if steps < 20 {
					t.Errorf("only %d steps had a fault", steps)
				}
			})
		})
	}
}

func TestCallerOfARemovalThatLeavesDoesNotKnow(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		id := put(t, q, "a", queue.Message{})
		w.Control(func(r zktest.Request) zktest.Fault {
			if len(r.Parts) == 3 && r.Parts[1].Op == zktest.OpDelete {
				return zktest.DelayReply(time.Hour)
			}
			return zktest.Pass
		})
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		if err := q.Remove(ctx, id); !errors.Is(err, context.DeadlineExceeded) || zk.OutcomeOf(err) != zk.Unknown {
			t.Errorf("got %v (%v), want that it is unknown", err, zk.OutcomeOf(err))
		}
		w.Control(nil)
		wantLen(t, w.queue(queue.Config{}), queue.Counts{})
	})
}

// Many consumers claim while many items are removed: each item is either delivered or removed.
//
// Promise: 7
func TestEachItemIsEitherDeliveredOrRemoved(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const n = 150
		q := w.queue(queue.Config{}.WithSegment(50))
		putAll(t, q, 0, n)
		ids := make(map[string]string)
		for _, x := range itemsIn(t, q, queue.Ready) {
			ids[string(x.Body)] = x.ID
		}
		y := newTally()
		stop := y.consume(t, w, 4)
		removed := make(map[string]bool)
		for i := n - 1; i >= 0; i -= 3 {
			switch err := q.Remove(t.Context(), ids[strconv.Itoa(i)]); {
			case err == nil:
				removed[strconv.Itoa(i)] = true
			case !errors.Is(err, queue.ErrClaimed) && !errors.Is(err, queue.ErrNotFound):
				t.Fatal(err)
			}
		}
		pass(time.Minute)
		stop()
		for i := range n {
			body := strconv.Itoa(i)
			if got := y.begun[body] > 0; got == removed[body] || y.begun[body] > 1 {
				t.Errorf("item %s: delivered %d times, removed %v", body, y.begun[body], removed[body])
			}
		}
		if len(removed) == 0 {
			t.Error("none was removed")
		}
		wantLen(t, q, queue.Counts{})
	})
}

// An item that was given back is removed, also while its former consumer has others of the same claim.
//
// Promise: 7
func TestItemThatWasGivenBackIsRemoved(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		putAll(t, q, 0, 3)
		items, err := q.TakeBatch(t.Context(), 3)
		if err != nil {
			t.Fatal(err)
		}
		if err := items[1].Return(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if err := w.queue(queue.Config{}).Remove(t.Context(), items[1].ID()); err != nil {
			t.Error(err)
		}
		done(t, items[0])
		done(t, items[2])
		wantLen(t, q, queue.Counts{})
	})
}
