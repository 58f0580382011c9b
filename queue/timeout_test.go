package queue_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// Promise: 7
func TestContextEndsWithTheTimeLimitAndTheItemStaysItsOwners(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, other := w.queue(queue.Config{Timeout: time.Hour}), w.queue(queue.Config{})
		begin := time.Now()
		for own, want := range map[time.Duration]time.Duration{time.Minute: time.Minute, 0: time.Hour} {
			put(t, q, "a", queue.Message{Timeout: own})
			item := take(t, q)
			deadline, ok := item.Context().Deadline()
			if !ok || time.Until(deadline) != want || item.Timeout() != want {
				t.Errorf("%s: got %v %v, want %v", item.Body(), time.Until(deadline), item.Timeout(), want)
			}
			<-item.Context().Done()
			if cause := context.Cause(item.Context()); !errors.Is(cause, queue.ErrTimeout) {
				t.Errorf("got %v, want ErrTimeout", cause)
			}
			wantEmpty(t, other)
			done(t, item)
		}
		if took := time.Since(begin); took < time.Hour+time.Minute {
			t.Errorf("the limits were over after %v", took)
		}
		put(t, q, "none", queue.Message{})
		item := take(t, other)
		if _, limited := item.Context().Deadline(); limited || item.Timeout() != 0 {
			t.Errorf("got a limit of %v", item.Timeout())
		}
		done(t, item)
		wantLen(t, q, queue.Counts{})
	})
}

func TestContextOfALimitedItemSaysThatItIsFinished(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{Timeout: time.Hour})
		putAll(t, q, 0, 2)
		for range 2 {
			item := take(t, q)
			ctx := item.Context()
			done(t, item)
			if !errors.Is(context.Cause(ctx), queue.ErrFinished) {
				t.Errorf("got %v, want ErrFinished", context.Cause(ctx))
			}
		}
	})
}

// Promise: 7
func TestHandlerHasTheValuesOfItsCaller(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		type key struct{}
		q := w.queue(queue.Config{Timeout: time.Hour})
		putAll(t, q, 0, 1)
		ctx, stop := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
		if err := q.Consume(ctx, 1, func(ctx context.Context, _ *queue.Item) error {
			stop()
			if got := ctx.Value(key{}); got != "value" || ctx.Err() != nil {
				t.Errorf("got %v, %v, want the value, and that it has not ended", got, ctx.Err())
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	})
}

// Promise: 7
func TestTimeLimitGoesWithTheItem(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{MaxAttempts: 2})
		put(t, q, "a", queue.Message{Timeout: time.Minute + time.Nanosecond, Delay: 2 * time.Hour})
		for attempt := range 3 {
			if attempt == 2 {
				if n, err := q.Requeue(t.Context()); n != 1 || err != nil {
					t.Fatal(n, err)
				}
			}
			item := take(t, q)
			if want := time.Minute + time.Millisecond; item.Timeout() != want {
				t.Errorf("attempt %d: got %v, want %v", attempt, item.Timeout(), want)
			}
			if err := item.Fail(t.Context(), errors.New("no")); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestTimeLimitsThatMakeNoSenseAreRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := queue.New(w.Client(t, time.Minute), root, queue.Config{Timeout: -1}); err == nil {
			t.Error("a negative Config.Timeout was taken")
		}
		if _, err := w.queue(queue.Config{}).Put(t.Context(), queue.Message{Timeout: -1}); err == nil {
			t.Error("a negative Message.Timeout was taken")
		}
	})
}

// Promise: 7
func TestAttemptsOfAHandlerThatIsTooSlowFail(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{Timeout: 5 * time.Second, MaxAttempts: 2})
		put(t, q, "slow", queue.Message{})
		ctx, stop := context.WithCancel(t.Context())
		attempts := 0
		err := q.Consume(ctx, 1, func(ctx context.Context, item *queue.Item) error {
			attempts++
			begin := time.Now()
			if deadline, ok := ctx.Deadline(); !ok || deadline.Sub(begin) != 5*time.Second {
				t.Errorf("got deadline %v %v", deadline, ok)
			}
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, queue.ErrTimeout) || time.Since(begin) != 5*time.Second {
				t.Errorf("ended after %v: %v", time.Since(begin), cause)
			}
			if attempts == 2 {
				stop()
				return errors.New("sulking")
			}
			return ctx.Err()
		})
		if err != nil || attempts != 2 {
			t.Fatal(err, attempts)
		}
		for letter, err := range q.DeadLetters(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(letter.Reason, "limit is over: it was 5s: sulking") || len(letter.Failures) != 2 ||
				!strings.Contains(letter.Failures[0].Reason, "time limit is over: it was 5s") ||
				!strings.HasSuffix(letter.Failures[1].Reason, "sulking") {
				t.Errorf("got %+v", letter)
			}
		}
		wantLen(t, q, queue.Counts{Dead: 1})
	})
}

// Promise: 7
func TestHandlerMayFinishAfterTheTimeLimit(t *testing.T) {
	t.Parallel()
	for name, handle := range map[string]func(context.Context, *queue.Item) error{
		"by its result": func(context.Context, *queue.Item) error { return nil },
		"by itself": func(ctx context.Context, item *queue.Item) error {
			return item.Done(context.WithoutCancel(ctx))
		},
		"as it likes": func(context.Context, *queue.Item) error {
			return &queue.RejectError{Err: errors.New("bad")}
		},
		"when it likes":  func(context.Context, *queue.Item) error { return &queue.RetryError{After: time.Hour} },
		"before it ends": nil,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				q := w.queue(queue.Config{Timeout: time.Second})
				put(t, q, "a", queue.Message{})
				ctx, stop := context.WithCancel(t.Context())
				runs := 0
				err := q.Consume(ctx, 1, func(ctx context.Context, item *queue.Item) error {
					runs++
					stop()
					if handle == nil {
						if err := item.Done(ctx); err != nil {
							t.Error(err)
						}
						time.Sleep(time.Minute) // the item is gone, and nothing fails it
						return errors.New("ignored")
					}
					<-ctx.Done()
					return handle(ctx, item)
				})
				if err != nil || runs != 1 {
					t.Fatal(err, runs)
				}
				switch name {
				case "as it likes":
					wantLen(t, q, queue.Counts{Dead: 1})
				case "when it likes":
					wantLen(t, q, queue.Counts{Delayed: 1})
				default:
					wantLen(t, q, queue.Counts{})
				}
			})
		})
	}
}

// A handler that does not look at its context does not keep its item for ever, and the item is not with two at a time
// as far as their contexts say.
//
// Promise: 7
func TestItemOfAHandlerThatHangsGoesToAnother(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		first := w.queue(queue.Config{Timeout: 5 * time.Second})
		put(t, first, "a", queue.Message{})
		ctx, stop := context.WithCancel(t.Context())
		release := make(chan struct{})
		var hung context.Context
		var wg sync.WaitGroup
		begun := make(chan struct{})
		wg.Go(func() {
			if err := first.Consume(ctx, 1, func(ctx context.Context, item *queue.Item) error {
				hung = ctx //nolint:fatcontext // to be asked whether it has ended
				close(begun)
				<-release
				if err := item.Done(context.WithoutCancel(ctx)); !errors.Is(err, queue.ErrFinished) {
					t.Errorf("got %v, want ErrFinished", err)
				}
				return errors.New("ignored")
			}); err != nil {
				t.Error(err)
			}
		})
		<-begun
		item := take(t, w.queue(queue.Config{}))
		if item.Attempt() != 2 || len(item.Failures()) != 1 || !errors.Is(context.Cause(hung), queue.ErrTimeout) {
			t.Errorf("got attempt %d, %v, and the first's context: %v",
				item.Attempt(), item.Failures(), context.Cause(hung))
		}
		stop()
		close(release)
		wg.Wait()
		done(t, item)
		wantLen(t, first, queue.Counts{})
	})
}

// Whatever happens to the request that makes an attempt fail when its time is over, the attempt fails once, and the
// item comes again.
//
// Promise: 7
func TestFaultsWhenTheTimeIsOverChangeNothing(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]zktest.Fault{
		"request lost": zktest.Refuse, "cut before": zktest.CutBefore,
		"reply lost": zktest.DropReply, "cut after": zktest.CutAfter,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				q := w.queue(queue.Config{Timeout: time.Second, Backoff: queue.Backoff{First: time.Minute}})
				put(t, q, "a", queue.Message{})
				var mu sync.Mutex
				hit := 0
				w.Control(func(r zktest.Request) zktest.Fault {
					mu.Lock()
					defer mu.Unlock()
					if len(r.Parts) == 0 || r.Parts[0].Op != zktest.OpDelete || hit == 2 ||
						!strings.HasPrefix(r.Parts[0].Path, root+"/ready/") {
						return zktest.Pass
					}
					hit++
					return fault
				})
				ctx, stop := context.WithCancel(t.Context())
				var attempts []int
				release := make(chan struct{})
				err := q.Consume(ctx, 2, func(_ context.Context, item *queue.Item) error {
					mu.Lock()
					attempts = append(attempts, item.Attempt())
					first := len(attempts) == 1
					mu.Unlock()
					if first {
						<-release // it hangs, and fails without its handler
						return nil
					}
					close(release)
					stop()
					if len(item.Failures()) != 1 {
						t.Errorf("got failures %v, want one", item.Failures())
					}
					return nil
				})
				if err != nil || len(attempts) != 2 || attempts[1] != 2 || hit == 0 {
					t.Fatal(err, attempts, hit)
				}
				wantLen(t, q, queue.Counts{})
			})
		})
	}
}

// Promise: 7
func TestClaimThatIsLostIsNotATimeout(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{Timeout: time.Hour})
		put(t, q, "a", queue.Message{})
		ctx, stop := context.WithCancel(t.Context())
		runs := 0
		err := q.Consume(ctx, 1, func(ctx context.Context, item *queue.Item) error {
			if runs++; runs == 1 {
				w.ExpireSession(item.Session().ID())
				<-ctx.Done()
				if errors.Is(context.Cause(ctx), queue.ErrTimeout) {
					t.Error("a lost claim is told as a timeout")
				}
				time.Sleep(2 * time.Hour) // what would fail the attempt finds the claim lost
				return ctx.Err()
			}
			stop()
			if item.Attempt() != 2 || len(item.Failures()) != 0 {
				t.Errorf("got attempt %d, %v", item.Attempt(), item.Failures())
			}
			return nil
		})
		if err != nil || runs != 2 {
			t.Fatal(err, runs)
		}
	})
}

// The handler's context, and the item's, may be used to finish the item, although they end by that.
func TestItemIsFinishedWithItsOwnContext(t *testing.T) {
	t.Parallel()
	for name, finish := range map[string]func(context.Context, *queue.Item) error{
		"Done":   func(ctx context.Context, item *queue.Item) error { return item.Done(ctx) },
		"Fail":   func(ctx context.Context, item *queue.Item) error { return item.Fail(ctx, errors.New("no")) },
		"Reject": func(ctx context.Context, item *queue.Item) error { return item.Reject(ctx, "no") },
		"Return": func(ctx context.Context, item *queue.Item) error { return item.Return(ctx, time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				q := w.queue(queue.Config{Timeout: time.Minute})
				putAll(t, q, 0, 2)
				ctx, stop := context.WithCancel(t.Context())
				runs := 0
				err := q.Consume(ctx, 1, func(ctx context.Context, item *queue.Item) error {
					if runs++; runs == 1 {
						ctx = item.Context()
					} else {
						stop()
					}
					if err := finish(ctx, item); err != nil || !errors.Is(context.Cause(ctx), queue.ErrFinished) {
						t.Errorf("got %v, and the context's cause %v", err, context.Cause(ctx))
					}
					return nil
				})
				if err != nil || runs != 2 {
					t.Fatal(err, runs)
				}
			})
		})
	}
}

// A Done with other writes is on its way when the time is over, and the servers refuse it later. The item does not stay
// with the consumer, whose handler has left: the attempt fails.
//
// Promise: 7
func TestItemWhoseDoneIsRefusedAfterItsHandlerHasLeftComesAgain(t *testing.T) {
	t.Parallel()
	for name, finish := range map[string]func(context.Context, *queue.Item, ...zk.Op) error{
		"at the time limit": func(ctx context.Context, item *queue.Item, ops ...zk.Op) error {
			return item.Done(ctx, ops...)
		},
		"when its caller has no more time": func(ctx context.Context, item *queue.Item, ops ...zk.Op) error {
			ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			return item.Done(ctx, ops...)
		},
		"when the attempt was to fail": func(ctx context.Context, item *queue.Item, ops ...zk.Op) error {
			return item.Done(context.WithoutCancel(ctx), ops...)
		},
		"while the handler hangs": func(ctx context.Context, item *queue.Item, ops ...zk.Op) error {
			err := item.Done(ctx, ops...)
			pass(time.Minute)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				q := w.queue(queue.Config{Timeout: time.Second})
				put(t, q, "a", queue.Message{Group: "g"})
				put(t, q, "b", queue.Message{Group: "g"})
				held, release := context.WithTimeout(t.Context(), 10*time.Second)
				defer release()
				w.Control(func(r zktest.Request) zktest.Fault {
					if len(r.Parts) > 2 && r.Parts[0].Op == zktest.OpDelete && r.Parts[2].Path == "/missing" {
						return zktest.Until(held)
					}
					return zktest.Pass
				})
				ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
				defer stop()
				var mu sync.Mutex
				var attempts []int
				if err := q.Consume(ctx, 2, func(ctx context.Context, item *queue.Item) error {
					mu.Lock()
					attempts = append(attempts, item.Attempt())
					n := len(attempts)
					mu.Unlock()
					switch n {
					case 1:
						return finish(ctx, item, zk.CheckOp("/missing", -1))
					case 3:
						stop()
					}
					return nil
				}); err != nil {
					t.Error(err)
				}
				if !slices.Equal(attempts, []int{1, 2, 1}) {
					t.Errorf("got attempts %v, want 1 2 1", attempts)
				}
				wantLen(t, q, queue.Counts{})
			})
		})
	}
}
