package queue_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// A caller that leaves before the answer learns that the put may have been done; a caller that leaves before anything
// was sent does not.
func TestCallerThatLeavesAPutIsToldWhetherItMayBeIn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		put(t, q, "a", queue.Message{})
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpMulti {
				return zktest.DelayReply(10 * time.Second)
			}
			return zktest.Pass
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := q.Put(ctx, queue.Message{Body: []byte("b")})
		if !errors.Is(err, queue.ErrUnresolved) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want ErrUnresolved and DeadlineExceeded", err)
		}
		_, err = q.Put(ctx, queue.Message{Body: []byte("c")})
		if errors.Is(err, queue.ErrUnresolved) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want DeadlineExceeded alone", err)
		}
		w.Control(nil)
		pass(time.Minute)
		put(t, q, "d", queue.Message{})
		for _, want := range []string{"a", "b", "d"} {
			item := take(t, q)
			wantBody(t, item, want)
			done(t, item)
		}
		wantEmpty(t, q)
	})
}

// Done goes on when its caller leaves: the item is finished, once.
func TestDoneGoesOnWhenItsCallerLeaves(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		putAll(t, q, 0, 2)
		item := take(t, q)
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpMulti && r.Nth == 1 {
				return zktest.DelayReply(10 * time.Second)
			}
			return zktest.Pass
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := item.Done(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want DeadlineExceeded", err)
		}
		if err := item.Done(t.Context()); !errors.Is(err, queue.ErrFinished) {
			t.Errorf("a second Done: got %v, want ErrFinished", err)
		}
		pass(time.Minute)
		wantBody(t, take(t, q), "1")
		wantLen(t, q, queue.Counts{Claimed: 1})
	})
}

// Hooks are called for what was done, also if the caller has left before.
//
// Promise: 7
func TestHooksAreToldWhatIsDoneAfterItsCallerHasLeft(t *testing.T) {
	t.Parallel()
	for name, finish := range map[string]func(ctx context.Context, q *queue.Queue, item *queue.Item) error{
		"done": func(ctx context.Context, _ *queue.Queue, item *queue.Item) error { return item.Done(ctx) },
		"all": func(ctx context.Context, q *queue.Queue, item *queue.Item) error {
			return q.DoneAll(ctx, []*queue.Item{item})
		},
		"retry": func(ctx context.Context, _ *queue.Queue, item *queue.Item) error {
			return item.Fail(ctx, &queue.RetryError{After: time.Hour})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				told := make(chan error, 2)
				q := w.queue(queue.Config{Hooks: queue.Hooks{
					Done:    func(ctx context.Context, _ *queue.Item) { told <- ctx.Err() },
					Retried: func(ctx context.Context, _ *queue.Item, _ time.Duration) { told <- ctx.Err() },
				}})
				putAll(t, q, 0, 1)
				item := take(t, q)
				w.Control(func(r zktest.Request) zktest.Fault {
					if isRemoval(r) {
						return zktest.DelayReply(10 * time.Second)
					}
					return zktest.Pass
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := finish(ctx, q, item); !errors.Is(err, context.DeadlineExceeded) || len(told) > 0 {
					t.Errorf("got %v, want DeadlineExceeded; told %d times", err, len(told))
				}
				pass(time.Minute)
				if len(told) != 1 {
					t.Fatalf("told %d times, want once", len(told))
				}
				if err := <-told; err != nil {
					t.Errorf("the hook's context: %v", err)
				}
			})
		})
	}
}

// A consumer that leaves, or whose queue is closed, while its node is on its way to the server leaves none there.
//
// Promise: 7
func TestConsumerThatLeavesAtOnceLeavesNoNode(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(t *testing.T, q *queue.Queue, cancel func()){
		"cancelled": func(_ *testing.T, _ *queue.Queue, cancel func()) { cancel() },
		"closed": func(t *testing.T, q *queue.Queue, _ func()) {
			if err := q.Close(t.Context()); err != nil {
				t.Error(err)
			}
		},
	} {
		for what, fault := range map[string]zktest.Fault{
			"late": zktest.DelayReply(5 * time.Second), "request late": zktest.Delay(5 * time.Second),
			"cut": zktest.CutAfter,
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					q := w.queue(queue.Config{})
					put(t, q, "a", queue.Message{})
					asked := make(chan struct{}, 100)
					w.Control(func(r zktest.Request) zktest.Fault {
						if r.Op != zktest.OpCreate || !strings.HasPrefix(r.Path, root+"/consumers/") {
							return zktest.Pass
						}
						asked <- struct{}{}
						return fault
					})
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					var taking sync.WaitGroup
					taking.Go(func() {
						if item, err := q.Take(ctx); err == nil {
							t.Errorf("got %q, want an error", item.Body())
						}
					})
					<-asked
					leave(t, q, cancel)
					taking.Wait()
					w.Control(nil)
					pass(15 * time.Second) // the session lives on
					if err := q.Close(t.Context()); err != nil {
						t.Error(err)
					}
					w.NoNodes(t, root+"/consumers")
				})
			})
		}
	}
}

// A consumer's node goes although its session lives on, whatever becomes of the deletion, and whether or not the caller
// waits for it.
func TestNodeOfAConsumerThatLeavesIsRemovedInTheEnd(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(ctx context.Context, q *queue.Queue) error{
		"close": func(ctx context.Context, q *queue.Queue) error { return q.Close(ctx) },
		"purge": func(ctx context.Context, q *queue.Queue) error {
			_, err := q.Purge(ctx)
			return err
		},
	} {
		for what, faults := range map[string][]zktest.Fault{
			"moved":        {zktest.Answer(zk.SessionMoved), zktest.Answer(zk.SessionMoved)},
			"overloaded":   {zktest.Answer(zk.ThrottledOp)},
			"caller gone":  {zktest.Delay(5 * time.Second)},
			"gone and cut": {zktest.Mute, zktest.CutBefore, zktest.CutBefore},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					q := w.queue(queue.Config{})
					putAll(t, q, 0, 3)
					var item *queue.Item
					if name == "close" {
						item = take(t, q)
						done(t, item)
					}
					var met int
					w.Control(func(r zktest.Request) zktest.Fault {
						leaves := r.Op == zktest.OpDelete && strings.HasPrefix(r.Path, root+"/consumers/")
						if !leaves || met == len(faults) {
							return zktest.Pass
						}
						met++
						return faults[met-1]
					})
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					_ = leave(ctx, q) // fails if the caller has left first
					pass(time.Minute)
					w.Control(nil)
					if met != len(faults) {
						t.Errorf("%d deletions met a fault, want %d", met, len(faults))
					}
					if item != nil && item.Session().Err() != nil {
						t.Error("the session has ended, and so has shown nothing")
					}
					w.NoNodes(t, root+"/consumers")
				})
			})
		}
	}
}

// A consumer's node that is made when its creation was given up long ago, which takes a partition, goes again.
func TestNodeOfAConsumerThatIsMadeTooLateIsRemoved(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		putAll(t, q, 0, 1)
		var lost []string
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op != zktest.OpCreate || !strings.HasPrefix(r.Path, root+"/consumers/") || len(lost) == 2 {
				return zktest.Pass
			}
			lost = append(lost, r.Path)
			return zktest.Refuse
		})
		item := take(t, q)
		w.Control(nil)
		sess := item.Session()
		done(t, item)
		pass(sess.Timeout() / 2)
		for _, path := range lost { // as the server may yet do what it was asked for then
			if _, err := sess.Create(t.Context(), path, nil, zk.Ephemeral); err != nil {
				t.Fatal(err)
			}
		}
		if err := q.Close(t.Context()); err != nil {
			t.Error(err)
		}
		pass(2 * sess.Timeout())
		if len(lost) != 2 || sess.Err() != nil {
			t.Errorf("%d creations were lost, want 2; session: %v", len(lost), sess.Err())
		}
		w.NoNodes(t, root+"/consumers")
	})
}

// A queue that is closed just when its consumer is about to claim ahead does not go on trying.
//
// Promise: 7
func TestCloseEndsAConsumerThatIsAboutToClaimAhead(t *testing.T) {
	t.Parallel()
	for n := range 40 {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				q := w.queue(queue.Config{})
				hold(t, q, n+20)
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				take(t, q)
				if err := q.Close(ctx); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// putByPriority puts six items of three priorities.
func putByPriority(t *testing.T, q *queue.Queue) {
	t.Helper()
	for i := range 6 {
		put(t, q, strconv.Itoa(i), queue.Message{Priority: i / 2})
	}
}

// atMulti has a fault at the nth transaction from now on.
func (w *world) atMulti(nth int, fault func(zktest.Request) zktest.Fault) {
	w.Control(func(r zktest.Request) zktest.Fault {
		if r.Op == zktest.OpMulti && r.Nth == nth {
			return fault(r)
		}
		return zktest.Pass
	})
}

// What a purge has claimed it removes, also if its caller leaves meanwhile, whichever of its requests that is in.
//
// Promise: 7
func TestPurgeKeepsNothingWhenItsCallerLeaves(t *testing.T) {
	t.Parallel()
	for nth := 1; nth <= 6; nth++ {
		t.Run(strconv.Itoa(nth), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				q, other := w.queue(queue.Config{}), w.queue(queue.Config{})
				putByPriority(t, other)
				w.atMulti(nth, func(zktest.Request) zktest.Fault { return zktest.DelayReply(10 * time.Second) })
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				n, err := q.Purge(ctx)
				if (err == nil) != (n == 6) || err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("purged %d, %v", n, err)
				}
				w.Control(nil)
				pass(time.Minute)
				left, err := other.Len(t.Context())
				if err != nil || left.Claimed != 0 {
					t.Errorf("got %+v, %v, want nothing claimed", left, err)
				}
			})
		})
	}
}

// A purge is over when what was there is gone, however fast others put what comes before it.
func TestPurgeEndsWhileOthersPut(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, other := w.queue(queue.Config{}), w.queue(queue.Config{})
		for i := range 300 {
			put(t, other, "old", queue.Message{Priority: 5 + i%2})
		}
		taken := take(t, q) // what is claimed with it, this purge gives back
		var over atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			for !over.Load() {
				put(t, other, "new", queue.Message{})
			}
		})
		n, err := q.Purge(t.Context())
		over.Store(true)
		wg.Wait()
		if n < 299 || err != nil {
			t.Errorf("purged %d, %v; want at least the 299 that were there", n, err)
		}
		takeAll(t, other, func(item *queue.Item) { wantBody(t, item, "new") })
		done(t, taken)
		wantEmpty(t, q)
	})
}

// A put whose caller stops waiting at the very moment of the answer is not said to have failed.
func TestPutThatIsAnsweredAtItsDeadlineIsNotSaidToHaveFailed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		put(t, q, "first", queue.Message{})
		in := map[string]bool{"first": true}
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpMulti {
				return zktest.DelayReply(time.Second)
			}
			return zktest.Pass
		})
		for i := range 300 {
			body := strconv.Itoa(i)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			var err error
			if i%2 == 0 {
				_, err = q.Put(ctx, queue.Message{Body: []byte(body)})
			} else {
				_, _, err = q.PutOnce(ctx, "key "+body, queue.Message{Body: []byte(body)})
			}
			cancel()
			if !errors.Is(err, queue.ErrUnresolved) {
				in[body] = err == nil
			}
		}
		w.Control(nil)
		takeAll(t, q, func(item *queue.Item) {
			if known, told := in[string(item.Body())]; told && !known {
				t.Errorf("%s is in, and its producer was told that it is not", item.Body())
			}
		})
	})
}

// A purge whose session is lost on this side before the server ends it waits for what it had claimed, whichever of
// its requests that is in.
func TestPurgeLeavesNothingWhenItsSessionIsLost(t *testing.T) {
	t.Parallel()
	for nth := 1; nth <= 6; nth++ {
		t.Run(strconv.Itoa(nth), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				q, other := w.queue(queue.Config{}), w.queue(queue.Config{})
				putByPriority(t, other)
				done(t, take(t, q)) // and with it q has a part of its own
				w.atMulti(nth, func(r zktest.Request) zktest.Fault {
					w.HalfOpen(r.Session)
					return zktest.Pass
				})
				if n, err := q.Purge(t.Context()); n > 5 || err != nil {
					t.Errorf("purged %d, %v", n, err)
				}
				w.Control(nil)
				pass(time.Minute)
				wantLen(t, other, queue.Counts{})
			})
		})
	}
}

// The request is on its way still when its caller has left, and is done between later ones of the same queue.
func TestPutThatIsLeftBehindChangesNothingForLaterOnes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{MaxPacket: 64 << 10})
		want := []string{strings.Repeat("a", 40<<10), "b"}
		put(t, q, want[0], queue.Message{})
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpMulti {
				return zktest.Delay(10 * time.Second)
			}
			return zktest.Pass
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := q.Put(ctx, queue.Message{Body: []byte("b")}); !errors.Is(err, queue.ErrUnresolved) {
			t.Fatalf("got %v, want ErrUnresolved", err)
		}
		w.Control(nil)
		var messages []queue.Message // each in a transaction of its own
		for i := range 3 {
			body := strings.Repeat(strconv.Itoa(i), 40<<10)
			messages, want = append(messages, queue.Message{Body: []byte(body)}), append(want, body)
		}
		if _, err := q.PutBatch(t.Context(), messages); err != nil {
			t.Fatal(err)
		}
		for _, body := range want {
			item := take(t, q)
			if string(item.Body()) != body {
				t.Fatalf("got an item of %d bytes, %.5q, want %.5q", len(item.Body()), item.Body(), body)
			}
			done(t, item)
		}
		wantEmpty(t, q)
	})
}
