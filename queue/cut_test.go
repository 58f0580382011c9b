package queue_test

import (
	"context"
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
	"github.com/seed-a3166700/turnstile/zktest"
)

// tally counts what becomes of each item.
type tally struct {
	mu      sync.Mutex // guards what follows
	working map[string]context.Context
	begun   map[string]int
	done    map[string]int
	tries   int // the largest attempt that there was
	wrong   []string
}

func newTally() *tally {
	return &tally{working: make(map[string]context.Context), begun: make(map[string]int), done: make(map[string]int)}
}

func (y *tally) config() queue.Config {
	return queue.Config{Hooks: queue.Hooks{Done: func(_ context.Context, item *queue.Item) {
		y.mu.Lock()
		defer y.mu.Unlock()
		y.done[string(item.Body())]++
	}}}
}

func (y *tally) handle(ctx context.Context, item *queue.Item) error {
	body := string(item.Body())
	y.mu.Lock()
	if other := y.working[body]; other != nil && other.Err() == nil {
		y.wrong = append(y.wrong, "item "+body+" is with two consumers at the same time")
	}
	y.working[body] = ctx //nolint:fatcontext // that of the item, to be asked whether it has ended
	y.begun[body]++
	y.tries = max(y.tries, item.Attempt())
	y.mu.Unlock()
	time.Sleep(20 * time.Millisecond)
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.working[body] == ctx {
		delete(y.working, body)
	}
	return nil
}

// consume lets so many consumers work until the function that it returns is called.
func (y *tally) consume(t *testing.T, w *world, consumers int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range consumers {
		q := w.queue(y.config())
		wg.Go(func() {
			if err := q.Consume(ctx, 1, y.handle); err != nil {
				t.Error(err)
			}
		})
	}
	return func() {
		cancel()
		wg.Wait()
	}
}

// check wants each item to be done once, and to have been delivered once unless a session has ended.
func (y *tally) check(t *testing.T, items int, ended bool) {
	t.Helper()
	y.mu.Lock()
	defer y.mu.Unlock()
	for _, wrong := range y.wrong {
		t.Error(wrong)
	}
	for i := range items {
		body := strconv.Itoa(i)
		begun, done := y.begun[body], y.done[body]
		// An item that was acknowledged in a session's last moments may be done, and its consumer may not learn it.
		if begun == 0 || done > 1 || !ended && (begun > 1 || done == 0) {
			t.Errorf("item %d was delivered %d times and done %d times", i, begun, done)
		}
	}
}

// cuts reports whether a transaction makes free claims: of items behind the cursor, or of what a consumer has left
// behind.
func cuts(r zktest.Request, orphans bool) bool {
	return len(r.Parts) > 3 && strings.HasPrefix(r.Parts[2].Path, root+"/claims/") == orphans &&
		strings.HasPrefix(r.Parts[1].Path, root+"/claims/") &&
		slices.ContainsFunc(r.Parts, func(p zktest.Part) bool {
			return p.Op == zktest.OpCreate && strings.HasPrefix(p.Path, root+"/free/")
		})
}

// Whatever happens to the transaction that makes free claims, or to its sender: no item is lost, none is with two
// consumers, and no claim stays behind.
func TestFaultsWhileAClaimIsCutChangeNothing(t *testing.T) {
	t.Parallel()
	faults := []struct {
		name  string
		ended bool // a session ends
		fault func(w *world, r zktest.Request, leave context.CancelFunc) zktest.Fault
	}{
		{"request lost", false, func(*world, zktest.Request, context.CancelFunc) zktest.Fault { return zktest.Refuse }},
		{"cut before", false, func(*world, zktest.Request, context.CancelFunc) zktest.Fault {
			return zktest.CutBefore
		}},
		{"reply lost", false, func(*world, zktest.Request, context.CancelFunc) zktest.Fault {
			return zktest.DropReply
		}},
		{"cut after", false, func(*world, zktest.Request, context.CancelFunc) zktest.Fault { return zktest.CutAfter }},
		{"too late", false, func(*world, zktest.Request, context.CancelFunc) zktest.Fault {
			return zktest.Delay(50 * time.Millisecond)
		}},
		{"session ends after", true, func(w *world, r zktest.Request, _ context.CancelFunc) zktest.Fault {
			w.Mute(r.Session)
			return zktest.Pass
		}},
		{"session ends before", true, func(w *world, r zktest.Request, _ context.CancelFunc) zktest.Fault {
			w.Cut(r.Session)
			return zktest.CutBefore
		}},
		{"caller leaves", false, func(_ *world, _ zktest.Request, leave context.CancelFunc) zktest.Fault {
			leave()
			return zktest.DelayReply(50 * time.Millisecond)
		}},
		{"caller leaves, reply lost", false, func(_ *world, _ zktest.Request, leave context.CancelFunc) zktest.Fault {
			leave()
			return zktest.DropReply
		}},
	}
	for i, f := range faults {
		for _, orphans := range []bool{false, true} {
			for nth := 1; nth <= 3; nth++ {
				if !soak.All() && i%3 != nth-1 {
					continue
				}
				name := fmt.Sprintf("%s/cursor/%d", f.name, nth)
				if orphans {
					name = fmt.Sprintf("%s/orphan/%d", f.name, nth)
				}
				t.Run(name, func(t *testing.T) {
					inWorld(t, func(t *testing.T, w *world) {
						const consumers, items = 8, 120
						y := newTally()
						putAll(t, w.queue(queue.Config{}), 0, items)
						var held int64
						if orphans {
							held = takeBatch(t, w.queue(queue.Config{}), items/2)[0].Session().ID()
						}
						w.Delay(time.Millisecond)
						left, leave := context.WithCancel(t.Context())
						seen, struck := 0, false
						w.Control(func(r zktest.Request) zktest.Fault {
							if struck || !cuts(r, orphans) {
								return zktest.Pass
							}
							if seen++; seen < nth && !orphans {
								return zktest.Pass
							}
							struck = true
							return f.fault(w, r, leave)
						})
						stop := y.consume(t, w, consumers)
						if orphans {
							pass(10 * time.Millisecond * time.Duration(nth))
							w.ExpireSession(held)
						}
						select {
						case <-left.Done():
							stop()
							pass(5 * time.Second) // what is claimed and not taken is given back
							stop = y.consume(t, w, 2)
						case <-time.After(time.Minute):
						}
						pass(time.Minute)
						w.Heal()
						pass(time.Minute)
						stop()
						if !struck {
							t.Fatal("no claim was cut")
						}
						y.check(t, items, f.ended)
						if want := map[bool]int{true: 2, false: 1}[orphans]; !f.ended && y.tries != want {
							t.Errorf("got %d attempts of an item, want %d", y.tries, want)
						}
						wantLen(t, w.queue(queue.Config{}), queue.Counts{})
						pass(time.Minute)
						w.NoNodes(t, root+"/claims")
						w.NoNodes(t, root+"/free")
					})
				})
			}
		}
	}
}

// The items behind a claim that is cut are delivered although another client has removed the change node.
func TestClaimIsCutAlsoIfSomebodyHasRemovedTheBell(t *testing.T) {
	t.Parallel()
	for _, orphan := range []bool{false, true} {
		t.Run(fmt.Sprintf("orphan %v", orphan), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				producer, holder, other := w.queue(queue.Config{}), w.queue(queue.Config{}), w.queue(queue.Config{})
				sess := w.Session(t, time.Minute)
				putAll(t, producer, 0, 60)
				from := 0
				if orphan {
					w.ExpireSession(takeBatch(t, holder, 50)[0].Session().ID())
				} else {
					from = 20
					doneInOrder(t, holder, 0, from)
					pass(time.Minute) // what it had claimed ahead is given back
				}
				if err := sess.Delete(t.Context(), line0+"/bell", -1); err != nil {
					t.Fatal(err)
				}
				bounded(t, w, 2000)
				doneInOrder(t, other, from, 60)
				wantEmpty(t, other)
			})
		})
	}
}

// Items that were claimed ahead are given back although another client has removed the change node.
func TestClaimIsGivenBackAlsoIfSomebodyHasRemovedTheBell(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		producer, q, other := w.queue(queue.Config{}), w.queue(queue.Config{}), w.queue(queue.Config{})
		sess := w.Session(t, time.Minute)
		putAll(t, producer, 0, 100)
		doneInOrder(t, q, 0, 20)
		if err := sess.Delete(t.Context(), line0+"/bell", -1); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Second)
		bounded(t, w, 2000)
		doneInOrder(t, other, 20, 100)
	})
}

// A client that lists the ready items while a claim is cut sees none of them twice.
func TestItemsListsNothingTwiceWhileAClaimIsCut(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"/claims", "/consumers", "/free", "/claims/p1000.", "/ready/p1000"} {
		t.Run(dir, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				producer, other := w.queue(queue.Config{}), w.queue(queue.Config{})
				const items = 60
				putAll(t, producer, 0, items)
				lister, sess := w.queueAndSession()
				held := takeBatch(t, w.queue(queue.Config{}), 40)[0].Session().ID()
				for range 3 {
					done(t, take(t, w.queue(queue.Config{}))) // they are there: the claim is cut into parts
				}
				w.ExpireSession(held)
				lists, list := context.WithCancel(t.Context())
				stopped := false
				w.Control(func(r zktest.Request) zktest.Fault {
					if !stopped && r.Session == sess.ID() && strings.HasPrefix(r.Path, root+dir) {
						stopped = true
						return zktest.Until(lists)
					}
					return zktest.Pass
				})
				listed := make(chan map[string]int, 1)
				go func() {
					seen := make(map[string]int)
					for p, err := range lister.Items(t.Context(), queue.Ready) {
						if err != nil {
							t.Error(err)
						}
						seen[string(p.Body)]++
					}
					listed <- seen
				}()
				synctest.Wait()
				item := take(t, other)
				list()
				seen := <-listed
				if !stopped {
					t.Fatal("the client that lists was not held up")
				}
				for i := range items {
					n := seen[strconv.Itoa(i)]
					if n > 1 {
						t.Errorf("item %d is listed %d times", i, n)
					}
					if n == 0 && dir == "/free" && i >= 1 && i < 40 && strconv.Itoa(i) != string(item.Body()) {
						t.Errorf("item %d is not listed", i)
					}
				}
			})
		})
	}
}
