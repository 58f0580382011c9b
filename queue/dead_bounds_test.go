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

	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// kill makes dead letters of the next n items.
func kill(t *testing.T, q *queue.Queue, n int) {
	t.Helper()
	for range n {
		if err := take(t, q).Reject(t.Context(), "bad"); err != nil {
			t.Fatal(err)
		}
	}
}

func wantDead(t *testing.T, q *queue.Queue, from, to int) {
	t.Helper()
	var want []string
	for i := from; i < to; i++ {
		want = append(want, strconv.Itoa(i))
	}
	if got := bodies(itemsIn(t, q, queue.Dead)); !slices.Equal(got, want) {
		t.Fatalf("got dead letters %v, want %d to %d", got, from, to-1)
	}
}

// consumeNothing is wantEmpty for a goroutine of its own.
func consumeNothing(t *testing.T, q *queue.Queue) {
	t.Helper()
	if item, err := q.TryTake(t.Context()); !errors.Is(err, queue.ErrEmpty) {
		t.Errorf("got %v, %v, want ErrEmpty", item, err)
	}
}

// Promise: 7
func TestOldestDeadLettersGoWhenThereAreTooMany(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{MaxDead: 5}.WithSegment(2))
		putAll(t, q, 0, 20)
		for i := 1; i <= 20; i++ {
			kill(t, q, 1)
			synctest.Wait()
			wantDead(t, q, max(0, i-5), i)
		}
		sess := w.Session(t, time.Minute)
		segments, _, err := sess.Children(t.Context(), root+"/dead")
		if err != nil || len(segments) > 4 {
			t.Errorf("got segments %v, %v, want that the empty ones are gone", segments, err)
		}
	})
}

// Promise: 7
func TestDeadLettersOfOthersAreBoundedToo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		plain := w.queue(queue.Config{})
		putAll(t, plain, 0, 500)
		kill(t, plain, 500)
		pass(10 * time.Minute)
		wantLen(t, plain, queue.Counts{Dead: 500})
		bounded := w.queue(queue.Config{MaxDead: 30})
		wantEmpty(t, bounded)
		synctest.Wait()
		wantDead(t, plain, 470, 500)
		putAll(t, plain, 500, 510)
		kill(t, plain, 10)
		wantLen(t, plain, queue.Counts{Dead: 40})
		pass(2 * time.Minute)
		wantDead(t, plain, 480, 510)
	})
}

// Promise: 7
func TestOldDeadLettersGoAlsoWhileTheConsumerWaits(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		// Not longer: while time passes, sessions send pings.
		const keep = 20 * time.Minute
		q := w.queue(queue.Config{KeepDead: keep}.WithSegment(2))
		putAll(t, q, 0, 6)
		kill(t, q, 3)
		pass(keep / 2)
		kill(t, q, 3)
		got := make(chan *queue.Item, 1)
		go takeInto(t, q, got)
		pass(keep/2 - time.Minute)
		wantDead(t, q, 0, 6)
		pass(3 * time.Minute)
		wantDead(t, q, 3, 6)
		pass(keep/2 - 4*time.Minute)
		wantDead(t, q, 3, 6)
		pass(4 * time.Minute)
		wantLen(t, q, queue.Counts{})
		put(t, q, "end", queue.Message{})
		done(t, <-got)
	})
}

func TestBothBoundsHold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{KeepDead: time.Hour, MaxDead: 4})
		putAll(t, q, 0, 10)
		kill(t, q, 6)
		synctest.Wait()
		wantDead(t, q, 2, 6)
		pass(30 * time.Minute)
		kill(t, q, 2)
		synctest.Wait()
		wantDead(t, q, 4, 8)
		pass(32 * time.Minute)
		wantDead(t, q, 6, 8)
	})
}

// However many consumers keep the bound at the same time, they remove only what is too much.
//
// Promise: 7
func TestConsumersThatKeepTheBoundTogetherKeepAsMany(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const n, keep = 400, 50
		putAll(t, w.queue(queue.Config{}), 0, n)
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		var last *queue.Queue
		for range 5 {
			q := w.queue(queue.Config{MaxDead: keep}.WithSegment(20))
			last = q
			wg.Go(func() {
				if err := q.Consume(ctx, 2, func(context.Context, *queue.Item) error {
					time.Sleep(time.Millisecond)
					return &queue.RejectError{Err: errors.New("bad")}
				}); err != nil {
					t.Error(err)
				}
			})
		}
		pass(10 * time.Minute)
		wantLen(t, last, queue.Counts{Dead: keep})
		stop()
		wg.Wait()
	})
}

// One consumer is stopped at each of its steps until another has kept the bound: they remove no more than one would.
//
// Promise: 7
func TestConsumerThatIsStoppedWhileItKeepsTheBoundRemovesNoMore(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		plain := w.queue(queue.Config{})
		for step := 1; ; step++ {
			putAll(t, plain, 0, 10)
			kill(t, plain, 10)
			held, release := context.WithCancel(t.Context())
			reached := false
			w.Control(func(r zktest.Request) zktest.Fault {
				if r.Seq != step {
					return zktest.Pass
				}
				reached = true
				return zktest.Until(held)
			})
			stopped, other := w.queue(queue.Config{MaxDead: 4}), w.queue(queue.Config{MaxDead: 4})
			var wg sync.WaitGroup
			wg.Go(func() { consumeNothing(t, stopped) })
			synctest.Wait()
			w.Control(nil)
			wantEmpty(t, other)
			synctest.Wait()
			wantDead(t, plain, 6, 10)
			release()
			wg.Wait()
			synctest.Wait()
			wantDead(t, plain, 6, 10)
			if _, err := plain.PurgeDead(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, q := range []*queue.Queue{stopped, other} {
				if err := q.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if !reached {
				break
			}
		}
	})
}

// A letter that another client removes first does not keep a consumer from removing the others.
//
// Promise: 7
func TestLetterThatIsGoneDoesNotStopTheRemovalOfOthers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		plain := w.queue(queue.Config{})
		putAll(t, plain, 0, 240)
		kill(t, plain, 240)
		first := itemsIn(t, plain, queue.Dead)[0].ID
		held, release := context.WithCancel(t.Context())
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpDelete && strings.HasPrefix(r.Path, root+"/dead/") {
				return zktest.Until(held)
			}
			return zktest.Pass
		})
		bounded := w.queue(queue.Config{MaxDead: 10})
		var wg sync.WaitGroup
		wg.Go(func() { consumeNothing(t, bounded) })
		synctest.Wait()
		if n, err := plain.PurgeDead(t.Context(), first); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		release()
		wg.Wait()
		synctest.Wait()
		wantDead(t, plain, 230, 240)
	})
}

// A letter stays one when an operator writes to its node, and its age counts from its death.
//
// Promise: 7
func TestDeadLetterThatWasWrittenToIsBoundedToo(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]queue.Config{"number": {MaxDead: 2}, "age": {KeepDead: 20 * time.Minute}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				plain, sess := w.queue(queue.Config{}), w.Session(t, time.Minute)
				putAll(t, plain, 0, 5)
				kill(t, plain, 3)
				pass(10 * time.Minute)
				for _, segment := range w.children(root + "/dead") {
					for _, item := range w.children(root + "/dead/" + segment) {
						path := root + "/dead/" + segment + "/" + item
						data, _, err := sess.Get(t.Context(), path)
						if err != nil {
							t.Fatal(err)
						}
						if _, err := sess.Set(t.Context(), path, data, -1); err != nil {
							t.Fatal(err)
						}
					}
				}
				kill(t, plain, 2)
				pass(12 * time.Minute)
				wantEmpty(t, w.queue(cfg))
				synctest.Wait()
				wantDead(t, plain, 3, 5)
			})
		})
	}
}

// A delayed node that is no item becomes a dead letter when its time comes, and counts for the bound at once.
//
// Promise: 7
func TestBoundHoldsWhenWhatIsNoItemDies(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{MaxDead: 1})
		putAll(t, q, 0, 1)
		kill(t, q, 1)
		put(t, q, "a", queue.Message{Delay: time.Second})
		bucket := root + "/delayed/" + w.children(root + "/delayed")[0]
		segment := bucket + "/" + w.children(bucket)[0] + "/"
		_, err := w.Session(t, time.Minute).Create(t.Context(), segment, []byte("1"), zk.PersistentSequential)
		if err != nil {
			t.Fatal(err)
		}
		done(t, take(t, q))
		synctest.Wait()
		wantDead(t, q, 1, 2)
	})
}

// Letters that become too old one after the other do not wake the consumers for each.
//
// Promise: 7
func TestConsumersLookForOldLettersOnceAMinute(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const keep, n = 5 * time.Minute, 120
		q := w.queue(queue.Config{KeepDead: keep})
		putAll(t, q, 0, n)
		for range n {
			kill(t, q, 1)
			pass(time.Second)
		}
		pass(keep - n*time.Second)
		looks := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpGetChildren && r.Path == root+"/dead" {
				looks++
			}
			return zktest.Pass
		})
		pass((n + 61) * time.Second)
		w.Control(nil)
		wantLen(t, q, queue.Counts{})
		if looks > 2*4 { // each to see what there is, and to remove empty segments
			t.Errorf("it looked %d times in 3 minutes", looks)
		}
	})
}

// A letter that is requeued while letters are removed is in one place only, or removed.
//
// Promise: 7
func TestRequeueAndRemovalOfADeadLetterExcludeEachOther(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		putAll(t, q, 0, 3)
		kill(t, q, 3)
		held, release := context.WithCancel(t.Context())
		w.Control(func(r zktest.Request) zktest.Fault {
			if len(r.Parts) > 2 && r.Parts[1].Op == zktest.OpDelete {
				return zktest.Until(held) // the requeue
			}
			return zktest.Pass
		})
		result := make(chan int, 1)
		go func() {
			n, err := q.Requeue(t.Context())
			if err != nil {
				t.Error(err)
			}
			result <- n
		}()
		pass(time.Second)
		bounded := w.queue(queue.Config{MaxDead: 1})
		wantEmpty(t, bounded)
		synctest.Wait()
		release()
		if n := <-result; n != 1 {
			t.Errorf("%d were requeued, want the one that was left", n)
		}
		w.Control(nil)
		doneInOrder(t, bounded, 2, 3)
		wantLen(t, q, queue.Counts{})
	})
}

// Whatever happens to its requests, the bound holds in the end, and the youngest letters stay.
//
// Promise: 7
func TestFaultsWhileDeadLettersAreRemovedChangeNothing(t *testing.T) {
	t.Parallel()
	faults := map[string]zktest.Fault{
		"request lost": zktest.Refuse, "cut before": zktest.CutBefore,
		"reply lost": zktest.DropReply, "cut after": zktest.CutAfter,
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				plain := w.queue(queue.Config{}.WithSegment(3))
				for step := range soak.Steps(name, faults) {
					if step > 20 {
						break
					}
					putAll(t, plain, 0, 10)
					kill(t, plain, 10)
					pass(time.Minute)
					q := w.queue(queue.Config{MaxDead: 4})
					var reached atomic.Bool
					w.Control(func(r zktest.Request) zktest.Fault {
						if r.Seq != step {
							return zktest.Pass
						}
						reached.Store(true)
						return fault
					})
					wantEmpty(t, q)
					pass(2 * time.Minute)
					w.Control(nil)
					if !reached.Load() {
						t.Fatalf("there is no step %d", step)
					}
					wantDead(t, plain, 6, 10)
					if _, err := plain.PurgeDead(t.Context()); err != nil {
						t.Fatal(err)
					}
					if err := q.Close(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

func TestBoundsOfDeadLettersThatMakeNoSenseAreRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, time.Minute)
		for _, cfg := range []queue.Config{{MaxDead: -1}, {KeepDead: -1}} {
			if _, err := queue.New(client, root, cfg); err == nil {
				t.Errorf("%+v was taken", cfg)
			}
		}
	})
}

// How many requests a letter costs does not grow with the number of letters that are too many.
func TestBacklogOfDeadLettersIsRemovedInLinearTime(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := w.Session(t, time.Minute)
		cost := func(segments int) float64 {
			const letters = 5 // of a segment
			path := fmt.Sprint(root, segments)
			q, err := queue.New(w.Client(t, 20*time.Second), path, queue.Config{MaxDead: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer q.Close(t.Context())
			if _, err := q.Len(t.Context()); err != nil { // it has its nodes
				t.Fatal(err)
			}
			b := sess.Batch()
			var sealed *zk.Future[zk.Stat]
			for s := range segments {
				dir := fmt.Sprintf("%s/dead/s%010d", path, s+1)
				b.Create(dir, []byte("small"), zk.Persistent)
				for range letters {
					b.Create(dir+"/", []byte("x"), zk.PersistentSequential)
				}
				sealed = b.Set(dir, []byte("small"), 0)
			}
			b.Send()
			if _, err := sealed.Get(t.Context()); err != nil {
				t.Fatal(err)
			}
			requests := endAfter(w, 1<<40, nil)
			wantEmpty(t, q)
			synctest.Wait()
			wantLen(t, q, queue.Counts{Dead: 1})
			return float64(requests.Load()) / float64(segments*letters)
		}
		if few, many := cost(50), cost(400); many > 1.5*few {
			t.Errorf("a letter of 250 cost %.2f requests, and one of 2,000 %.2f", few, many)
		}
	})
}
