package queue_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// finishAll acknowledges items at the same time and returns what came of each.
func finishAll(t *testing.T, items []*queue.Item) []error {
	t.Helper()
	errs := make([]error, len(items))
	var wg sync.WaitGroup
	for i, item := range items {
		wg.Go(func() { errs[i] = item.Done(t.Context()) })
	}
	wg.Wait()
	return errs
}

func takeBatch(t *testing.T, q *queue.Queue, n int) []*queue.Item {
	t.Helper()
	items, err := q.TakeBatch(t.Context(), n)
	if err != nil || len(items) != n {
		t.Fatalf("got %d items, %v, want %d", len(items), err, n)
	}
	return items
}

func isRemoval(r zktest.Request) bool {
	return r.Op == zktest.OpMulti && len(r.Parts) > 0 && r.Parts[0].Op == zktest.OpDelete
}

// Promise: 7
func TestItemsThatAreAcknowledgedAtTheSameTimeTravelTogether(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		const n = 200
		putAll(t, q, 0, n)
		items := takeBatch(t, q, n)
		removals := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			if !isRemoval(r) {
				return zktest.Pass
			}
			removals++
			return zktest.DelayReply(time.Second)
		})
		for i, err := range finishAll(t, items) {
			if err != nil {
				t.Errorf("item %d: %v", i, err)
			}
		}
		if removals > 12 {
			t.Errorf("%d items needed %d transactions", n, removals)
		}
		w.Control(nil)
		wantEmpty(t, q)
		wantLen(t, q, queue.Counts{})
	})
}

func TestBatchIsAcknowledgedInFewTransactions(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hooked := 0
		hooks := queue.Hooks{Done: func(context.Context, *queue.Item) { hooked++ }}
		q := w.queue(queue.Config{Hooks: hooks}.WithSegment(70))
		const n = 250
		putAll(t, q, 0, n)
		items := takeBatch(t, q, n)
		done(t, items[3])
		sess := w.Session(t, time.Minute)
		if err := sess.Delete(t.Context(), items[120].Path(), -1); err != nil {
			t.Fatal(err)
		}
		removals := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			if isRemoval(r) {
				removals++
			}
			return zktest.Pass
		})
		err := q.DoneAll(t.Context(), items)
		w.Control(nil)
		for _, want := range []error{queue.ErrFinished, queue.ErrClaimLost} {
			if !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		}
		if got := strings.Count(err.Error(), "queue: item "); got != 2 {
			t.Errorf("the error tells of %d items, want 2: %v", got, err)
		}
		if removals > 6 {
			t.Errorf("%d items needed %d transactions", n, removals)
		}
		if hooked != n-1 {
			t.Errorf("the hook was called %d times, want %d", hooked, n-1)
		}
		if err := q.DoneAll(t.Context(), nil); err != nil {
			t.Errorf("nothing to acknowledge: %v", err)
		}
		wantEmpty(t, q)
		wantLen(t, q, queue.Counts{})
		w.NoNodes(t, root+"/claims")
	})
}

// Whatever happens to a transaction that acknowledges many items, each of them is finished once.
//
// Promise: 7
func TestFaultsOfItemsThatTravelTogetherChangeNothing(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]zktest.Fault{
		"request lost": zktest.Refuse, "cut before": zktest.CutBefore,
		"reply lost": zktest.DropReply, "cut after": zktest.CutAfter,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				for nth := 1; nth < 12; nth++ {
					q := w.queue(queue.Config{}.WithSegment(7))
					putAll(t, q, 0, 40)
					items := takeBatch(t, q, 40)
					seen := 0
					w.Control(func(r zktest.Request) zktest.Fault {
						if !isRemoval(r) {
							return zktest.Pass
						}
						if seen++; seen == nth {
							return fault
						}
						return zktest.DelayReply(time.Millisecond)
					})
					for i, err := range finishAll(t, items) {
						if err != nil {
							t.Errorf("fault at %d, item %d: %v", nth, i, err)
						}
					}
					w.Control(nil)
					wantEmpty(t, q)
					wantLen(t, q, queue.Counts{})
					w.NoNodes(t, root+"/claims")
				}
			})
		})
	}
}

// Promise: 7
func TestItemThatAnotherClientRemovesDoesNotHarmThoseThatTravelWithIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		const before, n, after = 4, 20, 10
		putAll(t, q, 0, before+n+after)
		first, items := takeBatch(t, q, before), takeBatch(t, q, n)
		sess := w.Session(t, time.Minute)
		removed := map[int]bool{0: true, 7: true, 19: true}
		for i := range removed {
			if err := sess.Delete(t.Context(), items[i].Path(), -1); err != nil {
				t.Fatal(err)
			}
		}
		together := 0
		ctx, release := context.WithCancel(t.Context())
		w.Control(func(r zktest.Request) zktest.Fault {
			if isRemoval(r) {
				together = max(together, len(r.Parts))
				return zktest.ReplyUntil(ctx)
			}
			return zktest.Pass
		})
		// As many transactions as a consumer may have in flight have no reply yet, so all items go in the next one.
		var wg sync.WaitGroup
		for _, item := range first {
			wg.Go(func() {
				if err := item.Done(t.Context()); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		wg.Go(func() {
			synctest.Wait() // until all wait for an acknowledgement
			release()
		})
		for i, err := range finishAll(t, items) {
			if removed[i] != errors.Is(err, queue.ErrClaimLost) || !removed[i] && err != nil {
				t.Errorf("item %d: got %v", i, err)
			}
		}
		wg.Wait()
		w.Control(nil)
		if together < n {
			t.Errorf("at most %d operations were in one transaction: the items did not travel together", together)
		}
		for i := range after {
			item := take(t, q)
			wantBody(t, item, strconv.Itoa(before+n+i))
			done(t, item)
		}
		wantLen(t, q, queue.Counts{})
		w.NoNodes(t, root+"/claims")
	})
}

// A claim that is gone takes all its items with it, also those whose acknowledgements wait for others'.
//
// Promise: 7
func TestAllWhoWaitAreToldWhenTheClaimIsLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, other := w.queue(queue.Config{}), w.queue(queue.Config{})
		const n = 20
		putAll(t, q, 0, n)
		items := takeBatch(t, q, n)
		sess := w.Session(t, time.Minute)
		names, _, err := sess.Children(t.Context(), root+"/claims")
		if err != nil || len(names) != 1 {
			t.Fatal(names, err)
		}
		if err := sess.Delete(t.Context(), root+"/claims/"+names[0], -1); err != nil {
			t.Fatal(err)
		}
		for i, err := range finishAll(t, items) {
			if !errors.Is(err, queue.ErrClaimLost) {
				t.Errorf("item %d: got %v, want ErrClaimLost", i, err)
			}
		}
		put(t, other, "next", queue.Message{})
		item := take(t, q)
		wantBody(t, item, "next")
		if _, err := item.Session().Multi(t.Context(), item.Guards()...); err != nil {
			t.Error(err)
		}
		done(t, item)
	})
}

// Promise: 7
func TestMarksGoOnIntoTheNextClaim(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{Prefetch: 50, Linger: time.Hour})
		const n = 2000
		putAll(t, q, 0, n)
		for i := range 200 { // as many as it takes to claim 50 at once
			item := take(t, q)
			wantBody(t, item, strconv.Itoa(i))
			done(t, item)
		}
		marks := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpMulti && len(r.Parts) == 1 {
				marks++
			}
			return zktest.Pass
		})
		for i := 200; i < n; i++ {
			item := take(t, q)
			wantBody(t, item, strconv.Itoa(i))
			done(t, item)
			synctest.Wait() // a later claim whose first item is wanted before has that marked by a write of its own
		}
		w.Control(nil)
		if marks > 0 {
			t.Errorf("%d writes did nothing but mark items", marks)
		}
	})
}

// The claim's node stays while other items of it are open; the item's own tells that it is finished.
//
// Promise: 7
func TestGuardsRefuseOnceTheItemIsFinished(t *testing.T) {
	finishes := map[string]func(ctx context.Context, item *queue.Item) error{
		"done": func(ctx context.Context, item *queue.Item) error { return item.Done(ctx) },
		"done with": func(ctx context.Context, item *queue.Item) error {
			return item.Done(ctx, zk.CheckOp("/queues", -1))
		},
		"failed":   func(ctx context.Context, item *queue.Item) error { return item.Fail(ctx, errors.New("no")) },
		"rejected": func(ctx context.Context, item *queue.Item) error { return item.Reject(ctx, "no") },
		"put off": func(ctx context.Context, item *queue.Item) error {
			return item.Fail(ctx, &queue.RetryError{After: time.Second})
		},
		"returned": func(ctx context.Context, item *queue.Item) error { return item.Return(ctx, time.Second) },
	}
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		putAll(t, q, 0, len(finishes)+1)
		items := takeBatch(t, q, len(finishes)+1)
		write := func(ops ...zk.Op) error {
			_, err := items[0].Session().Multi(t.Context(), append(ops, zk.SetOp("/queues", nil, -1))...)
			return err
		}
		i := 0
		for name, finish := range finishes {
			i++
			if err := write(items[i].Guards()...); err != nil {
				t.Errorf("before it is %s: %v", name, err)
			}
			if err := finish(t.Context(), items[i]); err != nil {
				t.Fatal(name, err)
			}
			if err := write(items[i].Guards()...); !errors.Is(err, zk.NoNode) {
				t.Errorf("%s: got %v, want NoNode", name, err)
			}
			if err := write(items[i].Guard()); err != nil {
				t.Errorf("%s, the claim of others: %v", name, err)
			}
		}
	})
}

// What is given back at once keeps its node: that only its next consumer's Done tells is what Guards says.
//
// Promise: 7
func TestGuardsOfAnItemThatIsGivenBackAtOnceHoldUntilTheNextConsumerHasFinishedIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, other := w.queue(queue.Config{}), w.queue(queue.Config{})
		putAll(t, q, 0, 2)
		item := takeBatch(t, q, 2)[0]
		if err := item.Return(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		next := take(t, other)
		if _, err := item.Session().Multi(t.Context(), item.Guards()...); err != nil || next.ID() != item.ID() {
			t.Error(next.ID(), err)
		}
		done(t, next)
		if _, err := item.Session().Multi(t.Context(), item.Guards()...); !errors.Is(err, zk.NoNode) {
			t.Errorf("got %v, want NoNode", err)
		}
	})
}
