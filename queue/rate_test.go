package queue_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

func setRate(t *testing.T, q *queue.Queue, r queue.Rate) {
	t.Helper()
	if err := q.SetRate(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

// deliveries records when items are delivered.
type deliveries struct {
	mu sync.Mutex
	at []time.Time
}

func (d *deliveries) add() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = append(d.at, time.Now())
}

// count returns how many there were so far.
func (d *deliveries) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.at)
}

// check fails unless there were no more deliveries in any time than the rate allows.
func (d *deliveries) check(t *testing.T, r queue.Rate) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	slices.SortFunc(d.at, time.Time.Compare)
	for i := range d.at {
		for j := i; j < len(d.at); j++ {
			window := d.at[j].Sub(d.at[i])
			most := float64(r.Burst) + float64(window)/float64(r.Per)*float64(r.Items)
			if n := j - i + 1; float64(n) > most+1e-6 {
				t.Fatalf("%d deliveries in %v, want at most %.1f", n, window, most)
			}
		}
	}
}

// Promise: 7
func TestQueueKeepsItsRateWithManyConsumers(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]queue.Rate{
		"one by one": {Items: 10, Per: time.Second, Burst: 1},
		"in bursts":  {Items: 60, Per: time.Minute, Burst: 20},
		"odd":        {Items: 7, Per: 3 * time.Second, Burst: 3},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				const n = 100
				operator := w.queue(queue.Config{})
				setRate(t, operator, r)
				putAll(t, operator, 0, n)
				ctx, stop := context.WithCancel(t.Context())
				var all deliveries
				var wg sync.WaitGroup
				for range 5 {
					q := w.queue(queue.Config{})
					wg.Go(func() {
						if err := q.Consume(ctx, 4, func(context.Context, *queue.Item) error {
							all.add()
							return nil
						}); err != nil {
							t.Error(err)
						}
					})
				}
				pass(time.Duration(float64(r.Per) / float64(r.Items) * n * 0.9))
				if early := all.count(); early < n*8/10 {
					t.Errorf("only %d of %d were delivered in nine tenths of the time", early, n)
				}
				pass(10 * time.Minute)
				stop()
				wg.Wait()
				if all.count() != n {
					t.Errorf("%d deliveries, want %d", all.count(), n)
				}
				all.check(t, r)
				wantLen(t, operator, queue.Counts{})
			})
		})
	}
}

// Promise: 7
func TestTryTakeTellsThatTheRateIsUsedUp(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		putAll(t, q, 0, 5)
		setRate(t, q, queue.Rate{Items: 3, Per: time.Hour, Burst: 2})
		doneInOrder(t, q, 0, 2)
		for _, q := range []*queue.Queue{q, w.queue(queue.Config{})} {
			item, err := q.TryTake(t.Context())
			if !errors.Is(err, queue.ErrLimited) || !errors.Is(err, queue.ErrEmpty) {
				t.Fatalf("got %v, %v, want ErrLimited", item, err)
			}
		}
		pass(21 * time.Minute)
		doneInOrder(t, q, 2, 3)
		setRate(t, q, queue.Rate{})
		doneInOrder(t, q, 3, 5)
		if r, err := q.Rate(t.Context()); r != (queue.Rate{}) || err != nil {
			t.Error(r, err)
		}
	})
}

// A new rate counts from its beginning, and reaches consumers that wait under the old one.
//
// Promise: 7
func TestNewRateReachesThoseWhoWait(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, operator := w.queue(queue.Config{}), w.queue(queue.Config{})
		putAll(t, q, 0, 6)
		setRate(t, operator, queue.Rate{Items: 1, Per: 24 * time.Hour})
		doneInOrder(t, q, 0, 1)
		got := make(chan *queue.Item)
		go takeInto(t, q, got)
		pass(time.Hour)
		setRate(t, operator, queue.Rate{Items: 1, Per: time.Minute})
		done(t, <-got)
		go takeInto(t, q, got)
		pass(time.Second)
		pause(t, operator, "both")
		pass(time.Hour)
		select {
		case item := <-got:
			t.Fatalf("%s was delivered while paused", item.Body())
		default:
		}
		if p, err := operator.Paused(t.Context()); err != nil || p == nil || p.Reason != "both" {
			t.Error(p, err)
		}
		if r, err := operator.Rate(t.Context()); err != nil || r != (queue.Rate{Items: 1, Per: time.Minute, Burst: 1}) {
			t.Error(r, err)
		}
		begin := time.Now()
		setRate(t, operator, queue.Rate{Items: 1, Per: time.Second})
		pass(time.Minute)
		if p, err := operator.Paused(t.Context()); err != nil || p == nil || p.At.After(begin) {
			t.Errorf("got %+v, %v: the pause is older than the rate", p, err)
		}
		resume(t, operator)
		done(t, <-got)
		setRate(t, operator, queue.Rate{})
		doneInOrder(t, q, 3, 6)
	})
}

// An item that comes again counts again, and one that was put off does not stand in the way of others.
//
// Promise: 7
func TestEveryAttemptCounts(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r := queue.Rate{Items: 1, Per: time.Second, Burst: 1}
		soon := queue.Backoff{First: time.Millisecond, Max: time.Millisecond}
		q := w.queue(queue.Config{MaxAttempts: 3, Backoff: soon})
		putAll(t, q, 0, 10)
		setRate(t, q, r)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var all deliveries
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := q.Consume(ctx, 3, func(context.Context, *queue.Item) error {
				all.add()
				return errors.New("no")
			}); err != nil {
				t.Error(err)
			}
		})
		pass(time.Minute)
		stop()
		wg.Wait()
		if all.count() != 30 {
			t.Errorf("%d attempts, want 30", all.count())
		}
		all.check(t, r)
		wantLen(t, q, queue.Counts{Dead: 10})
	})
}

// Sessions that end, and connections that break in the middle of a claim, let no more through.
//
// Promise: 7
func TestRateHoldsUnderFaults(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const n = 60
		r := queue.Rate{Items: 2, Per: time.Second, Burst: 2}
		operator := w.queue(queue.Config{})
		begin := time.Now()
		setRate(t, operator, r)
		putAll(t, operator, 0, n)
		ctx, stop := context.WithCancel(t.Context())
		var all deliveries
		var wg sync.WaitGroup
		for range 3 {
			q := w.queue(queue.Config{})
			wg.Go(func() {
				if err := q.Consume(ctx, 2, func(ctx context.Context, _ *queue.Item) error {
					all.add()
					select {
					case <-time.After(50 * time.Millisecond):
					case <-ctx.Done():
					}
					return nil
				}); err != nil {
					t.Error(err)
				}
			})
		}
		w.Control(func(req zktest.Request) zktest.Fault {
			if len(req.Parts) > 3 && req.Seq%7 == 0 {
				return []zktest.Fault{zktest.DropReply, zktest.CutBefore, zktest.CutAfter}[req.Seq/7%3]
			}
			return zktest.Pass
		})
		for range 5 {
			pass(10 * time.Second)
			for _, id := range w.Connected()[:1] {
				w.ExpireSession(id)
			}
		}
		w.Control(nil)
		pass(10 * time.Minute)
		stop()
		wg.Wait()
		if all.count() < n {
			t.Errorf("%d deliveries of %d items", all.count(), n)
		}
		// A claim whose reply was lost is delivered late, but not more of them.
		slices.SortFunc(all.at, time.Time.Compare)
		for i, at := range all.at {
			if most := 2 + 2*at.Sub(begin).Seconds(); float64(i+1) > most+1e-6 {
				t.Fatalf("%d deliveries in %v, want at most %.1f", i+1, at.Sub(begin), most)
			}
		}
		wantLen(t, operator, queue.Counts{})
	})
}

// Consumers that wait for the rate do not all ask for each item.
//
// Promise: 7
func TestConsumersThatWaitForTheRateAreFewWhoAsk(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const n = 20
		operator := w.queue(queue.Config{})
		setRate(t, operator, queue.Rate{Items: 1, Per: 10 * time.Second})
		putAll(t, operator, 0, n)
		got := make(chan *queue.Item)
		for range n {
			q := w.queue(queue.Config{})
			go takeInto(t, q, got)
		}
		pass(25 * time.Second)
		for range 2 {
			done(t, <-got)
		}
		synctest.Wait()
		var mu sync.Mutex
		requests := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			mu.Lock()
			defer mu.Unlock()
			if r.Op == zktest.OpGetData || r.Op == zktest.OpGetChildren {
				requests++
			}
			return zktest.Pass
		})
		pass(50 * time.Second)
		for range 5 {
			done(t, <-got)
		}
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if requests > 5*20 {
			t.Errorf("%d nodes were read for 5 items", requests)
		}
		w.Control(nil)
		setRate(t, operator, queue.Rate{})
		for range n - 7 {
			done(t, <-got)
		}
	})
}

// Promise: 7
func TestRatesThatMakeNoSenseAreRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		for _, r := range []queue.Rate{
			{Items: 1},
			{Per: time.Second},
			{Items: -1, Per: time.Second},
			{Items: 1, Per: -time.Second},
			{Items: 1, Per: time.Microsecond},
			{Items: 1, Per: 400 * 24 * time.Hour},
			{Burst: 1},
			{Items: 2, Per: time.Second, Burst: 3},
			{Items: 2, Per: time.Second, Burst: -1},
			{Items: 2_000_000_000, Per: time.Second},
		} {
			if err := q.SetRate(t.Context(), r); !errors.Is(err, zk.BadArguments) {
				t.Errorf("%+v: got %v", r, err)
			}
		}
		// What another program wrote there does not stop the queue.
		sess := w.Session(t, time.Hour)
		putAll(t, q, 0, 2)
		for _, data := range []string{`{"rate":{"items":0}}`, `{"rate":{"items":5,"per_ns":-1,"burst":1000000}}`} {
			if _, err := sess.Set(t.Context(), root+"/gate", []byte(data), -1); err != nil {
				t.Fatal(err)
			}
			if _, err := sess.Set(t.Context(), root+"/rate", []byte("not a number"), -1); err != nil {
				t.Fatal(err)
			}
			done(t, take(t, q))
		}
	})
}

// Promise: 7
func TestNewRateForgetsWhatWasUsedOfTheFormer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		putAll(t, q, 0, 2)
		setRate(t, q, queue.Rate{Items: 1, Per: 30 * time.Second})
		done(t, take(t, q))
		setRate(t, q, queue.Rate{Items: 100, Per: time.Second})
		item, err := q.TryTake(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		done(t, item)
	})
}

// Promise: 7
func TestNothingIsClaimedAheadWhileThereIsARate(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		putAll(t, q, 0, 10)
		setRate(t, q, queue.Rate{Items: 100, Per: time.Second, Burst: 100})
		item := take(t, q)
		wantLen(t, q, queue.Counts{Ready: 9, Claimed: 1})
		done(t, item)
	})
}

// What a consumer has claimed ahead before there was a rate it hands out, but it does not claim more of it unpaid.
//
// Promise: 7
func TestConsumerThatWasFastKeepsANewRate(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		putAll(t, q, 0, 200)
		claimed := 0
		for i := 0; claimed < 20; i++ {
			doneInOrder(t, q, i, i+1)
			synctest.Wait()
			counts, err := q.Len(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			claimed = counts.Claimed
		}
		setRate(t, q, queue.Rate{Items: 1, Per: time.Hour})
		taken := 0
		takeAll(t, q, func(*queue.Item) {
			taken++
			synctest.Wait() // now it has claimed ahead, if it does
		})
		if want := claimed + 1; taken != want {
			t.Errorf("%d items were delivered, want those that were claimed and one: %d", taken, want)
		}
	})
}

// The servers' clock has gone back by a day since the last claim.
//
// Promise: 7
func TestRateGoesOnWhenTheClockHasGoneBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		putAll(t, q, 0, 1)
		setRate(t, q, queue.Rate{Items: 1, Per: time.Second})
		paid := strconv.FormatInt(time.Now().Add(24*time.Hour).UnixNano(), 10)
		if _, err := w.Session(t, time.Minute).Set(t.Context(), root+"/rate", []byte(paid), -1); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		item, err := q.Take(ctx)
		if err != nil {
			t.Fatal(err)
		}
		done(t, item)
	})
}
