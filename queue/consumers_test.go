package queue_test

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
)

func TestConsumersTellsWhoHasHowManyItems(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		q, sess := w.queueAndSession()
		for range 4 {
			if _, err := q.Put(ctx, queue.Message{Body: []byte("x")}); err != nil {
				t.Fatal(err)
			}
		}
		if list, err := q.Consumers(ctx); err != nil || len(list) != 0 {
			t.Errorf("without a consumer: %v, %v", list, err)
		}
		begun := time.Now()
		one, two, waiting := w.queue(queue.Config{Prefetch: -1}), w.queue(queue.Config{Prefetch: -1}),
			w.queue(queue.Config{Prefetch: -1})
		first := take(t, one)
		time.Sleep(time.Minute) // in the world's time
		for range 3 {
			take(t, two)
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() { _, _ = waiting.Take(ctx) }()
		time.Sleep(time.Second) // in the world's time
		// Another program has made this node.
		if _, err := sess.Create(ctx, root+"/consumers/odd", []byte("{"), zk.Persistent); err != nil {
			t.Fatal(err)
		}
		list, err := q.Consumers(ctx)
		if err != nil || len(list) != 4 {
			t.Fatalf("got %v, %v; want four", list, err)
		}
		var claimed []int
		ids := make(map[string]bool)
		for _, c := range list {
			claimed = append(claimed, c.Claimed)
			ids[c.ID] = true
			ours := c.Host != "" && c.PID == os.Getpid() && c.Program != "" && c.Session != 0
			if odd := c.ID == "odd"; ours == odd || c.Since.Before(begun.Truncate(time.Millisecond)) {
				t.Errorf("got %+v", c)
			}
		}
		if want := []int{3, 1, 0, 0}; len(ids) != 4 || !slices.Equal(claimed, want) {
			t.Errorf("got %v of %v, want %v", claimed, ids, want)
		}
		if sees := list[0].Since.Sub(list[1].Since); sees != time.Minute {
			t.Errorf("the second one began %v after the first", sees)
		}
		if err := first.Done(ctx); err != nil {
			t.Fatal(err)
		}
		if list, err = q.Consumers(ctx); err != nil || list[1].Claimed != 0 {
			t.Errorf("after the first item is done: %v, %v", list, err)
		}
	})
}
