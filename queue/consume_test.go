package queue_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
)

func TestReasonNeedsNoError(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		put(t, q, "a", queue.Message{})
		ctx, cancel := context.WithCancel(t.Context())
		err := q.Consume(ctx, 1, func(_ context.Context, item *queue.Item) error {
			if item.Attempt() == 1 {
				return &queue.RetryError{}
			}
			cancel()
			return &queue.RejectError{}
		})
		if err != nil {
			t.Fatal(err)
		}
		for letter, err := range q.DeadLetters(t.Context()) {
			if err != nil || letter.Reason != "rejected" {
				t.Errorf("got reason %q, %v, want rejected", letter.Reason, err)
			}
		}
		wantLen(t, q, queue.Counts{Dead: 1})
	})
}

// tenYears is the longest delay of an item.
const tenYears = 10 * 365 * 24 * time.Hour

func TestRetryTakesAnyTime(t *testing.T) {
	t.Parallel()
	longest := queue.Backoff{First: tenYears, Max: tenYears}
	for name, row := range map[string]struct {
		cfg    queue.Config
		reason error
		after  bool // the item comes again after years, not at once
	}{
		"past":     {reason: &queue.RetryError{Err: errors.New("no"), After: -time.Second}},
		"smallest": {reason: &queue.RetryError{After: math.MinInt64}},
		"too long": {reason: &queue.RetryError{After: tenYears + 1}, after: true},
		"largest":  {reason: fmt.Errorf("no: %w", &queue.RetryError{After: math.MaxInt64}), after: true},
		"backoff":  {cfg: queue.Config{Backoff: longest}, reason: errors.New("no"), after: true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				q := w.queue(row.cfg)
				const n = 20 // a backoff differs each time
				for range n {
					put(t, q, "a", queue.Message{})
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				first, again := 0, 0
				if err := q.Consume(ctx, 1, func(_ context.Context, item *queue.Item) error {
					if item.Attempt() > 1 {
						again++
						return nil
					}
					first++
					return row.reason
				}); err != nil {
					t.Error(err)
				}
				want := queue.Counts{Delayed: n}
				if !row.after {
					want = queue.Counts{}
				}
				if first != n || again != n-want.Delayed {
					t.Errorf("%d first attempts, %d second ones, want %d and %d", first, again, n, n-want.Delayed)
				}
				wantLen(t, q, want)
			})
		})
	}
}

// As t.FailNow and t.Skip do.
func TestItemFailsWhoseHandlerLeavesByGoexit(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		put(t, q, "x", queue.Message{})
		err := q.Consume(t.Context(), 2, func(context.Context, *queue.Item) error {
			runtime.Goexit()
			return nil
		})
		if err == nil {
			t.Error("got no error, want that the handler has not returned")
		}
		item := take(t, w.queue(queue.Config{}))
		if item.Attempt() != 2 || len(item.Failures()) != 1 {
			t.Errorf("got attempt %d after failures %v, want the second one", item.Attempt(), item.Failures())
		}
		done(t, item)
	})
}
