package queue_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
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

// A diary writes down what hooks are told, and checks that each delivery ends once.
type diary struct {
	t *testing.T

	mu      sync.Mutex // guards the fields below
	open    map[*queue.Item]bool
	results map[queue.Result]int
	lines   []string
	puts    int
	claimed int
	last    queue.ItemEnd
}

func newDiary(t *testing.T) *diary {
	t.Helper()
	return &diary{t: t, open: make(map[*queue.Item]bool), results: make(map[queue.Result]int)}
}

func (d *diary) hooks() queue.Hooks {
	line := func(format string, args ...any) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.lines = append(d.lines, fmt.Sprintf(format, args...))
	}
	return queue.Hooks{
		Put: func(_ context.Context, path string, n int) {
			d.mu.Lock()
			defer d.mu.Unlock()
			if path != root {
				d.t.Errorf("put into %s", path)
			}
			d.puts += n
		},
		Claimed: func(_ context.Context, item *queue.Item) {
			line("claimed")
			d.mu.Lock()
			defer d.mu.Unlock()
			d.claimed++
			d.open[item] = true
		},
		Done:    func(context.Context, *queue.Item) { line("done") },
		Retried: func(context.Context, *queue.Item, time.Duration) { line("retried") },
		Dead:    func(context.Context, string, string) { line("dead") },
		Ended: func(ctx context.Context, item *queue.Item, end queue.ItemEnd) {
			line("ended %v", end.Result)
			d.mu.Lock()
			defer d.mu.Unlock()
			if !d.open[item] || item.Queue() != root || ctx.Err() != nil || end.Took < 0 ||
				(end.Result == queue.ResultLost) != errors.Is(end.Err, queue.ErrClaimLost) {
				d.t.Errorf("item %s: %+v; open %v, context %v", item.ID(), end, d.open[item], ctx.Err())
			}
			delete(d.open, item)
			d.results[end.Result]++
			d.last = end
		},
	}
}

// want checks what was told since the last time, and returns the last end.
func (d *diary) want(want string) queue.ItemEnd {
	d.t.Helper()
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	if got := strings.Join(d.lines, ", "); got != want {
		d.t.Errorf("told %q, want %q", got, want)
	}
	d.lines = nil
	return d.last
}

// Promise: 7
func TestEachDeliveryEndsWithItsResult(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		d := newDiary(t)
		q := w.queue(queue.Config{Hooks: d.hooks(), MaxAttempts: 2})
		node := zk.CreateOp("/queues/result", nil, zk.Persistent)
		for name, c := range map[string]struct {
			finish func(item *queue.Item) error
			want   string
		}{
			"done": {func(it *queue.Item) error { return it.Done(t.Context()) }, "done, ended done"},
			"with a write": {
				func(it *queue.Item) error { return it.Done(t.Context(), node) }, "done, ended done",
			},
			"all": {
				func(it *queue.Item) error { return q.DoneAll(t.Context(), []*queue.Item{it}) }, "done, ended done",
			},
			"failed": {
				func(it *queue.Item) error { return it.Fail(t.Context(), errors.New("no")) }, "retried, ended retried",
			},
			"returned": {
				func(it *queue.Item) error { return it.Return(t.Context(), 0) }, "retried, ended retried",
			},
			"returned later": {
				func(it *queue.Item) error { return it.Return(t.Context(), time.Second) }, "retried, ended retried",
			},
			"rejected": {func(it *queue.Item) error { return it.Reject(t.Context(), "bad") }, "dead, ended dead"},
		} {
			put(t, q, "a", queue.Message{})
			item := take(t, q)
			d.want("claimed")
			pass(3 * time.Second)
			if err := c.finish(item); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			end := d.want(c.want)
			if end.Took != 3*time.Second {
				t.Errorf("%s: took %v, want 3s", name, end.Took)
			}
			if failed := name == "failed" || name == "rejected"; failed != (end.Err != nil) {
				t.Errorf("%s: the reason is %v", name, end.Err)
			}
			if err := item.Done(t.Context()); !errors.Is(err, queue.ErrFinished) {
				t.Errorf("%s, and then done: got %v", name, err)
			}
			d.want("")
			if strings.Contains(c.want, "retried") {
				again := take(t, q)
				if err := again.Reject(t.Context(), "clear"); err != nil {
					t.Error(err)
				}
				d.want("claimed, dead, ended dead")
			}
		}
		put(t, q, "a", queue.Message{})
		for _, want := range []string{"retried, ended retried", "dead, ended dead"} {
			if err := take(t, q).Fail(t.Context(), errors.New("no")); err != nil {
				t.Error(err)
			}
			d.want("claimed, " + want)
		}
		refused := zk.DeleteOp("/queues/none", -1)
		put(t, q, "a", queue.Message{})
		item := take(t, q)
		if err := item.Done(t.Context(), refused); !errors.Is(err, zk.NoNode) {
			t.Errorf("got %v, want zk.NoNode", err)
		}
		d.want("claimed") // it is still the caller's
		done(t, item)
		d.want("done, ended done")
		if len(d.open) > 0 || d.puts != 9 {
			t.Errorf("%d open, %d put", len(d.open), d.puts)
		}
	})
}

// Promise: 7
func TestLostClaimsAreToldOnce(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(w *world, c *zk.Client, item *queue.Item){
		"expired": func(w *world, _ *zk.Client, item *queue.Item) { w.ExpireSession(item.Session().ID()) },
		"cut off": func(w *world, _ *zk.Client, _ *queue.Item) { w.Cut() },
		"closed":  func(_ *world, c *zk.Client, _ *queue.Item) { _ = c.Close() },
		"consumer's node deleted": func(w *world, _ *zk.Client, _ *queue.Item) {
			sess := w.Session(w.t, time.Minute)
			for _, name := range w.children(root + "/consumers") {
				if err := sess.Delete(w.t.Context(), root+"/consumers/"+name, -1); err != nil {
					w.t.Error(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				d := newDiary(t)
				client := w.Client(t, 20*time.Second)
				q, err := queue.New(client, root, queue.Config{Hooks: d.hooks()})
				if err != nil {
					t.Fatal(err)
				}
				putAll(t, q, 0, 3)
				items := []*queue.Item{take(t, q), take(t, q), take(t, q)}
				done(t, items[0])
				d.want("claimed, claimed, claimed, done, ended done")
				lose(w, client, items[1])
				<-items[1].Context().Done()
				d.want("ended lost, ended lost")
				for _, item := range items[1:] {
					if err := item.Done(t.Context()); !errors.Is(err, queue.ErrClaimLost) {
						t.Errorf("got %v, want queue.ErrClaimLost", err)
					}
				}
				d.want("")
				w.Heal()
			})
		})
	}
}

// Promise: 7
func TestClaimThatIsLostWhileItsItemIsFinishedEndsOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault zktest.Fault
		want  queue.Result
	}{
		// It has reached the server, which nobody knows any more.
		"applied": {zktest.DropReply, queue.ResultLost}, "not applied": {zktest.Refuse, queue.ResultLost},
		"late": {zktest.DelayReply(2 * time.Second), queue.ResultDone},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				d := newDiary(t)
				q := w.queue(queue.Config{Hooks: d.hooks()})
				putAll(t, q, 0, 1)
				item := take(t, q)
				d.want("claimed")
				w.Control(func(r zktest.Request) zktest.Fault {
					if !isRemoval(r) {
						return zktest.Pass
					}
					if c.want == queue.ResultLost {
						w.Cut()
					}
					return c.fault
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := item.Done(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v, want that the caller leaves", err)
				}
				d.want("")
				pass(5 * time.Minute)
				w.Control(nil)
				w.Heal()
				want := "ended lost"
				if c.want == queue.ResultDone {
					want = "done, ended done"
				}
				if end := d.want(want); end.Took < 2*time.Second {
					t.Errorf("took %v", end.Took)
				}
			})
		})
	}
}

// The answer to what finishes an item comes after the loss of its claim was noticed.
//
// Promise: 7
func TestResultOfACallThatIsUnderWayCounts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"done": {nil, "ended done"}, "lost": {queue.ErrClaimLost, "ended lost"},
		"refused": {errors.New("refused"), "ended lost"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				d := newDiary(t)
				q := w.queue(queue.Config{Hooks: d.hooks()})
				putAll(t, q, 0, 1)
				item := take(t, q)
				if !item.BeginFinish() {
					t.Fatal("it is being finished")
				}
				w.ExpireSession(item.Session().ID())
				<-item.Context().Done()
				d.want("claimed")
				item.EndFinish(t.Context(), c.err)
				d.want(c.want)
			})
		})
	}
}

// The claim is lost before Take has returned the item.
//
// Promise: 7
func TestItemThatIsLostBeforeItIsReturnedEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		d := newDiary(t)
		hooks := d.hooks()
		claimed := hooks.Claimed
		hooks.Claimed = func(ctx context.Context, item *queue.Item) {
			claimed(ctx, item)
			w.ExpireSession(item.Session().ID())
			<-item.Context().Done()
			synctest.Wait()
		}
		q := w.queue(queue.Config{Hooks: hooks})
		putAll(t, q, 0, 1)
		_ = take(t, q)
		d.want("claimed, ended lost")
	})
}

// A consumer may live for months.
//
// Promise: 7
func TestItemsThatHaveEndedAreNotKept(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{Hooks: newDiary(t).hooks()})
		putAll(t, q, 0, 3)
		first, second, third := take(t, q), take(t, q), take(t, q)
		done(t, first)
		if n := q.KeptForHooks(); n != 2 {
			t.Errorf("%d items are kept, want 2", n)
		}
		done(t, second)
		done(t, third)
		if n := q.KeptForHooks(); n != 0 {
			t.Errorf("%d items are kept, want none", n)
		}
	})
}

// Promise: 7
func TestItemSaysHowLongItWaited(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var waited []time.Duration
		hooks := queue.Hooks{Claimed: func(_ context.Context, item *queue.Item) {
			waited = append(waited, item.Waited())
		}}
		q := w.queue(queue.Config{Hooks: hooks})
		const delay, wait = time.Hour, 10 * time.Second
		put(t, q, "now", queue.Message{})
		pass(wait)
		item := take(t, q)
		pass(time.Minute) // does not count
		if got := item.Waited(); got > wait+time.Second {
			t.Errorf("waited %v, and a minute later for %v", waited, got)
		}
		done(t, item)
		put(t, q, "later", queue.Message{Delay: delay})
		pass(delay + wait) // nobody has made it ready by then
		item = take(t, q)
		if err := item.Return(t.Context(), delay); err != nil {
			t.Error(err)
		}
		pass(delay + wait)
		done(t, take(t, q))
		put(t, q, "a", queue.Message{Group: "g"})
		put(t, q, "b", queue.Message{Group: "g"})
		pass(wait)
		item = take(t, q)
		pass(time.Hour) // the next one waits for its turn
		done(t, item)
		pass(wait)
		done(t, take(t, q))
		if len(waited) != 5 || slices.ContainsFunc(waited, func(d time.Duration) bool {
			return d < wait-time.Second || d > wait+time.Second
		}) {
			t.Errorf("waited %v, want %v each", waited, wait)
		}
	})
}

// Whatever goes wrong, what is delivered ends: gauges that add and subtract return to zero.
//
// Promise: 7
func TestHooksBalanceUnderRandomFaults(t *testing.T) {
	t.Parallel()
	for range soak.Pick(2, 20) {
		t.Run("", func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) { balances(t, w, rand.Uint64()) })
		})
	}
}

func balances(t *testing.T, w *world, seed uint64) {
	t.Helper()
	t.Logf("seed %d", seed)
	random, dice := rand.New(rand.NewPCG(seed, 0)), rand.New(rand.NewPCG(seed, 1))
	faults := []zktest.Fault{
		zktest.Refuse, zktest.CutBefore, zktest.DropReply, zktest.CutAfter, zktest.Mute, zktest.DelayReply(time.Second),
	}
	w.Control(func(r zktest.Request) zktest.Fault {
		if i := dice.IntN(150); i < len(faults) && r.Session != 0 {
			return faults[i]
		}
		return zktest.Pass
	})
	d := newDiary(t)
	ctx, calm := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 3 {
		backoff := queue.Backoff{First: time.Second, Max: time.Second}
		q := w.queue(queue.Config{Hooks: d.hooks(), MaxAttempts: 3, Backoff: backoff, Timeout: 2 * time.Second})
		moods := rand.New(rand.NewPCG(seed, random.Uint64()))
		wg.Go(func() {
			for ctx.Err() == nil {
				delay := time.Duration(moods.IntN(2)*moods.IntN(3000)) * time.Millisecond
				_, _ = q.Put(ctx, queue.Message{Body: []byte("a"), Delay: delay})
				time.Sleep(time.Duration(1+moods.IntN(300)) * time.Millisecond)
			}
		})
		var mu sync.Mutex // guards moods2
		moods2 := rand.New(rand.NewPCG(seed, random.Uint64()))
		wg.Go(func() {
			_ = q.Consume(ctx, 2, func(ctx context.Context, item *queue.Item) error {
				mu.Lock()
				mood, pause := moods2.IntN(6), time.Duration(moods2.IntN(3000))*time.Millisecond
				mu.Unlock()
				short, cancel := context.WithTimeout(ctx, pause)
				defer cancel()
				time.Sleep(pause / 2)
				switch mood {
				case 0:
					return errors.New("no")
				case 1:
					return &queue.RejectError{Err: errors.New("bad")}
				case 2:
					_ = item.Return(short, time.Second)
				case 3:
					_ = q.DoneAll(short, []*queue.Item{item})
				case 4:
					_ = item.Done(short)
				}
				return nil
			})
		})
	}
	for range 30 {
		time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
		ids := w.Sessions()
		if len(ids) == 0 {
			continue
		}
		victim := ids[random.IntN(len(ids))]
		switch random.IntN(6) {
		case 0:
			w.Drop(victim)
		case 1, 2:
			w.ExpireSession(victim)
		case 3:
			w.HalfOpen(victim)
		case 4:
			w.Cut(victim)
		default:
			w.Heal()
		}
	}
	w.Control(nil)
	w.Heal()
	calm()
	wg.Wait()
	pass(time.Minute)
	d.mu.Lock()
	defer d.mu.Unlock()
	total := 0
	for _, n := range d.results {
		total += n
	}
	if len(d.open) > 0 || total != d.claimed || len(d.results) != 4 {
		t.Errorf("%d were delivered, %d have not ended, results %v", d.claimed, len(d.open), d.results)
	}
}

// Each call that puts messages is told of before and after, with its outcome. The hook can add headers to the items,
// and the caller's messages stay as they are.
func TestCallsThatPutAreToldAndTakeHeaders(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		var sending, sent []*queue.Send
		hooks := queue.Hooks{
			Sending: func(_ context.Context, s *queue.Send) {
				sending = append(sending, s)
				for i := range s.Messages {
					s.Messages[i].Headers = map[string]string{"added": "by the hook"}
				}
			},
			Sent: func(_ context.Context, s *queue.Send) { sent = append(sent, s) },
		}
		q := w.queue(queue.Config{Hooks: hooks, MaxPacket: 16 << 10})
		mine := []queue.Message{{Body: []byte("a"), Headers: map[string]string{"mine": "1"}}, {Body: []byte("b")}}
		tooLarge := queue.Message{Body: make([]byte, 1<<20)}
		want := func(name string, n int, ids []string, err error) {
			t.Helper()
			if len(sending) != 1 || len(sent) != 1 || sending[0] != sent[0] {
				t.Fatalf("%s: Sending was told %d times and Sent %d times, or of different calls",
					name, len(sending), len(sent))
			}
			s := sent[0]
			if s.Queue != root || len(s.Messages) != n || !slices.Equal(s.IDs, ids) || !errors.Is(err, s.Err) {
				t.Errorf("%s: got %+v, want %d messages, %v, %v", name, s, n, ids, err)
			}
			sending, sent = nil, nil
		}
		id, err := q.Put(ctx, mine[0])
		want("Put", 1, []string{id}, err)
		ids, err := q.PutBatch(ctx, mine)
		want("PutBatch", 2, ids, err)
		id, added, err := q.PutOnce(ctx, "key", mine[0])
		want("PutOnce", 1, []string{id}, err)
		again, addedAgain, err := q.PutOnce(ctx, "key", mine[0])
		want("PutOnce again", 1, []string{id}, err)
		if id != again || !added || addedAgain {
			t.Errorf("the second PutOnce added %v", addedAgain)
		}
		ids, err = q.PutBatch(ctx, []queue.Message{mine[1], tooLarge})
		want("PutBatch of what is too large", 2, ids, err)
		if !errors.Is(err, queue.ErrTooLarge) {
			t.Error(err)
		}
		_, _, err = q.PutOnce(ctx, "other", tooLarge)
		want("PutOnce of what is too large", 1, nil, err)
		if !maps.Equal(mine[0].Headers, map[string]string{"mine": "1"}) || mine[1].Headers != nil {
			t.Errorf("the caller's headers are %v and %v", mine[0].Headers, mine[1].Headers)
		}
		for range 4 {
			item := take(t, q)
			if got := item.Headers()["added"]; got != "by the hook" {
				t.Errorf("got headers %v", item.Headers())
			}
			done(t, item)
		}
	})
}

// Calls that take are told of, but for those of Consume, and how long it took to finish an item.
func TestCallsThatTakeAreTold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var taken []queue.Taken
		var ended []queue.ItemEnd
		q := w.queue(queue.Config{Hooks: queue.Hooks{
			Taken: func(_ context.Context, k queue.Taken) { taken = append(taken, k) },
			Ended: func(_ context.Context, _ *queue.Item, end queue.ItemEnd) { ended = append(ended, end) },
		}})
		want := func(name string, n int, took time.Duration, err error) {
			t.Helper()
			if len(taken) != 1 {
				t.Fatalf("%s: told %d times", name, len(taken))
			}
			if k := taken[0]; k.Queue != root || len(k.Items) != n || k.Took != took || !errors.Is(err, k.Err) {
				t.Errorf("%s: got %+v", name, k)
			}
			taken = nil
		}
		_, err := q.TryTake(t.Context())
		want("TryTake", 0, 0, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = q.Take(ctx)
		want("Take until ctx ends", 0, time.Minute, err)
		putAll(t, q, 0, 3)
		items, err := q.TakeBatch(t.Context(), 2)
		want("TakeBatch", 2, 0, err)
		pass(3 * time.Second)
		if err := q.DoneAll(t.Context(), items); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		if err := q.Consume(ctx, 1, func(context.Context, *queue.Item) error {
			pass(3 * time.Second)
			w.Delay(time.Second)
			stop()
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if len(taken) > 0 {
			t.Error("Consume told of taking")
		}
		if len(ended) != 3 || ended[0].Finish != 0 || ended[0].Took != 3*time.Second {
			t.Fatalf("got %+v", ended)
		}
		if e := ended[2]; e.Finish < time.Second || e.Finish > e.Took-3*time.Second {
			t.Errorf("got %+v", e)
		}
	})
}

// Ids belong to messages by their places.
func TestSendingKeepsTheNumberOfMessages(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func([]queue.Message) []queue.Message{
		"none": func([]queue.Message) []queue.Message { return nil },
		"two":  func(list []queue.Message) []queue.Message { return append(list, queue.Message{}) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var sent *queue.Send
				q := w.queue(queue.Config{Hooks: queue.Hooks{
					Sending: func(_ context.Context, s *queue.Send) { s.Messages = change(s.Messages) },
					Sent:    func(_ context.Context, s *queue.Send) { sent = s },
				}})
				_, err := q.Put(t.Context(), queue.Message{})
				_, _, onceErr := q.PutOnce(t.Context(), "key", queue.Message{})
				refused := errors.Is(err, zk.BadArguments) && errors.Is(onceErr, zk.BadArguments)
				if !refused || sent == nil || sent.Err == nil {
					t.Errorf("got %v, %v and %+v, want that they are refused", err, onceErr, sent)
				}
				if bodies := takeEach(t, q); len(bodies) > 0 {
					t.Errorf("%d items were put", len(bodies))
				}
			})
		})
	}
}
