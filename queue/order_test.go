package queue_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zktest"
)

// Promise: 7
func TestItemsComeInTheOrderOfTheirArrival(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		put(t, q, "a", queue.Message{Headers: map[string]string{"k": "v"}})
		item := take(t, q)
		wantBody(t, item, "a")
		if item.Headers()["k"] != "v" || item.Attempt() != 1 || item.EnqueuedAt().IsZero() || item.Token() == 0 {
			t.Fatalf("got %v %d %v %d", item.Headers(), item.Attempt(), item.EnqueuedAt(), item.Token())
		}
		done(t, item)
		wantEmpty(t, q)
		putAll(t, q, 0, 2500)
		wantLen(t, q, queue.Counts{Ready: 2500})
		doneInOrder(t, q, 0, 2500)
		wantEmpty(t, q)
		wantLen(t, q, queue.Counts{})
	})
}

// Promise: 7
func TestUrgentItemsComeFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, other := w.queue(queue.Config{}), w.queue(queue.Config{})
		for i := range 40 {
			put(t, q, fmt.Sprint("later ", i), queue.Message{Priority: 5})
		}
		for i := range 20 {
			item := take(t, q)
			wantBody(t, item, fmt.Sprint("later ", i))
			if i == 10 {
				// The consumer holds a part of the queue by now; what is more urgent comes first all the same.
				put(t, other, "urgent", queue.Message{Priority: -5})
			}
			done(t, item)
			if i == 10 {
				item := take(t, q)
				wantBody(t, item, "urgent")
				done(t, item)
			}
		}
	})
}

// A new ready list that has more than is claimed at once is finished before claimed items that are less urgent.
//
// Promise: 7
func TestAllOfANewMoreUrgentLineComesFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, other := w.queue(queue.Config{Prefetch: 8}), w.queue(queue.Config{})
		hold(t, q, 20)
		var urgent []queue.Message
		for i := range 40 {
			urgent = append(urgent, queue.Message{Body: fmt.Appendf(nil, "urgent %d", i), Priority: -1})
		}
		if _, err := other.PutBatch(t.Context(), urgent); err != nil {
			t.Fatal(err)
		}
		pass(time.Millisecond) // the consumer's watch fires
		for i := range 40 {
			item := take(t, q)
			wantBody(t, item, fmt.Sprint("urgent ", i))
			done(t, item)
		}
		item := take(t, q)
		wantBody(t, item, "20")
		done(t, item)
	})
}

// hold makes q finish the first n of a hundred items, so that it holds some that come next.
func hold(t *testing.T, q *queue.Queue, n int) {
	t.Helper()
	putAll(t, q, 0, 100)
	doneInOrder(t, q, 0, n)
}

// Whichever of the requests is lost with which a consumer looks for what comes before the items that it holds: it
// looks again.
//
// Promise: 7
func TestLostRequestDoesNotMakeAConsumerForgetWhatComesFirst(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]func(t *testing.T, q, other *queue.Queue) string{
		"given back": func(t *testing.T, q, _ *queue.Queue) string {
			item := take(t, q)
			if err := item.Fail(t.Context(), &queue.RetryError{}); err != nil {
				t.Fatal(err)
			}
			return string(item.Body())
		},
		"a new line": func(t *testing.T, _, other *queue.Queue) string {
			put(t, other, "urgent", queue.Message{Priority: -1})
			return "urgent"
		},
	} {
		for step := range 12 {
			t.Run(fmt.Sprint(name, ", request ", step+1), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					q, other := w.queue(queue.Config{Linger: time.Hour}), w.queue(queue.Config{})
					hold(t, q, 20)
					want := first(t, q, other)
					pass(time.Millisecond) // the consumer's watch fires
					w.Control(func(r zktest.Request) zktest.Fault {
						if r.Seq == step+1 {
							return zktest.CutBefore
						}
						return zktest.Pass
					})
					item := take(t, q)
					wantBody(t, item, want)
					done(t, item)
				})
			})
		}
	}
}

// Of several items that are given back each comes before the claimed items behind it.
//
// Promise: 7
func TestSeveralItemsThatAreGivenBackKeepTheirPlaces(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{Linger: time.Hour})
		hold(t, q, 20)
		var back []*queue.Item
		for range 3 {
			back = append(back, take(t, q))
			done(t, take(t, q))
		}
		for _, item := range back {
			if err := item.Fail(t.Context(), &queue.RetryError{}); err != nil {
				t.Fatal(err)
			}
		}
		for _, want := range []string{"20", "22", "24", "26", "27"} {
			item := take(t, q)
			wantBody(t, item, want)
			done(t, item)
		}
	})
}

// While a consumer looks for what comes before the items that it holds, none of these is handed out.
//
// Promise: 7
func TestNothingIsHandedOutWhileAConsumerLooksForWhatComesFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{Linger: time.Hour})
		hold(t, q, 20)
		first, second := take(t, q), take(t, q)
		if err := first.Fail(t.Context(), &queue.RetryError{}); err != nil {
			t.Fatal(err)
		}
		w.Delay(10 * time.Millisecond) // looking takes several requests, Done takes one
		var finishing sync.WaitGroup
		finishing.Go(func() { done(t, second) })
		item := take(t, q)
		wantBody(t, item, string(first.Body()))
		done(t, item)
		finishing.Wait()
	})
}

// Promise: 7
func TestDelayedItemsComeWhenTheyAreDue(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		for _, delay := range []time.Duration{
			3 * time.Hour, 90 * time.Second, 500 * time.Millisecond, 2 * time.Second,
		} {
			put(t, q, delay.String(), queue.Message{Delay: delay})
		}
		wantEmpty(t, q)
		wantLen(t, q, queue.Counts{Delayed: 4})
		start := time.Now()
		for _, delay := range []time.Duration{
			500 * time.Millisecond, 2 * time.Second, 90 * time.Second, 3 * time.Hour,
		} {
			item := take(t, q)
			wantBody(t, item, delay.String())
			if took := time.Since(start); took < delay || took > delay+100*time.Millisecond {
				t.Errorf("got it after %v, want %v", took, delay)
			}
			done(t, item)
		}
		wantEmpty(t, q)
	})
}

// What lingers is given back just as its consumer comes again: it still gets all in order.
//
// Promise: 7
func TestOneConsumerIsServedInOrderWhileItGivesBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		producer, consumer := w.queue(queue.Config{}), w.queue(queue.Config{Linger: time.Second})
		for range 40 {
			putAll(t, producer, 0, 60)
			next := 0
			check := func(item *queue.Item) {
				wantBody(t, item, strconv.Itoa(next))
				next++
			}
			for range 30 {
				item := take(t, consumer)
				check(item)
				done(t, item)
			}
			held := take(t, consumer)
			check(held)
			pass(time.Second)
			finished := make(chan error)
			go func() { finished <- held.Done(t.Context()) }()
			for range 29 {
				item := take(t, consumer)
				check(item)
				done(t, item)
			}
			if err := <-finished; err != nil {
				t.Fatal(err)
			}
			wantEmpty(t, consumer)
		}
	})
}

// The same, when the claims' nodes are being written, so that nothing can be given back yet.
//
// Promise: 7
func TestConsumerThatReturnsAsItsItemsAreGivenBackKeepsItsOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		producer, q := w.queue(queue.Config{}), w.queue(queue.Config{Linger: time.Second})
		const items = 300 // some of which are not claimed yet when others are given back
		putAll(t, producer, 0, items)
		doneInOrder(t, q, 0, 30)
		release := q.HoldWrites()
		pass(time.Second)
		got := make(chan *queue.Item, 1)
		go takeInto(t, q, got)
		synctest.Wait()
		release()
		item := <-got
		wantBody(t, item, "30")
		done(t, item)
		doneInOrder(t, q, 31, items)
		wantEmpty(t, q)
	})
}
