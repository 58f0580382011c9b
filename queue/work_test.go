package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// Promise: 7
func TestEachItemCostsOneWrite(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{Linger: time.Hour})
		put(t, q, "warm", queue.Message{})
		done(t, take(t, q))
		const n = 3000
		count := func(what string, most int, f func()) {
			t.Helper()
			synctest.Wait() // what went before may still look for the next item
			before := w.Traffic().Requests
			f()
			after := w.Traffic().Requests
			total := 0
			for op, k := range after {
				if op != zktest.OpPing {
					total += k - before[op]
				}
			}
			if total > most {
				t.Errorf("%s: %d requests, want %d at most", what, total, most)
			}
		}
		count("put one by one", 102, func() {
			for range 100 {
				put(t, q, "a", queue.Message{})
			}
		})
		count("put at once", 5, func() { putAll(t, q, 0, n) })
		count("take and acknowledge one by one", (n+100)*115/100, func() {
			for range n + 100 {
				done(t, take(t, q))
			}
		})
	})
}

// Promise: 7
func TestPutWakesFewOfThoseWhoWait(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const n = 20
		producer := w.queue(queue.Config{})
		got := make(chan *queue.Item)
		for range n {
			q := w.queue(queue.Config{})
			go takeInto(t, q, got)
			time.Sleep(time.Second)
		}
		for i := range n {
			before := w.Traffic().Events
			put(t, producer, "a", queue.Message{Priority: i % 3, Delay: time.Duration(i%2) * time.Minute})
			done(t, <-got)
			synctest.Wait()
			if woken := w.Traffic().Events - before; woken > 8 { // a new ready list and a delay cost some of their own
				t.Errorf("put %d sent %d events", i, woken)
			}
		}
	})
}

// Promise: 7
func TestConsumersShareTheWorkAndEachItemIsDeliveredOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const n, consumers = 3000, 8
		var mu sync.Mutex
		seen := make(map[string]int)
		by := make([]int, consumers)
		last := make(map[queue.Token]int) // of each claim
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var wg sync.WaitGroup
		for c := range consumers {
			q := w.queue(queue.Config{})
			wg.Go(func() {
				if err := q.Consume(ctx, 1+c%2, func(_ context.Context, item *queue.Item) error {
					mu.Lock()
					defer mu.Unlock()
					seen[string(item.Body())]++
					by[c]++
					var i int
					if _, err := fmt.Sscan(string(item.Body()), &i); err != nil {
						t.Error(err)
					}
					if before, ok := last[item.Token()]; c%2 == 0 && ok && i < before {
						t.Errorf("consumer %d got %d after %d", c, i, before)
					}
					last[item.Token()] = i
					if len(seen) == n {
						stop()
					}
					return nil
				}); err != nil {
					t.Error(err)
				}
			})
		}
		producer := w.queue(queue.Config{}.WithSegment(100))
		for i := 0; i < n; i += 50 {
			putAll(t, producer, i, i+50)
			time.Sleep(time.Millisecond)
		}
		wg.Wait()
		for body, times := range seen {
			if times != 1 {
				t.Errorf("item %s was delivered %d times", body, times)
			}
		}
		wantLen(t, producer, queue.Counts{})
		if slices.Max(by) == n {
			t.Errorf("one consumer has done it all: %v", by)
		}
	})
}

// Promise: 7
func TestItemsThatNobodyTakesAreGivenBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, other := w.queue(queue.Config{Linger: 10 * time.Second}), w.queue(queue.Config{})
		putAll(t, q, 0, 100)
		for range 30 {
			done(t, take(t, q))
		}
		held := take(t, q)
		wantBody(t, held, "30")
		time.Sleep(11 * time.Second)
		wantLen(t, q, queue.Counts{Ready: 69, Claimed: 1})
		for i := 31; i < 100; i++ {
			item := take(t, other)
			wantBody(t, item, strconv.Itoa(i))
			if item.Attempt() != 1 {
				t.Errorf("item %d: attempt %d", i, item.Attempt())
			}
			done(t, item)
		}
		done(t, held)
		wantLen(t, q, queue.Counts{})
	})
}

// Promise: 7
func TestCloseGivesBackWhatWasNotHandedOut(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, other := w.queue(queue.Config{Linger: time.Hour}), w.queue(queue.Config{})
		putAll(t, q, 0, 50)
		for range 20 {
			done(t, take(t, q))
		}
		held := take(t, q)
		if err := q.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := q.Take(t.Context()); !errors.Is(err, queue.ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
		wantBody(t, take(t, other), "21")
		done(t, held)
		synctest.Wait()
		sess := w.Session(t, time.Minute)
		names, _, err := sess.Children(t.Context(), root+"/consumers")
		if err != nil || len(names) != 1 {
			t.Errorf("got consumers %v, %v, want the other's", names, err)
		}
	})
}

func TestHandlerSaysWhenItsItemIsDeliveredAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{Backoff: queue.Backoff{First: time.Hour}})
		put(t, q, "a", queue.Message{})
		ctx, stop := context.WithCancel(t.Context())
		var times []time.Time
		err := q.Consume(ctx, 1, func(_ context.Context, item *queue.Item) error {
			times = append(times, time.Now())
			switch failures := item.Failures(); len(times) {
			case 1:
				return fmt.Errorf("wrapped: %w", &queue.RetryError{Err: errors.New("busy"), After: time.Minute})
			case 2:
				if len(failures) != 1 || failures[0].Reason != "wrapped: busy" {
					t.Errorf("got failures %v, want the one", failures)
				}
				return &queue.RetryError{}
			}
			stop()
			if item.Attempt() != 3 {
				t.Errorf("got attempt %d, want 3", item.Attempt())
			}
			return nil
		})
		if err != nil || len(times) != 3 {
			t.Fatal(err, times)
		}
		if got := times[1].Sub(times[0]); got < time.Minute || got > time.Minute+2*time.Second {
			t.Errorf("the second attempt came after %v, want a minute", got)
		}
		if got := times[2].Sub(times[1]); got > time.Second {
			t.Errorf("the third attempt came after %v, want none", got)
		}
	})
}

func TestFailuresBackOffAndEndAmongTheDeadLetters(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{MaxAttempts: 3, Backoff: queue.Backoff{First: time.Minute, Max: time.Hour}})
		put(t, q, "bad", queue.Message{Priority: 7})
		put(t, q, "worse", queue.Message{Priority: 9})
		ctx, stop := context.WithCancel(t.Context())
		var times []time.Time
		dead := 0
		err := q.Consume(ctx, 1, func(_ context.Context, item *queue.Item) error {
			if string(item.Body()) == "worse" {
				dead++
				return &queue.RejectError{Err: errors.New("never")}
			}
			times = append(times, time.Now())
			if item.Attempt() != len(times) || item.Priority() != 7 || len(item.Failures()) != len(times)-1 {
				t.Errorf("attempt %d of priority %d, failures %v", item.Attempt(), item.Priority(), item.Failures())
			}
			if len(times) == 3 {
				stop()
			}
			return fmt.Errorf("no %d", len(times))
		})
		if err != nil || len(times) != 3 || dead != 1 {
			t.Fatal(err, times, dead)
		}
		for i, want := range []time.Duration{time.Minute, 2 * time.Minute} {
			if got := times[i+1].Sub(times[i]); got < want*9/10 || got > want*11/10+2*time.Second {
				t.Errorf("attempt %d came after %v, want about %v", i+2, got, want)
			}
		}
		var letters []queue.DeadLetter
		for letter, err := range q.DeadLetters(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			letters = append(letters, letter)
		}
		if len(letters) != 2 || letters[0].Reason != "never" ||
			letters[1].Reason != "3 attempts failed, the last one: no 3" ||
			letters[1].Attempts != 3 || letters[1].Priority != 7 || len(letters[1].Failures) != 3 {
			t.Fatalf("got %+v", letters)
		}
		if n, err := q.Requeue(t.Context(), letters[1].ID); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		item := take(t, q)
		wantBody(t, item, "bad")
		if item.Attempt() != 1 || item.ID() != letters[1].ID || item.Priority() != 7 {
			t.Errorf("requeued: %d %s %d", item.Attempt(), item.ID(), item.Priority())
		}
		done(t, item)
		if n, err := q.PurgeDead(t.Context()); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		wantLen(t, q, queue.Counts{})
	})
}

// Promise: 7
func TestItemThatKillsItsConsumersDies(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		producer := w.queue(queue.Config{})
		putAll(t, producer, 0, 5)
		for i := range 3 {
			q := w.queue(queue.Config{MaxAttempts: 3, Linger: time.Hour})
			item := take(t, q)
			if string(item.Body()) != "0" || item.Attempt() != i+1 {
				t.Fatalf("consumer %d got %q, attempt %d", i, item.Body(), item.Attempt())
			}
			w.ExpireSession(item.Session().ID())
			<-item.Context().Done()
		}
		q := w.queue(queue.Config{MaxAttempts: 3})
		doneInOrder(t, q, 1, 5)
		wantLen(t, q, queue.Counts{Dead: 1})
	})
}

func TestConsumeStopsWithoutDroppingItsWork(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		putAll(t, q, 0, 10)
		ctx, stop := context.WithCancel(t.Context())
		handled := 0
		err := q.Consume(ctx, 1, func(ctx context.Context, _ *queue.Item) error {
			stop()
			time.Sleep(time.Minute)
			handled++
			return ctx.Err()
		})
		if err != nil || handled != 1 {
			t.Fatal(err, handled)
		}
		wantLen(t, q, queue.Counts{Ready: 9})
	})
}

// Promise: 7
func TestDoneWithWritesIsAllOrNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		putAll(t, q, 0, 1)
		item := take(t, q)
		err := item.Done(t.Context(), zk.CreateOp("/a", nil, zk.Persistent), zk.DeleteOp("/missing", -1))
		if !errors.Is(err, zk.NoNode) {
			t.Fatalf("got %v, want NoNode", err)
		}
		if err := item.Context().Err(); err != nil {
			t.Fatalf("the item is not ours any more: %v", err)
		}
		if err := item.Done(t.Context(), zk.CreateOp("/a", nil, zk.Persistent)); err != nil {
			t.Fatal(err)
		}
		if err := item.Done(t.Context()); !errors.Is(err, queue.ErrFinished) {
			t.Errorf("got %v, want ErrFinished", err)
		}
		if !errors.Is(context.Cause(item.Context()), queue.ErrFinished) {
			t.Errorf("got %v, want ErrFinished", context.Cause(item.Context()))
		}
		wantLen(t, q, queue.Counts{})
	})
}

func TestTakeBatchTakesWhatIsThere(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{}.WithSegment(10))
		putAll(t, q, 0, 25)
		var all []*queue.Item
		for _, want := range []int{12, 13} {
			items, err := q.TakeBatch(t.Context(), map[int]int{12: 12, 13: 1000}[want])
			if err != nil || len(items) != want {
				t.Fatalf("got %d items, %v, want %d", len(items), err, want)
			}
			all = append(all, items...)
		}
		for i, item := range all {
			wantBody(t, item, strconv.Itoa(i))
		}
		wantLen(t, q, queue.Counts{Claimed: 25})
		for _, item := range slices.Backward(all) {
			done(t, item)
		}
		wantLen(t, q, queue.Counts{})
		synctest.Wait()
		w.NoNodes(t, root+"/claims")
	})
}

func TestPurgeLeavesWhatIsClaimed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, other := w.queue(queue.Config{}), w.queue(queue.Config{})
		putAll(t, q, 0, 2200)
		put(t, q, "later", queue.Message{Delay: time.Hour})
		held := take(t, other)
		if n, err := q.Purge(t.Context()); n != 2200 || err != nil {
			t.Fatalf("purged %d, %v", n, err)
		}
		done(t, held)
		wantLen(t, q, queue.Counts{})
		wantEmpty(t, q)
	})
}

// No consumer has worked on what is purged.
//
// Promise: 7
func TestPurgeTellsNoHook(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var told atomic.Int32
		q := w.queue(queue.Config{Hooks: queue.Hooks{
			Claimed: func(context.Context, *queue.Item) { told.Add(1) },
			Done:    func(context.Context, *queue.Item) { told.Add(1) },
			Ended:   func(context.Context, *queue.Item, queue.ItemEnd) { told.Add(1) },
		}})
		putAll(t, q, 0, 50)
		if n, err := q.Purge(t.Context()); n != 50 || err != nil {
			t.Fatalf("purged %d, %v", n, err)
		}
		if n := told.Load(); n != 0 {
			t.Errorf("hooks were told %d times", n)
		}
	})
}

// Promise: 7
func TestAgeDoesNotCountWhatCameBeforeAnItemWasReady(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		put(t, q, "first", queue.Message{})
		put(t, q, "a", queue.Message{Delay: time.Hour, Priority: 5})
		pass(time.Hour + time.Second)
		done(t, take(t, q)) // a consumer that looks makes ready what is due
		wantAge := func(when string, want time.Duration) {
			t.Helper()
			age, err := q.Age(t.Context())
			if err != nil || age < want || age > want+10*time.Second {
				t.Errorf("%s: got %v, %v, want %v", when, age, err, want)
			}
		}
		wantAge("just ready", 0)
		pass(time.Minute)
		wantAge("a minute later", time.Minute)
		if err := take(t, q).Return(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		wantAge("given back", time.Minute)
	})
}

func TestPeekAndAgeTakeNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		if _, err := q.Age(t.Context()); !errors.Is(err, queue.ErrEmpty) {
			t.Errorf("got %v, want ErrEmpty", err)
		}
		id := put(t, q, "a", queue.Message{Priority: 3})
		time.Sleep(time.Minute)
		put(t, q, "b", queue.Message{})
		p, err := q.Peek(t.Context())
		if err != nil || string(p.Body) != "b" {
			t.Fatalf("got %+v, %v", p, err)
		}
		age, err := q.Age(t.Context())
		if err != nil || age < time.Minute || age > time.Minute+time.Second {
			t.Errorf("got %v, %v, want a minute", age, err)
		}
		done(t, take(t, q))
		if p, err := q.Peek(t.Context()); err != nil || p.ID != id || p.Priority != 3 {
			t.Errorf("got %+v, %v", p, err)
		}
		wantLen(t, q, queue.Counts{Ready: 1})
	})
}

func TestItemsListsWhatIsReadyInItsOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, other := w.queue(queue.Config{}.WithSegment(10)), w.queue(queue.Config{})
		putAll(t, q, 0, 45)
		put(t, q, "urgent", queue.Message{Priority: -1})
		items, err := other.TakeBatch(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		if err := items[4].Fail(t.Context(), &queue.RetryError{}); err != nil {
			t.Fatal(err)
		}
		want := []string{"3"}
		for i := 9; i < 45; i++ {
			want = append(want, strconv.Itoa(i))
		}
		var got []string
		for p, err := range q.Items(t.Context(), queue.Ready) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(p.Body))
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		for p, err := range q.Items(t.Context(), queue.Ready) {
			if err != nil || string(p.Body) != "3" {
				t.Errorf("got %q first, %v", p.Body, err)
			}
			break
		}
	})
}

// Promise: 7
func TestTakeLeavesNothingBehindWhenItsCallerLeaves(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if _, err := q.Take(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want DeadlineExceeded", err)
			}
			cancel()
		}
		synctest.Wait()
		w.NoNodes(t, root+"/waiters")
		w.NoNodes(t, root+"/claims")
		put(t, q, "a", queue.Message{})
		done(t, take(t, q))
	})
}

// Promise: 7
func TestSegmentsGoWhenTheyAreEmpty(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, other := w.queue(queue.Config{}.WithSegment(10)), w.queue(queue.Config{}.WithSegment(10))
		putAll(t, q, 0, 200)
		var held []*queue.Item
		for i := range 200 {
			item := take(t, []*queue.Queue{q, other}[i%2])
			if i%50 == 0 {
				held = append(held, item)
				continue
			}
			done(t, item)
		}
		for _, item := range held {
			done(t, item)
		}
		synctest.Wait()
		names, _, err := w.Session(t, time.Minute).Children(t.Context(), root+"/ready/p1000")
		if err != nil || len(names) > 4 {
			t.Errorf("left: %v, %v", names, err)
		}
		putAll(t, q, 200, 230)
		doneInOrder(t, other, 200, 230)
	})
}

// Promise: 7
func TestHooksTellWhatHappens(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var log []string
		say := func(format string, args ...any) { log = append(log, fmt.Sprintf(format, args...)) }
		q := w.queue(queue.Config{Hooks: queue.Hooks{
			Put:     func(_ context.Context, _ string, n int) { say("put %d", n) },
			Claimed: func(_ context.Context, item *queue.Item) { say("claimed %d", item.Attempt()) },
			Done:    func(context.Context, *queue.Item) { say("done") },
			Retried: func(_ context.Context, _ *queue.Item, d time.Duration) { say("retried %v", d) },
			Dead:    func(_ context.Context, _, reason string) { say("dead %s", reason) },
		}})
		putAll(t, q, 0, 2)
		if err := take(t, q).Fail(t.Context(), &queue.RetryError{}); err != nil {
			t.Fatal(err)
		}
		done(t, take(t, q))
		if err := take(t, q).Reject(t.Context(), "bad"); err != nil {
			t.Fatal(err)
		}
		want := []string{"put 2", "claimed 1", "retried 0s", "claimed 2", "done", "claimed 1", "dead bad"}
		if !slices.Equal(log, want) {
			t.Errorf("got %q, want %q", log, want)
		}
	})
}

// Promise: 7
func TestKeysAreForgottenInTheirTime(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		cfg := queue.Config{KeepKeys: time.Hour}
		id, added, err := w.queue(cfg).PutOnce(t.Context(), "k", queue.Message{Body: []byte("a")})
		if err != nil || !added {
			t.Fatal(added, err)
		}
		q := w.queue(cfg) // the producer, restarted
		done(t, take(t, q))
		time.Sleep(59 * time.Minute)
		again, added, err := q.PutOnce(t.Context(), "k", queue.Message{Body: []byte("a")})
		if err != nil || added || again != id {
			t.Fatal(again, added, err)
		}
		time.Sleep(2 * time.Minute)
		put(t, q, "b", queue.Message{}) // tells the time
		again, added, err = q.PutOnce(t.Context(), "k", queue.Message{Body: []byte("a")})
		if err != nil || !added || again == id {
			t.Fatal(again, added, err)
		}
	})
}

// The session ends while a batch is waited for: what had been claimed for it under that session is not the caller's any
// more.
func TestTakeBatchReturnsNothingThatWasLostMeanwhile(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{}.WithSegment(10))
		putAll(t, q, 0, 20)
		claims := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			for _, part := range r.Parts {
				if part.Op == zktest.OpCreate && strings.HasPrefix(part.Path, root+"/claims/") {
					if claims++; claims == 2 {
						return zktest.Answer(zk.SessionExpired)
					}
				}
			}
			return zktest.Pass
		})
		items, err := q.TakeBatch(t.Context(), 20)
		if err != nil || claims < 3 {
			t.Fatalf("got %d items after %d claims, %v", len(items), claims, err)
		}
		for _, item := range items {
			done(t, item)
		}
		w.Control(nil)
		pass(time.Minute) // the server hears of the end of the session by its timeout
		rest := 0
		takeAll(t, q, func(*queue.Item) { rest++ })
		if len(items)+rest != 20 {
			t.Errorf("got %d items, and then %d, want 20", len(items), rest)
		}
	})
}

func TestSegmentsOfOneProducerAreFull(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{}.WithSegment(10))
		for range 25 {
			put(t, q, "", queue.Message{})
		}
		for i, want := range []int{10, 10, 5} {
			if got := len(w.children(fmt.Sprintf("%s/s%010d", line0, i+1))); got != want {
				t.Errorf("segment %d has %d items, want %d", i+1, got, want)
			}
		}
	})
}
