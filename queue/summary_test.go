package queue_test

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// What Summarize tells is what Len and Age do. It works for a client that may not write, and asks for no change.
func TestSummarizeTellsWhatIsInAQueueAndWritesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		q := w.queue(queue.Config{})
		looker := w.Client(t, 20*time.Second)
		if _, err := queue.Summarize(ctx, looker, root, 1); !errors.Is(err, queue.ErrNotQueue) {
			t.Errorf("before there is a queue: got %v, want ErrNotQueue", err)
		}
		put := func(m queue.Message) {
			t.Helper()
			if _, err := q.Put(ctx, m); err != nil {
				t.Fatal(err)
			}
		}
		begun := time.Now()
		for range 3 {
			put(queue.Message{Body: []byte("x"), Priority: 5})
		}
		time.Sleep(time.Minute) // in the world's time
		put(queue.Message{Body: []byte("more urgent, and younger")})
		put(queue.Message{Delay: time.Hour})
		put(queue.Message{Group: "g"})
		put(queue.Message{Group: "g"})
		item := take(t, w.queue(queue.Config{Prefetch: -1}))
		if err := item.Reject(ctx, "no"); err != nil {
			t.Fatal(err)
		}
		take(t, w.queue(queue.Config{Prefetch: -1}))
		if err := q.Pause(ctx, "for now"); err != nil {
			t.Fatal(err)
		}
		sess, err := looker.Session(ctx)
		if err != nil {
			t.Fatal(err)
		}
		want, err := q.Len(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var consumers atomic.Int32 // that are read
		reads := []zktest.Op{
			zktest.OpGetData, zktest.OpExists, zktest.OpGetChildren, zktest.OpMultiRead, zktest.OpPing,
		}
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Session == sess.ID() && !slices.Contains(reads, r.Op) {
				t.Errorf("a look asks for %v", r.Op)
			}
			if r.Op == zktest.OpGetData && strings.HasPrefix(r.Path, root+"/consumers/") {
				consumers.Add(1)
			}
			return zktest.Pass
		})
		got, err := queue.Summarize(ctx, looker, root, 1)
		if err != nil {
			t.Fatal(err)
		}
		if n := consumers.Load(); n != 1 {
			t.Errorf("it reads %d consumers, want the one that it is to tell of", n)
		}
		letters := 0
		for x, err := range queue.DeadLettersOf(ctx, looker, root) {
			if letters++; err != nil || x.Reason != "no" {
				t.Errorf("got the dead letter %+v, %v", x, err)
			}
		}
		w.Control(nil)
		if letters != 1 {
			t.Errorf("got %d dead letters, want one", letters)
		}
		if got.Consumers != 2 || len(got.Busiest) != 1 || got.Busiest[0].Claimed != 1 {
			t.Errorf("got %d, %+v, want two consumers, and the one that has an item", got.Consumers, got.Busiest)
		}
		if got.Counts != want || want != (queue.Counts{Ready: 3, Delayed: 1, Claimed: 1, Dead: 1, Waiting: 1}) {
			t.Errorf("got %+v, Len says %+v", got.Counts, want)
		}
		if got.Paused == nil || got.Paused.Reason != "for now" {
			t.Errorf("got %+v, want that it is paused", got.Paused)
		}
		if !got.Oldest.Equal(begun.Truncate(time.Millisecond)) {
			t.Errorf("got %v, want %v", got.Oldest, begun)
		}
	})
}

// A queue that is removed, or removed in part, is not made again by a look at it.
func TestSummarizeMakesNoQueue(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		q, sess := w.queueAndSession()
		if _, err := q.Put(ctx, queue.Message{}); err != nil {
			t.Fatal(err)
		}
		if err := sess.Delete(ctx, root+"/free", -1); err != nil {
			t.Fatal(err)
		}
		looker := w.Client(t, 20*time.Second)
		if _, err := queue.Summarize(ctx, looker, root, 1); !errors.Is(err, zk.NoNode) {
			t.Errorf("got %v, want zk.NoNode", err)
		}
		for x, err := range queue.DeadLettersOf(ctx, looker, root) {
			t.Errorf("got the dead letter %+v, %v; want none", x, err)
		}
		if _, there, err := sess.Exists(ctx, root+"/free"); there || err != nil {
			t.Errorf("it was made again: %v, %v", there, err)
		}
	})
}
