package queue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zktest"
)

// A caller who leaves before the answer is told that the put may have been done; a caller who leaves before anything was sent is not.
func TestCallerThatLeavesAPutIsToldWhetherItMayBeIn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		put(t, q, "a", queue.PutOptions{})
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpMulti {
				return zktest.DelayReply(10 * time.Second)
			}
			return zktest.Pass
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := q.Put(ctx, []byte("b"), queue.PutOptions{}); !errors.Is(err, queue.ErrUnresolved) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want ErrUnresolved and DeadlineExceeded", err)
		}
		if _, err := q.Put(ctx, []byte("c"), queue.PutOptions{}); errors.Is(err, queue.ErrUnresolved) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want DeadlineExceeded alone", err)
		}
		w.Control(nil)
		pass(time.Minute)
		put(t, q, "d", queue.PutOptions{})
		for _, want := range []string{"a", "b", "d"} {
			item := take(t, q)
			wantBody(t, item, want)
			done(t, item)
		}
		wantEmpty(t, q)
	})
}

// Done goes on when its caller leaves: the item is finished, once.
func TestDoneGoesOnWhenItsCallerLeaves(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		putAll(t, q, 0, 2)
		item := take(t, q)
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpMulti && r.Nth == 1 {
				return zktest.DelayReply(10 * time.Second)
			}
			return zktest.Pass
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := item.Done(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want DeadlineExceeded", err)
		}
		if err := item.Done(t.Context()); !errors.Is(err, queue.ErrFinished) {
			t.Errorf("a second Done: got %v, want ErrFinished", err)
		}
		pass(time.Minute)
		wantBody(t, take(t, q), "1")
		wantLen(t, q, queue.Counts{Claimed: 1})
	})
}
