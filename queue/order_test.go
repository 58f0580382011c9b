package queue_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
)

func TestItemsComeInTheOrderOfTheirArrival(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		put(t, q, "a", queue.PutOptions{Headers: map[string]string{"k": "v"}})
		item := take(t, q)
		wantBody(t, item, "a")
		if item.Headers()["k"] != "v" || item.Attempt() != 1 || item.EnqueuedAt().IsZero() || item.Token() == 0 {
			t.Fatalf("got %v %d %v %d", item.Headers(), item.Attempt(), item.EnqueuedAt(), item.Token())
		}
		done(t, item)
		wantEmpty(t, q)
		putAll(t, q, 0, 2500)
		wantLen(t, q, queue.Counts{Ready: 2500})
		for i := range 2500 {
			item := take(t, q)
			wantBody(t, item, strconv.Itoa(i))
			done(t, item)
		}
		wantEmpty(t, q)
		wantLen(t, q, queue.Counts{})
	})
}

func TestUrgentItemsComeFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, other := w.queue(queue.Config{}), w.queue(queue.Config{})
		for i := range 40 {
			put(t, q, fmt.Sprint("later ", i), queue.PutOptions{Priority: 5})
		}
		for i := range 20 {
			item := take(t, q)
			wantBody(t, item, fmt.Sprint("later ", i))
			if i == 10 {
				// The consumer holds a part of the queue by now; what is more urgent comes first all the same.
				put(t, other, "urgent", queue.PutOptions{Priority: -5})
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

func TestDelayedItemsComeWhenTheyAreDue(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		for _, delay := range []time.Duration{3 * time.Hour, 90 * time.Second, 500 * time.Millisecond, 2 * time.Second} {
			put(t, q, delay.String(), queue.PutOptions{Delay: delay})
		}
		wantEmpty(t, q)
		wantLen(t, q, queue.Counts{Delayed: 4})
		start := time.Now()
		for _, delay := range []time.Duration{500 * time.Millisecond, 2 * time.Second, 90 * time.Second, 3 * time.Hour} {
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
