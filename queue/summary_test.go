package queue_test

import (
	"errors"
	"maps"
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
		var listing atomic.Bool // that of items asks the server to catch up
		w.Control(func(r zktest.Request) zktest.Fault {
			sync := r.Op == zktest.OpSync && listing.Load()
			if r.Session == sess.ID() && !slices.Contains(reads, r.Op) && !sync {
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
		listing.Store(true)
		items := make(map[queue.State]int)
		for _, state := range []queue.State{queue.Ready, queue.Delayed, queue.Claimed, queue.Dead, queue.Waiting} {
			for x, err := range queue.ItemsOf(ctx, looker, root, state) {
				if items[state]++; err != nil || x.State != state {
					t.Errorf("%v: got the item %+v, %v", state, x, err)
				}
				if state == queue.Dead && x.Reason != "no" {
					t.Errorf("the dead letter has the reason %q", x.Reason)
				}
			}
		}
		w.Control(nil)
		if want := map[queue.State]int{
			queue.Ready: 3, queue.Delayed: 1, queue.Claimed: 1, queue.Dead: 1, queue.Waiting: 1,
		}; !maps.Equal(items, want) {
			t.Errorf("got items %v, want %v", items, want)
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
		for x, err := range queue.ItemsOf(ctx, looker, root, queue.Dead) {
			t.Errorf("got the dead letter %+v, %v; want none", x, err)
		}
		if _, there, err := sess.Exists(ctx, root+"/free"); there || err != nil {
			t.Errorf("it was made again: %v, %v", there, err)
		}
	})
}

// Items that are put, become due or are tried again come; those that are done, fail or are rejected go.
func TestSummariesTellWhatCameAndWent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		q := w.queue(queue.Config{Prefetch: -1})
		put := func(m queue.Message) {
			t.Helper()
			if _, err := q.Put(ctx, m); err != nil {
				t.Fatal(err)
			}
		}
		look := func() queue.Summary {
			t.Helper()
			s, err := queue.Summarize(ctx, w.Client(t, 20*time.Second), root, 0)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		check := func(before, now queue.Summary, want queue.Flow) {
			t.Helper()
			if got := now.Since(before); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
		put(queue.Message{})
		first := look()
		put(queue.Message{})
		put(queue.Message{Priority: 3})
		put(queue.Message{Delay: time.Minute})
		check(first, look(), queue.Flow{In: 2})
		if err := take(t, q).Done(ctx); err != nil {
			t.Fatal(err)
		}
		if err := take(t, q).Fail(ctx, &queue.RetryError{Err: errors.New("later"), After: time.Minute}); err != nil {
			t.Fatal(err)
		}
		if err := take(t, q).Reject(ctx, "no"); err != nil {
			t.Fatal(err)
		}
		second := look()
		check(first, second, queue.Flow{In: 2, Out: 3})
		time.Sleep(2 * time.Minute) // in the world's time
		// What is due becomes ready when a consumer looks.
		given := take(t, q)
		check(second, look(), queue.Flow{In: 2})
		if err := given.Return(ctx, 0); err != nil {
			t.Fatal(err)
		}
		if err := take(t, q).Fail(ctx, &queue.RetryError{}); err != nil { // at once, in its place
			t.Fatal(err)
		}
		check(second, look(), queue.Flow{In: 2})
		if _, err := q.Requeue(ctx); err != nil {
			t.Fatal(err)
		}
		check(second, look(), queue.Flow{In: 3})
		if err := take(t, q).Return(ctx, time.Minute); err != nil {
			t.Fatal(err)
		}
		check(second, look(), queue.Flow{In: 3, Out: 1})
	})
}
