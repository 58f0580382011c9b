package queue_test

import (
	"context"
	"testing"

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
