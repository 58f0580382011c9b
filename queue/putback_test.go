package queue_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zktest"
)

// Promise: 7
func TestItemsThatAreGivenBackKeepTheirPlaces(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, other := w.queue(queue.Config{}), w.queue(queue.Config{})
		putAll(t, q, 0, 20)
		items, err := q.TakeBatch(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range []int{7, 3, 0, 9} {
			if err := items[i].Fail(t.Context(), &queue.RetryError{}); err != nil {
				t.Fatal(err)
			}
		}
		for _, i := range []int{0, 3, 7, 9, 10, 11} {
			item := take(t, other)
			wantBody(t, item, strconv.Itoa(i))
			if want := map[bool]int{true: 2, false: 1}[i < 10]; item.Attempt() != want {
				t.Errorf("item %d: attempt %d, want %d", i, item.Attempt(), want)
			}
			done(t, item)
		}
		for _, i := range []int{1, 2, 4, 5, 6, 8} {
			done(t, items[i])
		}
		wantLen(t, q, queue.Counts{Ready: 8})
	})
}

// The next consumer has an item before the answer to the one that gave it back has arrived.
//
// Promise: 7
func TestContextEndsBeforeAnItemIsGivenToOthers(t *testing.T) {
	t.Parallel()
	ways := map[string]func(context.Context, *queue.Item) error{
		"Retry":  func(ctx context.Context, it *queue.Item) error { return it.Fail(ctx, &queue.RetryError{}) },
		"Return": func(ctx context.Context, it *queue.Item) error { return it.Return(ctx, 0) },
		"Fail":   func(ctx context.Context, it *queue.Item) error { return it.Fail(ctx, errors.New("not now")) },
	}
	for name, giveBack := range ways {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				q := w.queue(queue.Config{Backoff: queue.Backoff{First: 100 * time.Millisecond}})
				other := w.queue(queue.Config{})
				putAll(t, q, 0, 1)
				item := take(t, q)
				ctx := item.Context()
				w.Control(func(r zktest.Request) zktest.Fault {
					if r.Session == item.Session().ID() && r.Op == zktest.OpMulti {
						return zktest.DelayReply(2 * time.Second)
					}
					return zktest.Pass
				})
				given := make(chan error, 1)
				go func() { given <- giveBack(t.Context(), item) }()
				done(t, take(t, other))
				if cause := context.Cause(ctx); !errors.Is(cause, queue.ErrFinished) {
					t.Errorf("another consumer has had the item; the first one's context says %v", cause)
				}
				w.Control(nil)
				if err := <-given; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// What was given back out of the middle of a part comes in its place, also if the consumer that has the rest is gone.
//
// Promise: 7
func TestItemsThatAreLeftBehindKeepTheirPlacesBesideThoseThatWereGivenBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		putAll(t, q, 0, 8)
		items, err := q.TakeBatch(t.Context(), 7)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range []int{4, 1, 2} {
			if err := items[i].Fail(t.Context(), &queue.RetryError{}); err != nil {
				t.Fatal(err)
			}
		}
		w.ExpireSession(items[0].Session().ID())
		<-items[0].Context().Done()
		other := w.queue(queue.Config{})
		doneInOrder(t, other, 0, 8)
		wantEmpty(t, other)
	})
}

// What is left of a claim may begin behind an item that was given back, though the claim is named after an earlier one.
func TestItemThatWasGivenBackComesBeforeWhatIsLeftBehindItsPlace(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		putAll(t, q, 0, 6)
		items, err := q.TakeBatch(t.Context(), 5)
		if err != nil {
			t.Fatal(err)
		}
		done(t, items[0])
		for _, i := range []int{3, 1} {
			if err := items[i].Fail(t.Context(), &queue.RetryError{}); err != nil {
				t.Fatal(err)
			}
		}
		w.ExpireSession(items[0].Session().ID())
		<-items[2].Context().Done()
		other := w.queue(queue.Config{})
		for next := 1; next < 6; {
			items, err := other.TakeBatch(t.Context(), 4)
			if err != nil {
				t.Fatal(err)
			}
			for _, item := range items {
				wantBody(t, item, strconv.Itoa(next))
				done(t, item)
				next++
			}
		}
		wantEmpty(t, other)
	})
}

// However many items are given back one by one, the list of claims stays small; none is lost.
//
// Promise: 7
func TestListOfClaimsStaysSmall(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		const n = 1300
		putAll(t, q, 0, n)
		var items []*queue.Item
		for len(items) < n {
			more, err := q.TakeBatch(t.Context(), 1000)
			if err != nil {
				t.Fatal(err)
			}
			items = append(items, more...)
		}
		for _, item := range items {
			if err := item.Fail(t.Context(), &queue.RetryError{}); err != nil {
				t.Fatal(err)
			}
		}
		names, _, err := items[0].Session().Children(t.Context(), root+"/claims")
		if err != nil || len(names) > 1100 {
			t.Fatalf("%d claims, %v", len(names), err)
		}
		seen := make(map[string]bool)
		for range n {
			item := take(t, q)
			if seen[item.ID()] {
				t.Fatalf("item %q twice", item.Body())
			}
			seen[item.ID()] = true
			done(t, item)
		}
		wantEmpty(t, q)
	})
}

// Promise: 7
func TestReturnedItemHasNotBeenTried(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{MaxAttempts: 2})
		putAll(t, q, 0, 3)
		again := func(attempt int) *queue.Item {
			t.Helper()
			item := take(t, q)
			wantBody(t, item, "0")
			if item.Attempt() != attempt {
				t.Errorf("attempt %d, want %d", item.Attempt(), attempt)
			}
			return item
		}
		back := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		for range 5 {
			back(again(1).Return(t.Context(), 0))
		}
		back(again(1).Fail(t.Context(), &queue.RetryError{}))
		for range 5 {
			back(again(2).Return(t.Context(), 0))
		}
		back(again(2).Return(t.Context(), time.Minute))
		doneInOrder(t, q, 1, 3)
		wantEmpty(t, q)
		pass(2 * time.Minute)
		item := again(2)
		back(item.Return(t.Context(), 0))
		if err := item.Return(t.Context(), 0); !errors.Is(err, queue.ErrFinished) {
			t.Errorf("returned twice: %v, want ErrFinished", err)
		}
		back(again(2).Fail(t.Context(), &queue.RetryError{}))
		wantLen(t, q, queue.Counts{Dead: 1})
	})
}
