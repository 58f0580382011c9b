package queue_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zktest"
)

// crowd is consumers with a session each, which finish an item in 20 ms.
type crowd struct {
	finished atomic.Int64
	all      chan struct{} // closed when so many are finished as there are
	stop     context.CancelFunc
	wg       sync.WaitGroup
}

func (w *world) crowd(t *testing.T, consumers, items int) *crowd {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	c := &crowd{all: make(chan struct{}), stop: stop}
	for range consumers {
		q := w.queue(queue.Config{})
		c.wg.Go(func() {
			err := q.Consume(ctx, 1, func(context.Context, *queue.Item) error {
				time.Sleep(20 * time.Millisecond)
				if c.finished.Add(1) == int64(items) {
					close(c.all)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	return c
}

// away ends the consumers.
func (c *crowd) away() {
	c.stop()
	c.wg.Wait()
}

// However many consumers there are, each gets its items as quickly, and for as few requests, as if it were alone, on
// a network that takes a millisecond each way.
//
// Promise: 7
func TestManyConsumersDoNotStandInEachOthersWay(t *testing.T) {
	t.Parallel()
	for _, consumers := range soak.Pick([]int{1, 64}, []int{1, 32, 64, 128, 256}) {
		t.Run(strconv.Itoa(consumers), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				const each = 50
				took := w.finishFrom(t, time.Millisecond, consumers, each, 4) // mostly 3 to 3.5
				if want := 2 * each * 20 * time.Millisecond; took > want {
					t.Errorf("took %v, want half of what one by itself does, which would be %v", took, want)
				}
			})
		})
	}
}

// Consumers far from the servers spend their time on items, too, rather than on claims.
func TestConsumersFarFromTheServersClaimMoreAtOnce(t *testing.T) {
	t.Parallel()
	for _, consumers := range soak.Pick([]int{1, 12}, []int{1, 32}) {
		t.Run(strconv.Itoa(consumers), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.finishFrom(t, 100*time.Millisecond, consumers, 50, 6)
			})
		})
	}
}

// finishFrom has consumers finish so many items each on a network with a delay each way, and returns how long they
// took. It fails the test if they need more requests an item than the limit.
func (w *world) finishFrom(t *testing.T, delay time.Duration, consumers, each int, limit float64) time.Duration {
	t.Helper()
	putAll(t, w.queue(queue.Config{}), 0, consumers*each)
	w.Delay(delay)
	var requests atomic.Int64
	w.Control(func(zktest.Request) zktest.Fault {
		requests.Add(1)
		return zktest.Pass
	})
	began := time.Now()
	c := w.crowd(t, consumers, consumers*each)
	<-c.all
	took := time.Since(began) // by the bubble's clock, which only waiting moves
	perItem := float64(requests.Load()) / float64(consumers*each)
	w.Control(nil)
	w.Delay(0)
	c.away()
	t.Logf("%d consumers: %.2f requests an item, %v for %d items each", consumers, perItem, took, each)
	if perItem > limit {
		t.Errorf("%.2f requests an item, want %v at most", perItem, limit)
	}
	return took
}

// The items that a consumer had when it was lost are divided among the waiting consumers.
//
// Promise: 7
func TestItemsOfALostConsumerAreDividedAmongTheOthers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const consumers, items = 32, 960
		putAll(t, w.queue(queue.Config{}), 0, items)
		held, err := w.queue(queue.Config{}).TakeBatch(t.Context(), items)
		if err != nil {
			t.Fatal(err)
		}
		w.Delay(time.Millisecond)
		c := w.crowd(t, consumers, items)
		time.Sleep(time.Second)
		synctest.Wait()
		if n := c.finished.Load(); n != 0 {
			t.Fatalf("%d items are finished that another consumer has", n)
		}
		began := time.Now()
		w.ExpireSession(held[0].Session().ID())
		<-c.all
		took := time.Since(began) // by the bubble's clock
		w.Delay(0)
		c.away()
		t.Logf("took %v; each of the %d consumers works for %v, if all have as many",
			took, consumers, items/consumers*20*time.Millisecond)
		if took > 2*time.Second {
			t.Errorf("took %v, want 2 s at most", took)
		}
	})
}

// waiter returns a queue whose consumer waits for an item, with its session.
func (w *world) waiter(t *testing.T, got chan<- *queue.Item) int64 {
	t.Helper()
	q, sess := w.queueAndSession()
	go takeInto(t, q, got)
	synctest.Wait()
	return sess.ID()
}

// An item that is given back after a consumer that is about to wait has looked for such items, and before it has set
// its watches, is not left there.
//
// Promise: 7
func TestItemThatIsGivenBackWhileAnotherGoesToWaitIsTaken(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		producer, holder := w.queue(queue.Config{}), w.queue(queue.Config{})
		put(t, producer, "before", queue.Message{}) // the ready list exists
		done(t, take(t, holder))
		got := make(chan *queue.Item, 1)
		waiter := w.waiter(t, got)
		looks, look := context.WithCancel(t.Context())
		asks, ask := context.WithCancel(t.Context())
		steps := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			switch {
			case r.Session != waiter:
			case steps == 0 && r.Path == root+"/ready/p1000":
				steps++ // it has looked for what was given back, and looks for what is new
				return zktest.Until(looks)
			case steps == 1 && r.Path == root+"/ready/p1000/bell":
				steps++
				return zktest.Until(asks)
			}
			return zktest.Pass
		})
		put(t, producer, "0", queue.Message{})
		synctest.Wait()
		item := take(t, holder)
		look()
		synctest.Wait()
		if err := item.Return(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		ask()
		if steps != 2 {
			t.Fatalf("the consumer was held up at %d steps, want 2", steps)
		}
		synctest.Wait()
		select {
		case item := <-got:
			wantBody(t, item, "0")
		default:
			t.Error("an item is ready, and the consumer that waits for one is not told")
			put(t, producer, "1", queue.Message{})
			<-got
		}
	})
}

// A consumer that another client takes for dead cannot claim any more: the claim would be free for all while the
// items are delivered.
//
// Promise: 7
func TestClaimOfAConsumerWhoseNodeIsGoneIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		producer, q := w.queue(queue.Config{}), w.queue(queue.Config{})
		sess := w.Session(t, time.Minute)
		put(t, producer, "0", queue.Message{})
		done(t, take(t, q))
		pass(time.Minute) // it has given back everything
		claims, claim := context.WithCancel(t.Context())
		held := false
		w.Control(func(r zktest.Request) zktest.Fault {
			if !held && len(r.Parts) > 2 && strings.HasPrefix(r.Parts[1].Path, root+"/claims/") {
				held = true
				return zktest.Until(claims)
			}
			return zktest.Pass
		})
		put(t, producer, "1", queue.Message{})
		got := make(chan *queue.Item, 1)
		go takeInto(t, q, got)
		synctest.Wait()
		if !held {
			t.Fatal("nothing was claimed")
		}
		names, _, err := sess.Children(t.Context(), root+"/consumers")
		if err != nil || len(names) != 1 {
			t.Fatalf("consumers: %v, %v", names, err)
		}
		gone := names[0]
		if err := sess.Delete(t.Context(), root+"/consumers/"+gone, -1); err != nil {
			t.Fatal(err)
		}
		claim()
		wantBody(t, <-got, "1")
		names, _, err = sess.Children(t.Context(), root+"/claims")
		if err != nil || len(names) != 1 || strings.Contains(names[0], gone) {
			t.Fatalf("claims: %v, %v; want one that is not of %s", names, err, gone)
		}
	})
}

// A consumer that comes, and claims, while another learns whose claims are free is not taken for dead.
//
// Promise: 7
func TestConsumerThatComesBetweenTheListsKeepsItsClaim(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		producer, first, second := w.queue(queue.Config{}), w.queue(queue.Config{}), w.queue(queue.Config{})
		put(t, producer, "before", queue.Message{})
		done(t, take(t, producer))
		got := make(chan *queue.Item, 1)
		waiter := w.waiter(t, got)
		lists, list := context.WithCancel(t.Context())
		held := false
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Session == waiter && !held && r.Path == root+"/claims" {
				held = true
				return zktest.Until(lists)
			}
			return zktest.Pass
		})
		wantEmpty(t, first) // it has come, so that the waiting one lists the consumers
		synctest.Wait()
		if !held {
			t.Fatal("the consumer that waits has listed nothing")
		}
		put(t, producer, "0", queue.Message{})
		item := take(t, second)
		list()
		synctest.Wait()
		if err := item.Context().Err(); err != nil || len(got) > 0 {
			t.Errorf("the claim of a consumer that lives was taken over: %v", context.Cause(item.Context()))
		}
		done(t, item)
		put(t, producer, "1", queue.Message{})
		wantBody(t, <-got, "1")
	})
}

// A consumer that is about to wait, and finds that another has just taken over what was left behind, takes one of the
// parts into which that was cut.
func TestPartsOfWhatWasLeftBehindAreTakenByWhoGoesToWait(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		producer, other := w.queue(queue.Config{}), w.queue(queue.Config{})
		putAll(t, producer, 0, 40)
		held := takeBatch(t, w.queue(queue.Config{}), 40)[0].Session().ID()
		got := make(chan *queue.Item, 1)
		waiter := w.waiter(t, got)
		reads, read := context.WithCancel(t.Context())
		stopped := false
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Session == waiter && !stopped && strings.HasPrefix(r.Path, root+"/claims/") {
				stopped = true
				return zktest.Until(reads)
			}
			return zktest.Pass
		})
		w.ExpireSession(held)
		synctest.Wait()
		if !stopped {
			t.Fatal("the consumer that waits has not found what was left behind")
		}
		wantBody(t, take(t, other), "0")
		read()
		synctest.Wait()
		if len(got) == 0 {
			t.Error("items are ready, and the consumer that waits for one is not told")
			put(t, producer, "40", queue.Message{})
		}
		<-got
	})
}

// An item that was given back by itself, and is with another consumer, does not go with what its former owner has left
// behind.
func TestItemThatWasGivenBackIsInNoPartOfWhatIsLeftBehind(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		producer, other := w.queue(queue.Config{}), w.queue(queue.Config{})
		putAll(t, producer, 0, 20)
		items := takeBatch(t, w.queue(queue.Config{}), 20)
		if err := items[7].Return(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		seventh := take(t, other)
		wantBody(t, seventh, "7")
		w.ExpireSession(items[0].Session().ID())
		third, n := w.queue(queue.Config{}), 0
		takeAll(t, third, func(item *queue.Item) {
			n++
			if string(item.Body()) == "7" {
				t.Error("item 7 is with two consumers")
			}
		})
		if n != 19 {
			t.Errorf("got %d items, want 19", n)
		}
		done(t, seventh)
		wantLen(t, producer, queue.Counts{})
	})
}
