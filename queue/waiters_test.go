package queue_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// Another client deletes the node of a waiting consumer, in line or among the consumers: both go on, and wake.
//
// Promise: 7
func TestConsumersGoOnWaitingWhenSomebodyDeletesANodeOfTheirs(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"waiters", "consumers"} {
		for n, which := range []string{"first", "last"} {
			t.Run(dir+" "+which, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					producer, a, b := w.queue(queue.Config{}), w.queue(queue.Config{}), w.queue(queue.Config{})
					sess := w.Session(t, time.Minute)
					put(t, producer, "before", queue.Message{})
					done(t, take(t, producer))
					_ = producer.Close(t.Context())
					producer = w.queue(queue.Config{})
					ctx, cancel := context.WithCancel(t.Context())
					got := make(chan string)
					ended := make(chan error)
					var nodes []string // in the order in which the consumers have come
					for _, q := range []*queue.Queue{a, b} {
						go func() {
							ended <- q.Consume(ctx, 1, func(_ context.Context, item *queue.Item) error {
								got <- string(item.Body())
								return nil
							})
						}()
						synctest.Wait()
						names, _, err := sess.Children(t.Context(), root+"/"+dir)
						if err != nil {
							t.Fatal(err)
						}
						for _, name := range names {
							if !slices.Contains(nodes, name) {
								nodes = append(nodes, name)
							}
						}
					}
					if err := sess.Delete(t.Context(), root+"/"+dir+"/"+nodes[n], -1); err != nil {
						t.Fatal(err)
					}
					for i := range 4 {
						synctest.Wait()
						put(t, producer, strconv.Itoa(i), queue.Message{})
						select {
						case body := <-got:
							if body != strconv.Itoa(i) {
								t.Errorf("got item %s, want %d", body, i)
							}
						case err := <-ended:
							t.Fatalf("Consume ended: %v", err)
						case <-time.After(time.Minute):
							t.Fatalf("no taker was given item %d", i)
						}
					}
					cancel()
					for range 2 {
						if err := <-ended; err != nil {
							t.Error(err)
						}
					}
				})
			})
		}
	}
}

// What the servers refuse to take back is ours still, and is given back later.
func TestItemsThatAreRefusedToBeGivenBackAreGivenBackLater(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		producer, consumer, other := w.queue(queue.Config{}), w.queue(queue.Config{}), w.queue(queue.Config{})
		putAll(t, producer, 0, 100)
		for range 20 {
			done(t, take(t, consumer))
		}
		refused := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			if refused < 3 && len(r.Parts) == 3 && strings.Contains(r.Parts[1].Path, ".free.") {
				refused++
				return zktest.Answer(zk.QuotaExceeded)
			}
			return zktest.Pass
		})
		pass(time.Minute)
		n := 20
		takeAll(t, other, func(item *queue.Item) {
			wantBody(t, item, strconv.Itoa(n))
			n++
		})
		if n != 100 || refused != 3 {
			t.Errorf("the other consumer got %d items, want 80; %d times refused", n-20, refused)
		}
	})
}

// Time may have passed without this process: what it has claimed and not handed out yet is not its own any more at the
// moment at which its session is not certain, whichever timer runs first.
//
// Promise: 7
func TestNothingIsHandedOutWhenTheSessionIsNotCertain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for range 10 {
			producer, consumer := w.queue(queue.Config{}), w.queue(queue.Config{Linger: time.Hour})
			putAll(t, producer, 0, 60)
			var sess *zk.Session
			for range 20 {
				item := take(t, consumer)
				sess = item.Session()
				done(t, item)
			}
			w.HalfOpen(sess.ID())
			ctx, cancel := context.WithDeadline(t.Context(), sess.Certain().Add(time.Second))
			time.Sleep(time.Until(sess.Certain()))
			if item, err := consumer.Take(ctx); err == nil && item.Session() == sess {
				t.Errorf("got item %s", item.Body())
			}
			cancel()
			w.Heal()
			pass(time.Minute)
			takeAll(t, producer, func(*queue.Item) {})
		}
	})
}

// An item that another client has removed is not given back: there would be a claim on nothing.
//
// Promise: 7
func TestRetryOfARemovedItemSaysThatItIsGone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		putAll(t, q, 0, 2)
		item := take(t, q)
		sess := w.Session(t, time.Minute)
		if err := sess.Delete(t.Context(), item.Path(), -1); err != nil {
			t.Fatal(err)
		}
		if err := item.Fail(t.Context(), &queue.RetryError{}); !errors.Is(err, queue.ErrClaimLost) {
			t.Errorf("got %v, want ErrClaimLost", err)
		}
		names, _, err := sess.Children(t.Context(), root+"/claims")
		if err != nil || slices.ContainsFunc(names, func(n string) bool { return strings.Contains(n, ".free.") }) {
			t.Errorf("claims: %v, %v", names, err)
		}
		item = take(t, q)
		wantBody(t, item, "1")
		done(t, item)
		wantEmpty(t, q)
		w.NoNodes(t, root+"/claims")
	})
}

// Some of the items that no taker wants are given back, and the server refuses the rest: the consumer goes on with
// what comes first, which is no longer its own.
func TestOrderIsKeptWhenSomeItemsAreGivenBackAndOthersAreRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		reached := false
		for taken := 24; taken < 32; taken++ {
			q := w.queue(queue.Config{})
			putAll(t, q, 0, 100)
			doneInOrder(t, q, 0, taken)
			back := 0
			w.Control(func(r zktest.Request) zktest.Fault {
				if len(r.Parts) == 3 && strings.Contains(r.Parts[1].Path, ".free.") {
					if back++; back == 2 {
						return zktest.Answer(zk.QuotaExceeded)
					}
				}
				return zktest.Pass
			})
			pass(1100 * time.Millisecond) // the time after which items that no taker wants go back
			synctest.Wait()
			reached = reached || back >= 2
			w.Control(nil)
			doneInOrder(t, q, taken, 100)
			if err := q.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if !reached {
			t.Error("it never had two claims to give back")
		}
	})
}
