package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// isMove reports whether a transaction moves delayed items into a ready list.
func isMove(r zktest.Request) bool {
	has := func(op zktest.Op, below string) bool {
		return slices.ContainsFunc(r.Parts, func(p zktest.Part) bool {
			return p.Op == op && strings.HasPrefix(p.Path, root+below)
		})
	}
	return has(zktest.OpDelete, "/delayed/") && has(zktest.OpCreate, "/ready/")
}

// Headers count for the size of the transactions that move items as bodies do.
func TestDelayedItemsWithLargeHeadersArrive(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		producer, consumer := w.queue(queue.Config{}), w.queue(queue.Config{})
		const n = 400
		var messages []queue.Message
		for i := range n {
			messages = append(messages, queue.Message{
				Body: fmt.Append(nil, i), Headers: map[string]string{"h": strings.Repeat("x", 5500)},
				Delay: 5 * time.Second,
			})
		}
		if _, err := producer.PutBatch(t.Context(), messages); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Second)
		bounded(t, w, 10000)
		for range n {
			item := take(t, consumer)
			if got := len(item.Headers()["h"]); got != 5500 {
				t.Errorf("item %s has a header of %d bytes", item.Body(), got)
			}
			done(t, item)
		}
		wantLen(t, producer, queue.Counts{})
	})
}

// Servers may accept less than Config.MaxPacket. What is ready does not wait for what cannot be moved, and the rest
// goes in smaller transactions.
//
// Promise: 7
func TestMovesThatBreakTheConnectionHoldNothingUp(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		producer, consumer := w.queue(queue.Config{}), w.queue(queue.Config{})
		for i := range 40 {
			put(t, producer, strings.Repeat("x", 3000)+strconv.Itoa(i), queue.Message{Delay: 5 * time.Second})
		}
		pass(10 * time.Second)
		seen := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			if seen++; seen > 20000 {
				panic("requests are sent without end")
			}
			if len(r.Parts) > 30 && isMove(r) { // some 64 KB
				return zktest.CutBefore
			}
			return zktest.Pass
		})
		put(t, producer, "ready", queue.Message{})
		begin := time.Now()
		wantBody(t, take(t, consumer), "ready")
		for range 40 {
			done(t, take(t, consumer))
		}
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("it took %v", took)
		}
	})
}

// No consumer was there for hours: items come in the order of their times, whichever buckets they are in, and however
// many they are.
//
// Promise: 7
func TestDelayedItemsArriveInTheOrderOfTheirTimes(t *testing.T) {
	t.Parallel()
	for name, n := range map[string]int{"few": 300, "many": soak.Pick(2000, 5000)} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				producer, consumer := w.queue(queue.Config{}), w.queue(queue.Config{})
				hour := time.Hour.Milliseconds()
				pass(time.Duration(hour-time.Now().UnixMilli()%hour) * time.Millisecond)
				// For the hour after the next, from its end to its beginning; then, when that has come near, for
				// between those.
				const near = 90 * time.Minute
				step := 50 * time.Minute / time.Duration(n)
				var first, then []queue.Message
				for i := n; i > 0; i-- {
					m := queue.Message{Body: fmt.Append(nil, i)}
					m.Delay = 2*time.Hour + time.Duration(i)*step
					if i%3 > 0 {
						first = append(first, m)
					} else {
						m.Delay -= near
						then = append(then, m)
					}
				}
				if _, err := producer.PutBatch(t.Context(), first); err != nil {
					t.Fatal(err)
				}
				pass(near)
				if _, err := producer.PutBatch(t.Context(), then); err != nil {
					t.Fatal(err)
				}
				pass(2 * time.Hour)
				next := 1
				takeAll(t, consumer, func(item *queue.Item) {
					if got := string(item.Body()); got != strconv.Itoa(next) && !t.Failed() {
						t.Errorf("got item %s, want %d", got, next)
					}
					next++
				})
				if next != n+1 {
					t.Errorf("%d items came, want %d", next-1, n)
				}
				w.NoNodes(t, root+"/delayed")
			})
		})
	}
}

// Of many consumers one moves what is due; the others do not all read the same.
//
// Promise: 7
func TestOneConsumerMovesWhatIsDue(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		producer := w.queue(queue.Config{})
		const n, consumers, busy = 600, 12, 110
		var messages []queue.Message
		for range n {
			messages = append(messages, queue.Message{Delay: 20 * time.Second})
		}
		if _, err := producer.PutBatch(t.Context(), messages); err != nil {
			t.Fatal(err)
		}
		putAll(t, producer, 0, consumers*busy) // so that all are at work when the time has come
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var wg sync.WaitGroup
		left := n + consumers*busy
		handled := make(chan struct{})
		for range consumers {
			q := w.queue(queue.Config{})
			wg.Go(func() {
				err := q.Consume(ctx, 1, func(context.Context, *queue.Item) error {
					time.Sleep(200 * time.Millisecond)
					handled <- struct{}{}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		moves, read := 0, 0
		w.Delay(time.Millisecond)
		w.Control(func(r zktest.Request) zktest.Fault {
			if isMove(r) {
				moves++
			}
			if r.Op == zktest.OpMultiRead && strings.HasPrefix(r.Parts[0].Path, root+"/delayed/") {
				read += len(r.Parts)
			}
			return zktest.Pass
		})
		for ; left > 0; left-- {
			<-handled
		}
		cancel()
		wg.Wait()
		w.Control(nil)
		w.Delay(0)
		if moves > n/200+2 || read > n+200 {
			t.Errorf("%d items were moved by %d transactions, and %d were read", n, moves, read)
		}
	})
}

// A consumer that is lost while it moves items holds the others up for two seconds.
//
// Promise: 7
func TestOthersGoOnWhenTheConsumerThatMovesItemsIsLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		producer, other := w.queue(queue.Config{}), w.queue(queue.Config{})
		client := w.Client(t, 20*time.Second)
		first, err := queue.New(client, root, queue.Config{})
		if err != nil {
			t.Fatal(err)
		}
		const n = 500
		var messages []queue.Message
		for i := range n {
			m := queue.Message{Body: fmt.Append(nil, i)}
			m.Delay = 5 * time.Second
			messages = append(messages, m)
		}
		if _, err := producer.PutBatch(t.Context(), messages); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Second)
		moves := 0
		var frozen int64
		w.Control(func(r zktest.Request) zktest.Fault {
			if isMove(r) {
				if moves++; moves == 2 {
					frozen = r.Session
					w.Freeze(r.Session)
				}
			}
			return zktest.Pass
		})
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			if item, err := first.Take(ctx); err == nil {
				t.Errorf("the lost consumer got item %s", item.Body())
			}
		}()
		synctest.Wait()
		if frozen == 0 {
			t.Fatal("nothing was moved")
		}
		begin := time.Now()
		for i := range n {
			item := take(t, other)
			wantBody(t, item, strconv.Itoa(i))
			done(t, item)
		}
		if took := time.Since(begin); took > 3*time.Second {
			t.Errorf("the others went on after %v", took)
		}
		cancel()
		<-gone
		w.Control(nil)
		w.Heal()
		wantEmpty(t, other)
		wantLen(t, other, queue.Counts{})
	})
}

// The reply to the creation of a consumer's node tells the servers' time. Without it the time is asked for.
func TestDelayedItemArrivesAlsoIfTheReplyToTheConsumersFirstWriteIsLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		producer, consumer := w.queue(queue.Config{}), w.queue(queue.Config{})
		put(t, producer, "a", queue.Message{Delay: 10 * time.Second})
		begin := time.Now()
		lost := false
		w.Control(func(r zktest.Request) zktest.Fault {
			if !lost && r.Op == zktest.OpCreate && strings.HasPrefix(r.Path, root+"/consumers/") {
				lost = true
				return zktest.DropReply
			}
			return zktest.Pass
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		item, err := consumer.Take(ctx)
		if err != nil || !lost {
			t.Fatal(err, lost)
		}
		wantBody(t, item, "a")
		if took := time.Since(begin); took > 12*time.Second {
			t.Errorf("it came after %v", took)
		}
	})
}

// What a consumer believes of the servers' time is as old as the reply was slow. It does not believe so for ever.
//
// Promise: 7
func TestConsumerLearnsTheServersTimeAnew(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		producer, consumer := w.queue(queue.Config{}), w.queue(queue.Config{})
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpCreate && strings.HasPrefix(r.Path, root+"/consumers/") {
				return zktest.DelayReply(5 * time.Second)
			}
			return zktest.Pass
		})
		got := make(chan *queue.Item)
		go takeInto(t, consumer, got)
		pass(2 * time.Minute)
		w.Control(nil)
		put(t, producer, "a", queue.Message{Delay: 10 * time.Second})
		begin := time.Now()
		wantBody(t, <-got, "a")
		if took := time.Since(begin); took > 11*time.Second {
			t.Errorf("it came after %v", took)
		}
	})
}

// An item that a consumer may not read, and what is too large to be moved, stay; the others arrive.
//
// Promise: 7
func TestDelayedNodesThatCannotBeMovedAreInNobodysWay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		private, sess := w.login(t)
		producer, consumer := w.queue(queue.Config{}), w.queue(queue.Config{})
		other, err := queue.New(private, root, queue.Config{})
		if err != nil {
			t.Fatal(err)
		}
		put(t, producer, "a", queue.Message{Delay: 5 * time.Second})
		put(t, producer, "b", queue.Message{Delay: 5 * time.Second})
		buckets := w.children(root + "/delayed")
		if len(buckets) != 1 {
			t.Fatal(buckets)
		}
		bucket := root + "/delayed/" + buckets[0]
		segment := bucket + "/" + w.children(bucket)[0] + "/"
		for _, n := range []zk.Node{
			{Path: segment, Data: []byte("secret"), Mode: zk.PersistentSequential, ACL: zk.CreatorACL()},
			{Path: segment, Data: []byte(strings.Repeat("z", 1048400)), Mode: zk.PersistentSequential},
		} {
			if _, err := sess.CreateNode(t.Context(), n); err != nil {
				t.Fatal(err)
			}
		}
		put(t, producer, "c", queue.Message{Delay: 5 * time.Second})
		bounded(t, w, 2000)
		for _, want := range []string{"a", "b", "c"} {
			item := take(t, consumer)
			wantBody(t, item, want)
			done(t, item)
		}
		wantEmpty(t, consumer)
		wantEmpty(t, other)
		if _, there, err := sess.Exists(t.Context(), segment+"0000000003"); !there || err != nil {
			t.Errorf("the large node: %v, %v", there, err)
		}
		put(t, producer, "d", queue.Message{})
		wantBody(t, take(t, consumer), "d")
	})
}

// Purge and a consumer that moves the same items do not get in each other's way.
func TestPurgeBesideAConsumerThatMovesItems(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		producer, consumer := w.queue(queue.Config{}), w.queue(queue.Config{})
		var messages []queue.Message
		for range 300 {
			messages = append(messages, queue.Message{Delay: 5 * time.Second})
		}
		if _, err := producer.PutBatch(t.Context(), messages); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Second)
		w.Delay(time.Millisecond)
		purged := make(chan int)
		go func() {
			n, err := producer.Purge(t.Context())
			if err != nil {
				t.Error(err)
			}
			purged <- n
		}()
		taken := 0
		for {
			item, err := consumer.TryTake(t.Context())
			if errors.Is(err, queue.ErrEmpty) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			done(t, item)
			taken++
		}
		taken += <-purged
		w.Delay(0)
		takeAll(t, consumer, func(*queue.Item) { taken++ })
		if taken != 300 {
			t.Errorf("%d items were taken or purged, want 300", taken)
		}
	})
}

// Nothing tells a consumer that it may read an item by now.
func TestDelayedItemThatMayBeReadAgainArrives(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := w.Session(t, time.Minute)
		if err := sess.AddAuth(t.Context(), zk.Digest("u", "p")); err != nil {
			t.Fatal(err)
		}
		producer, consumer := w.queue(queue.Config{}), w.queue(queue.Config{})
		put(t, producer, "a", queue.Message{Delay: 5 * time.Second})
		bucket := root + "/delayed/" + w.children(root + "/delayed")[0]
		segment := bucket + "/" + w.children(bucket)[0]
		item := segment + "/" + w.children(segment)[0]
		if _, err := sess.SetACL(t.Context(), item, zk.CreatorACL(), -1); err != nil {
			t.Fatal(err)
		}
		got := make(chan *queue.Item, 1)
		go takeInto(t, consumer, got)
		pass(30 * time.Second)
		if _, err := sess.SetACL(t.Context(), item, zk.OpenACL(), -1); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		select {
		case x := <-got:
			wantBody(t, x, "a")
		default:
			t.Error("the item that may be read for a minute has not arrived")
			put(t, producer, "", queue.Message{}) // ends the wait
			<-got
		}
	})
}

// A consumer with buffered items sends no request to deliver them. It must know when what comes before them is due,
// also if that has moved to a narrower bucket meanwhile.
func TestDelayedItemThatIsDueComesBeforeWhatIsClaimedAlready(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		begin := time.Now().Truncate(time.Hour).Add(time.Hour)
		pass(time.Until(begin))
		q := w.queue(queue.Config{Linger: time.Hour})
		put(t, q, "urgent", queue.Message{Priority: -1, Delay: 90 * time.Second})
		putAll(t, q, 0, 100)
		doneInOrder(t, q, 0, 20)
		pass(time.Until(begin.Add(65 * time.Second)))
		doneInOrder(t, q, 20, 22)
		requests := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Seq > 0 {
				requests++
			}
			return zktest.Pass
		})
		item := take(t, q)
		wantBody(t, item, "22")
		if requests > 1 { // it may mark more
			t.Fatalf("%d requests for an item that should be in stock", requests)
		}
		done(t, item)
		w.Control(nil)
		pass(time.Until(begin.Add(91 * time.Second)))
		item = take(t, q)
		wantBody(t, item, "urgent")
		done(t, item)
		doneInOrder(t, q, 23, 100)
	})
}

// A purge, or a list, that has listed the buckets finds an item that a consumer then moves to another one.
//
// Promise: 7
func TestDelayedItemThatIsMovedMeanwhileIsFound(t *testing.T) {
	t.Parallel()
	for name, find := range map[string]func(context.Context, *queue.Queue) (int, error){
		"purge": func(ctx context.Context, q *queue.Queue) (int, error) { return q.Purge(ctx) },
		"items": func(ctx context.Context, q *queue.Queue) (n int, err error) {
			for _, err := range q.Items(ctx, queue.Delayed) {
				if err != nil {
					return n, err
				}
				n++
			}
			return n, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				producer, consumer := w.queue(queue.Config{}), w.queue(queue.Config{})
				q, sess := w.queueAndSession()
				for _, seconds := range []int{5400, 5410, 108_000} {
					put(t, producer, "a", queue.Message{Delay: time.Duration(seconds) * time.Second})
				}
				pass(66 * time.Minute) // the hour of the first two has begun
				held, release := context.WithCancel(t.Context())
				defer release()
				listed := false
				w.Control(func(r zktest.Request) zktest.Fault {
					if r.Session == sess.ID() && !listed && strings.HasPrefix(r.Path, root+"/delayed/b") {
						listed = true
						return zktest.Until(held)
					}
					return zktest.Pass
				})
				found := make(chan int)
				go func() {
					n, err := find(t.Context(), q)
					if err != nil {
						t.Error(err)
					}
					found <- n
				}()
				synctest.Wait()
				before := w.children(root + "/delayed")
				wantEmpty(t, consumer)
				if after := w.children(root + "/delayed"); slices.Equal(before, after) {
					t.Fatalf("no item was moved: %v", after)
				}
				release()
				if n := <-found; n != 3 {
					t.Errorf("got %d items, want 3", n)
				}
			})
		})
	}
}

// In nanoseconds the time until then overflows.
func TestConsumerWaitsForABucketThatIsCenturiesAhead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		putAll(t, q, 0, 1)
		bucket := root + "/delayed/bd14999990400000"
		if _, err := w.Session(t, time.Minute).Create(t.Context(), bucket, nil, zk.Persistent); err != nil {
			t.Fatal(err)
		}
		doneInOrder(t, q, 0, 1)
		bounded(t, w, 100)
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Minute)
		defer cancel()
		if item, err := q.Take(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, %v, want DeadlineExceeded", item, err)
		}
	})
}
