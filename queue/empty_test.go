package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zktest"
)

// awaitEmpty tells, in the background, when the queue is empty.
func awaitEmpty(ctx context.Context, q *queue.Queue) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- q.AwaitEmpty(ctx) }()
	return ended
}

// A queue is empty when nothing is left of it, in whatever state; and it costs nothing to wait for that.
func TestQueueIsEmptyWhenNothingIsLeft(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, other := w.queue(queue.Config{}), w.queue(queue.Config{})
		if err := q.AwaitEmpty(t.Context()); err != nil {
			t.Fatal(err)
		}
		put(t, other, "ready", queue.Message{})
		put(t, other, "delayed", queue.Message{Delay: time.Hour})
		putGroup(t, other, "g", 0, 2) // the second waits
		empty := awaitEmpty(t.Context(), q)
		waits := func(what string) {
			t.Helper()
			synctest.Wait()
			select {
			case err := <-empty:
				t.Fatalf("it is over with %s: %v", what, err)
			default:
			}
		}
		for left := range 3 {
			item := take(t, other)
			waits(fmt.Sprintf("an item that is claimed, the %dth", left))
			done(t, item)
			waits("a delayed item")
		}
		time.Sleep(time.Minute) // in which the consumer removes its watches
		var requests atomic.Int64
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op != zktest.OpPing {
				requests.Add(1)
			}
			return zktest.Pass
		})
		time.Sleep(30 * time.Minute)
		waits("a delayed item")
		if n := requests.Load(); n > 0 {
			t.Errorf("it has sent %d requests in half an hour", n)
		}
		w.Control(nil)
		item := take(t, other) // once it is due
		waits("the last item, which is claimed")
		if err := item.Fail(t.Context(), errors.New("not yet")); err != nil {
			t.Fatal(err)
		}
		waits("the last item, which has failed")
		done(t, take(t, other))
		if err := <-empty; err != nil {
			t.Error(err)
		}
		if err := q.AwaitEmpty(t.Context()); err != nil {
			t.Errorf("of a queue whose items are done: %v", err)
		}
	})
}

// Each item puts the next before it is finished, into another list or a bucket, so there is never none.
func TestQueueWhoseItemsPutOthersIsNeverEmpty(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const items = 60
		q, worker := w.queue(queue.Config{}), w.queue(queue.Config{})
		w.Delay(time.Millisecond)
		put(t, q, "0", queue.Message{})
		var over atomic.Bool
		empty := awaitEmpty(t.Context(), q)
		var wg sync.WaitGroup
		wg.Go(func() {
			defer over.Store(true)
			for i := range items {
				item := take(t, worker)
				if i+1 < items {
					next := queue.Message{Priority: i%7 - 3}
					if i%2 == 0 {
						next.Delay = time.Duration(1+i%5) * 10 * time.Millisecond
					}
					put(t, worker, strconv.Itoa(i+1), next)
				}
				if i+1 == items {
					over.Store(true)
				}
				done(t, item)
			}
		})
		if err := <-empty; err != nil || !over.Load() {
			t.Errorf("it was empty before the end, or: %v", err)
		}
		wg.Wait()
	})
}

// An item is each time where the wait does not look: it leaves the delayed items after a look at the ready ones, and
// the other way round.
func TestItemThatMovesWhileTheEndIsLookedForIsLeft(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, sess := w.queueAndSession()
		other := w.queue(queue.Config{})
		put(t, other, "a", queue.Message{})
		item := take(t, other)
		delay := func() {
			if err := item.Fail(t.Context(), errors.New("later")); err != nil {
				t.Error(err)
			}
		}
		steps := []struct {
			op   zktest.Op
			path string
			do   func()
		}{
			{zktest.OpGetChildren, root + "/ready/p1000", delay},
			{zktest.OpSync, root, func() { item = take(t, other) }},
			{zktest.OpGetChildren, root + "/ready/p1000", delay},
		}
		reached := make(chan struct{})
		var held []context.Context
		var releases []context.CancelFunc
		for range steps {
			ctx, release := context.WithCancel(t.Context())
			held, releases = append(held, ctx), append(releases, release)
		}
		next := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Session != sess.ID() || next == len(steps) || r.Op != steps[next].op || r.Path != steps[next].path {
				return zktest.Pass
			}
			next++
			reached <- struct{}{}
			return zktest.Until(held[next-1])
		})
		empty := awaitEmpty(t.Context(), q)
		for i, step := range steps {
			<-reached
			step.do()
			releases[i]()
		}
		synctest.Wait()
		select {
		case err := <-empty:
			t.Fatalf("it is over while there is an item: %v", err)
		default:
		}
		done(t, take(t, other))
		if err := <-empty; err != nil {
			t.Error(err)
		}
	})
}

func TestWaitForTheEndGoesOnAndEndsAsOthersDo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, sess := w.queueAndSession()
		other := w.queue(queue.Config{})
		put(t, other, "a", queue.Message{})
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		first, second := awaitEmpty(ctx, q), awaitEmpty(t.Context(), q)
		synctest.Wait()
		w.ExpireSession(sess.ID())
		cancel(enough)
		if err := <-first; !errors.Is(err, enough) {
			t.Errorf("got %v, want the context's cause", err)
		}
		third := awaitEmpty(t.Context(), q)
		done(t, take(t, other))
		for _, ended := range []<-chan error{second, third} {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		put(t, other, "b", queue.Message{})
		last := awaitEmpty(t.Context(), q)
		synctest.Wait()
		if err := q.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-last; !errors.Is(err, queue.ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
	})
}

// Promise: 7
func TestQueueWithNothingButForeignNodesIsEmpty(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		put(t, q, "a", queue.Message{})
		done(t, take(t, q))
		for _, list := range []string{"/ready/notes", "/ready/p5", "/ready/p1000", "/delayed/ba5"} {
			if list != "/ready/p1000" {
				foreign(t, w, root+list, root+list+"/s0000000001")
			}
			foreign(t, w, root+list+"/s0000000001/x", root+list+"/y", root+list+"/y/0000000000")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		endAfter(w, 5000, cancel)
		if err := q.AwaitEmpty(ctx); err != nil {
			t.Error(err)
		}
		id := put(t, q, "b", queue.Message{})
		empty := awaitEmpty(ctx, q)
		synctest.Wait()
		if err := q.Remove(ctx, id); err != nil {
			t.Error(err)
		}
		if err := <-empty; err != nil {
			t.Error(err)
		}
	})
}
