package queue_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

func pause(t *testing.T, q *queue.Queue, reason string) {
	t.Helper()
	if err := q.Pause(t.Context(), reason); err != nil {
		t.Fatal(err)
	}
}

func resume(t *testing.T, q *queue.Queue) {
	t.Helper()
	if err := q.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Promise: 7
func TestPausedQueueDeliversNothingAndItemsInHandFinish(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		operator := w.queue(queue.Config{})
		putAll(t, operator, 0, 100)
		worker, other := w.queue(queue.Config{Linger: time.Hour}), w.queue(queue.Config{})
		doneInOrder(t, worker, 0, 10)
		held := take(t, worker)
		pause(t, operator, "the mail server is down")
		synctest.Wait()
		for _, q := range []*queue.Queue{worker, other} {
			item, err := q.TryTake(t.Context())
			if !errors.Is(err, queue.ErrPaused) || !errors.Is(err, queue.ErrEmpty) {
				t.Fatalf("got %v, %v, want ErrPaused", item, err)
			}
		}
		wantLen(t, operator, queue.Counts{Ready: 89, Claimed: 1}) // what was claimed ahead has gone back
		done(t, held)
		put(t, operator, "100", queue.Message{})
		got := make(chan *queue.Item)
		for range 2 {
			go takeInto(t, worker, got)
		}
		go takeInto(t, other, got)
		pass(10 * time.Minute)
		select {
		case item := <-got:
			t.Fatalf("%s was delivered", item.Body())
		default:
		}
		resume(t, operator)
		seen := make(map[string]bool)
		for range 3 {
			item := <-got
			seen[string(item.Body())] = true
			if item.Attempt() != 1 {
				t.Errorf("attempt %d", item.Attempt())
			}
			done(t, item)
		}
		if !seen["11"] {
			t.Errorf("got %v, want 11 to be among the first", seen)
		}
	})
}

func TestPauseTellsWhoAndWhyAndStays(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		if p, err := q.Paused(t.Context()); p != nil || err != nil {
			t.Fatal(p, err)
		}
		resume(t, q)
		begin := time.Now()
		pause(t, q, "first")
		pass(time.Minute)
		pause(t, w.queue(queue.Config{}), "second")
		for _, id := range w.Connected() {
			w.ExpireSession(id)
		}
		p, err := w.queue(queue.Config{}).Paused(t.Context())
		if err != nil || p == nil || p.Reason != "first" || p.PID != os.Getpid() || p.Host == "" || p.Program == "" ||
			p.At.Sub(begin).Abs() > time.Second {
			t.Errorf("got %+v, %v", p, err)
		}
		resume(t, q)
		if p, err := q.Paused(t.Context()); p != nil || err != nil {
			t.Error(p, err)
		}
	})
}

// A claim that is under way when the queue is paused is refused, even if its consumer has not heard of the pause.
//
// Promise: 7
func TestNothingIsClaimedAfterAPause(t *testing.T) {
	t.Parallel()
	for name, free := range map[string]bool{"behind the cursor": false, "given back": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				operator, worker := w.queue(queue.Config{}), w.queue(queue.Config{Prefetch: -1})
				putAll(t, operator, 0, 3)
				if free {
					if err := take(t, worker).Return(t.Context(), 0); err != nil {
						t.Fatal(err)
					}
				}
				claims := make(chan struct{}, 99)
				held, release := context.WithCancel(t.Context())
				w.Control(func(r zktest.Request) zktest.Fault {
					if len(r.Parts) > 1 && r.Parts[1].Op == zktest.OpCreate &&
						strings.HasPrefix(r.Parts[1].Path, root+"/claims/") {
						claims <- struct{}{}
						return zktest.Until(held)
					}
					return zktest.Pass
				})
				got := make(chan *queue.Item, 1)
				go takeInto(t, worker, got)
				<-claims
				pause(t, operator, "")
				before := freeClaims(t, w)
				release()
				pass(10 * time.Minute)
				if after := freeClaims(t, w); !slices.Equal(after, before) {
					t.Errorf("it was claimed, and given back: free claims %v, before %v", after, before)
				}
				select {
				case item := <-got:
					t.Fatalf("%s was delivered", item.Body())
				default:
				}
				wantLen(t, operator, queue.Counts{Ready: 3})
				if n := len(claims); n > 0 {
					t.Errorf("%d more claims were tried", n)
				}
				w.Control(nil)
				resume(t, operator)
				item := <-got
				wantBody(t, item, "0")
				done(t, item)
				doneInOrder(t, worker, 1, 3)
			})
		})
	}
}

// Promise: 7
func TestPauseOutlivesOutagesOfItsConsumers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		operator, worker := w.queue(queue.Config{}), w.queue(queue.Config{})
		got := make(chan *queue.Item, 1)
		go takeInto(t, worker, got)
		pass(time.Second)
		pause(t, operator, "")
		putAll(t, operator, 0, 1)
		for i := range 4 {
			switch i {
			case 0:
				w.Restart()
			case 1:
				for _, id := range w.Connected() {
					w.Cut(id)
				}
			default:
				for _, id := range w.Connected() {
					w.ExpireSession(id)
				}
			}
			pass(time.Minute)
			w.Heal()
			pass(time.Minute)
			select {
			case item := <-got:
				t.Fatalf("%s was delivered", item.Body())
			default:
			}
		}
		resume(t, operator)
		done(t, <-got)
	}, zktest.Durable())
}

// Many consumers wait while the queue is paused, and a resume does not wake them all.
//
// Promise: 7
func TestResumeWakesFewOfThoseWhoWait(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const n = 20
		operator := w.queue(queue.Config{})
		putAll(t, operator, 0, 1)
		pause(t, operator, "")
		got := make(chan *queue.Item)
		for range n {
			q := w.queue(queue.Config{})
			go takeInto(t, q, got)
			pass(time.Second)
		}
		before := w.Traffic().Events
		resume(t, operator)
		done(t, <-got)
		synctest.Wait()
		if woken := w.Traffic().Events - before; woken > 8 {
			t.Errorf("the resume sent %d events", woken)
		}
		for range n - 1 {
			put(t, operator, "a", queue.Message{})
			done(t, <-got)
		}
	})
}

// Promise: 7
func TestConsumersGoOnAfterAPause(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const n = 200
		operator := w.queue(queue.Config{})
		y := newTally()
		stop := y.consume(t, w, 4)
		for i := 0; i < n; i += 20 {
			putAll(t, operator, i, i+20)
			pause(t, operator, "")
			pass(200 * time.Millisecond)
			before, err := operator.Len(t.Context())
			if err != nil || before.Claimed > 0 {
				t.Fatalf("got %+v, %v, want none in hand by now", before, err)
			}
			pass(time.Minute)
			wantLen(t, operator, before)
			resume(t, operator)
			pass(time.Duration(i) * time.Millisecond)
		}
		pass(time.Minute)
		stop()
		y.check(t, n, false)
	})
}

// A purge removes items of a paused queue.
func TestPausedQueueIsPurged(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		putAll(t, q, 0, 50)
		doneInOrder(t, q, 0, 3)
		pause(t, q, "")
		if n, err := q.Purge(t.Context()); n != 47 || err != nil {
			t.Fatal(n, err)
		}
	})
}

// Promise: 7
func TestPauseNodeThatIsRemovedComesBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, sess := w.queue(queue.Config{}), w.Session(t, time.Hour)
		putAll(t, q, 0, 3)
		doneInOrder(t, q, 0, 1)
		pass(time.Minute)
		pause(t, q, "")
		if err := sess.Delete(t.Context(), root+"/gate", -1); err != nil {
			t.Fatal(err)
		}
		doneInOrder(t, q, 1, 3)
		pause(t, q, "")
		if p, err := q.Paused(t.Context()); p == nil || err != nil {
			t.Fatal(p, err)
		}
	})
}

// Whichever request of a pause or a resume gets lost, or its reply, it is done once, and undoes nothing.
//
// Promise: 7
func TestConnectionLostAtAnyStepOfAPauseChangesNothing(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]zktest.Fault{
		"request lost": zktest.Refuse, "cut before": zktest.CutBefore,
		"reply lost": zktest.DropReply, "cut after": zktest.CutAfter,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				steps := 0
				sess := w.Session(t, time.Hour)
				for step, reached := 1, true; reached; step++ {
					q := w.queue(queue.Config{})
					reached = false
					w.Control(func(r zktest.Request) zktest.Fault {
						if r.Seq != step || r.Session == sess.ID() {
							return zktest.Pass
						}
						reached = true
						return fault
					})
					pause(t, q, "")
					resume(t, q)
					pause(t, q, "")
					w.Control(nil)
					_, stat, err := sess.Get(t.Context(), root+"/gate")
					if err != nil || int(stat.Version) != 4*step-1 {
						t.Fatalf("step %d: the node's version is %d, %v, want %d", step, stat.Version, err, 4*step-1)
					}
					resume(t, q)
					steps = step
				}
				if steps < 8 {
					t.Errorf("only %d steps had a fault", steps)
				}
			})
		})
	}
}

// A pause whose reply is lost, and that another client ends meanwhile, does not come back.
//
// Promise: 7
func TestPauseWhoseReplyIsLateDoesNotUndoAResume(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, other := w.queue(queue.Config{}), w.queue(queue.Config{})
		putAll(t, q, 0, 1)
		var mu sync.Mutex
		hit := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			mu.Lock()
			defer mu.Unlock()
			if len(r.Parts) == 2 && r.Parts[1].Path == root+"/gate" && hit == 0 {
				hit++
				w.Mute(r.Session)
			}
			return zktest.Pass
		})
		result := make(chan error, 1)
		go func() { result <- q.Pause(t.Context(), "") }()
		pass(5 * time.Second)
		resume(t, other)
		pass(time.Minute)
		w.Heal()
		if err := <-result; err != nil {
			t.Fatal(err)
		}
		if p, err := other.Paused(t.Context()); p != nil || err != nil || hit != 1 {
			t.Errorf("got %+v, %v: paused once more", p, err)
		}
	})
}

func TestCallerOfAPauseThatLeavesDoesNotKnow(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		w.Control(func(r zktest.Request) zktest.Fault {
			if len(r.Parts) == 2 && r.Parts[1].Path == root+"/gate" {
				return zktest.DelayReply(time.Hour)
			}
			return zktest.Pass
		})
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		if err := q.Pause(ctx, ""); !errors.Is(err, context.DeadlineExceeded) || zk.OutcomeOf(err) != zk.Unknown {
			t.Errorf("got %v (%v), want that it is unknown", err, zk.OutcomeOf(err))
		}
	})
}

// A taker that does not want to wait learns of a pause that begins while it asks.
func TestTryTakeOfAnEmptyQueueTellsThatItIsPausedNow(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		operator, worker := w.queue(queue.Config{}), w.queue(queue.Config{})
		putAll(t, operator, 0, 1)
		doneInOrder(t, worker, 0, 1)
		asks, ask := context.WithCancel(t.Context())
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpSync && r.Path == root {
				return zktest.Until(asks)
			}
			return zktest.Pass
		})
		tried := make(chan error, 1)
		go func() {
			_, err := worker.TryTake(t.Context())
			tried <- err
		}()
		synctest.Wait()
		pause(t, operator, "")
		ask()
		if err := <-tried; !errors.Is(err, queue.ErrPaused) {
			t.Errorf("got %v, want ErrPaused", err)
		}
	})
}

// A taker that does not want to wait learns of a resume that its server has not heard of yet.
//
// Promise: 7
func TestTryTakeAfterAResumeGetsAnItemThoughItsServerLags(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		operator, worker := w.queue(queue.Config{}), w.queue(queue.Config{})
		putAll(t, operator, 0, 1)
		pause(t, operator, "")
		if _, err := worker.TryTake(t.Context()); !errors.Is(err, queue.ErrPaused) {
			t.Fatalf("got %v, want ErrPaused", err)
		}
		w.HoldWatches()
		resume(t, operator)
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpSync {
				w.ReleaseWatches()
			}
			return zktest.Pass
		})
		item, err := worker.TryTake(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		done(t, item)
	})
}

// A consumer that is idle for longer than the linger watches nothing.
func TestIdleConsumerRemovesItsWatches(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		worker := w.queue(queue.Config{})
		wantEmpty(t, worker)
		var mu sync.Mutex
		removed := make(map[string]bool)
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpRemoveWatches {
				mu.Lock()
				defer mu.Unlock()
				removed[strings.TrimPrefix(r.Path, root)] = true
			}
			return zktest.Pass
		})
		pass(2 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		for _, path := range []string{"/gate", "/ready", "/consumers"} {
			if !removed[path] {
				t.Errorf("%s is watched", path)
			}
		}
	})
}

func freeClaims(t *testing.T, w *world) []string {
	t.Helper()
	names, _, err := w.Session(t, time.Minute).Children(t.Context(), root+"/free")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// A pause keeps its time when the rate, which stands in the same node, is set. What a person has written there pauses
// the queue.
//
// Promise: 7
func TestPauseStaysWhatItIsBesideARate(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		putAll(t, q, 0, 1)
		begin := time.Now()
		pause(t, q, "first")
		pass(10 * time.Minute)
		setRate(t, q, queue.Rate{Items: 1, Per: time.Second})
		p, err := q.Paused(t.Context())
		if err != nil || p == nil || p.Reason != "first" || p.At.Sub(begin).Abs() > time.Second {
			t.Errorf("got %+v, %v", p, err)
		}
		if _, err := w.Session(t, time.Minute).Set(t.Context(), root+"/gate", []byte("stop!"), -1); err != nil {
			t.Fatal(err)
		}
		p, err = q.Paused(t.Context())
		if err != nil || p == nil || p.Reason != "stop!" {
			t.Errorf("got %+v, %v", p, err)
		}
		if _, err := q.TryTake(t.Context()); !errors.Is(err, queue.ErrPaused) {
			t.Errorf("got %v, want ErrPaused", err)
		}
		resume(t, q)
		doneInOrder(t, q, 0, 1)
	})
}

func TestPauseWithAReasonThatIsTooLongIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		for _, size := range []int{1001, 2 << 20} {
			err := q.Pause(ctx, strings.Repeat("x", size))
			if !errors.Is(err, zk.BadArguments) || !strings.Contains(err.Error(), "1000 bytes") {
				t.Errorf("got %v for %d bytes, want BadArguments with the limit", err, size)
			}
		}
		if p, err := q.Paused(ctx); p != nil || err != nil {
			t.Errorf("got %v, %v, want no pause", p, err)
		}
		pause(t, q, strings.Repeat("\x00", 1000)) // each of which is stored as six bytes
	})
}
