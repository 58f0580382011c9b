package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// An item that this consumer may not read stops it there, with an error that names the item. Items before it are
// delivered, and those behind it are free for consumers that may read it.
//
// Promise: 7
func TestItemThatMayNotBeReadIsLeftToOthers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		private, _ := w.login(t)
		insider, err := queue.New(private, root, queue.Config{ACL: zk.CreatorACL(), AnyACL: true})
		if err != nil {
			t.Fatal(err)
		}
		outsider := w.queue(queue.Config{})
		putAll(t, outsider, 0, 30)
		put(t, insider, "30", queue.Message{})
		putAll(t, outsider, 31, 61)
		seen := 0
		for range 5 {
			err := outsider.Consume(t.Context(), 1, func(_ context.Context, item *queue.Item) error {
				wantBody(t, item, strconv.Itoa(seen))
				seen++
				return nil
			})
			if !errors.Is(err, zk.NoAuth) || !strings.Contains(err.Error(), "/0000000030") {
				t.Errorf("got %v, want NoAuth and the item", err)
			}
		}
		if seen != 30 {
			t.Errorf("got %d items before the one that may not be read, want 30", seen)
		}
		wantLen(t, outsider, queue.Counts{Ready: 31}) // none of them is claimed
		for i := 30; i < 61; i++ {
			item := take(t, insider)
			wantBody(t, item, strconv.Itoa(i))
			done(t, item)
		}
	})
}

// What this consumer may not read, and the server refuses to take back, is given back later: it does not stay with the
// consumer until its session ends.
func TestClaimThatCanNeitherBeReadNorGivenBackIsTriedAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		private, _ := w.login(t)
		insider, err := queue.New(private, root, queue.Config{ACL: zk.CreatorACL(), AnyACL: true})
		if err != nil {
			t.Fatal(err)
		}
		outsider := w.queue(queue.Config{})
		putAll(t, outsider, 0, 3)
		put(t, insider, "3", queue.Message{})
		putAll(t, outsider, 4, 8)
		refused := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			if refused < 3 && len(r.Parts) == 3 && strings.HasSuffix(r.Parts[2].Path, "/bell") {
				refused++
				return zktest.Answer(zk.QuotaExceeded)
			}
			return zktest.Pass
		})
		if items, err := outsider.TakeBatch(t.Context(), 8); !errors.Is(err, zk.QuotaExceeded) {
			t.Errorf("got %v, %v, want QuotaExceeded", items, err)
		}
		wantLen(t, insider, queue.Counts{Claimed: 8})
		got := make(chan *queue.Item, 1)
		go takeInto(t, outsider, got) // that a taker waits is no reason to keep them
		item := <-got
		wantBody(t, item, "0")
		done(t, item)
		if refused != 3 {
			t.Errorf("refused %d times, want 3", refused)
		}
		pass(5 * time.Second)
		wantLen(t, insider, queue.Counts{Ready: 7})
		doneInOrder(t, insider, 1, 8)
	})
}

// Items that are too many for an answer that the consumer accepts are read in several.
//
// Promise: 7
func TestConsumerWithSmallFramesReadsFewItemsAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		producer := w.queue(queue.Config{})
		consumer := w.queueWithSmallFrames()
		var messages []queue.Message
		for i := range 100 {
			messages = append(messages, queue.Message{Body: fmt.Appendf(nil, "%3900d", i)})
		}
		if _, err := producer.PutBatch(t.Context(), messages); err != nil {
			t.Fatal(err)
		}
		items, err := consumer.TakeBatch(t.Context(), 100)
		if err != nil || len(items) != 100 {
			t.Fatalf("got %d items, %v, want 100", len(items), err)
		}
		if err := consumer.DoneAll(t.Context(), items); err != nil {
			t.Fatal(err)
		}
		wantLen(t, producer, queue.Counts{})
	})
}

// A consumer that finds one of its claims removed by hand gives up the others, too: another consumer gets what it has
// not finished.
//
// Promise: 7
func TestConsumerWhoseClaimIsRemovedGivesUpTheOthers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		producer, q, other := w.queue(queue.Config{}), w.queue(queue.Config{}), w.queue(queue.Config{})
		sess := w.Session(t, time.Minute)
		putAll(t, producer, 0, 30)
		first, err := q.TakeBatch(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		names, _, err := sess.Children(t.Context(), root+"/claims")
		if err != nil || len(names) != 1 {
			t.Fatalf("claims: %v, %v", names, err)
		}
		second, err := q.TakeBatch(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		if err := sess.Delete(t.Context(), root+"/claims/"+names[0], -1); err != nil {
			t.Fatal(err)
		}
		if err := first[0].Done(t.Context()); !errors.Is(err, queue.ErrClaimLost) {
			t.Errorf("got %v, want ErrClaimLost", err)
		}
		if err := second[0].Context().Err(); err == nil {
			t.Error("the consumer that works on an item of another claim is not told")
		}
		pass(20 * time.Second)
		for i := 10; i < 30; i++ {
			item := take(t, other)
			wantBody(t, item, strconv.Itoa(i))
			done(t, item)
		}
		put(t, producer, "30", queue.Message{})
		wantBody(t, take(t, q), "30") // it goes on as another consumer
	})
}

// Items that the server refuses to take back are given back later, or handed out.
//
// Promise: 7
func TestItemsThatCannotBeGivenBackAreTriedAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		producer, q, other := w.queue(queue.Config{}), w.queue(queue.Config{}), w.queue(queue.Config{})
		putAll(t, producer, 0, 100)
		for i := range 20 {
			item := take(t, q)
			wantBody(t, item, strconv.Itoa(i))
			done(t, item)
		}
		refused := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			if refused < 2 && len(r.Parts) == 3 && strings.HasSuffix(r.Parts[2].Path, "/bell") {
				refused++
				return zktest.Answer(zk.QuotaExceeded)
			}
			return zktest.Pass
		})
		pass(1500 * time.Millisecond) // refused once: the consumer has them still
		item := take(t, q)
		wantBody(t, item, "20")
		done(t, item)
		pass(time.Minute)
		synctest.Wait()
		if refused != 2 {
			t.Fatalf("refused %d times, want 2", refused)
		}
		for i := 21; i < 100; i++ {
			item := take(t, other)
			wantBody(t, item, strconv.Itoa(i))
			done(t, item)
		}
	})
}
