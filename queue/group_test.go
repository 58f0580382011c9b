package queue_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// putGroup puts items of a group, whose bodies are "group:number".
func putGroup(t *testing.T, q *queue.Queue, group string, from, to int) {
	t.Helper()
	var messages []queue.Message
	for i := from; i < to; i++ {
		messages = append(messages, queue.Message{Group: group, Body: fmt.Appendf(nil, "%s:%d", group, i)})
	}
	if _, err := q.PutBatch(t.Context(), messages); err != nil {
		t.Fatal(err)
	}
}

// groupTally checks that items of a group come one at a time and in order, each at least once.
type groupTally struct {
	mu      sync.Mutex
	next    map[string]int  // the number that has not been finished
	working map[string]bool // an item of the group is in hand
	most    int             // groups in hand at the same time
	faults  []string
}

func newGroupTally() *groupTally {
	return &groupTally{next: make(map[string]int), working: make(map[string]bool)}
}

// begin records that an item is in hand. Again says that items may come again after they were finished.
func (g *groupTally) begin(item *queue.Item) {
	g.mu.Lock()
	defer g.mu.Unlock()
	group := item.Group()
	if want := fmt.Sprintf("%s:%d", group, g.next[group]); string(item.Body()) != want {
		g.faults = append(g.faults, fmt.Sprintf("%s came, want %s", item.Body(), want))
	}
	if g.working[group] {
		g.faults = append(g.faults, fmt.Sprintf("%s came beside another of its group", item.Body()))
	}
	g.working[group] = true
	n := 0
	for _, w := range g.working {
		if w {
			n++
		}
	}
	g.most = max(g.most, n)
}

// end records that it is no longer in hand, and whether it is finished.
func (g *groupTally) end(item *queue.Item, finished bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.working[item.Group()] = false
	if finished {
		g.next[item.Group()]++
	}
}

func (g *groupTally) check(t *testing.T, groups, n int) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, fault := range g.faults {
		t.Error(fault)
	}
	for i := range groups {
		if group := fmt.Sprint("g", i); g.next[group] != n {
			t.Errorf("%d items of %s are finished, want %d", g.next[group], group, n)
		}
	}
}

// Promise: 7
func TestItemsOfAGroupComeOneAtATimeAndInOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const groups, n = 5, 20
		y := newGroupTally()
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 3 {
			q := w.queue(queue.Config{})
			wg.Go(func() {
				if err := q.Consume(ctx, 4, func(_ context.Context, item *queue.Item) error {
					y.begin(item)
					time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond) // of the bubble
					y.end(item, true)
					return nil
				}); err != nil {
					t.Error(err)
				}
			})
		}
		producer := w.queue(queue.Config{}.WithSegment(4))
		for i := range n {
			var messages []queue.Message
			for g := range groups {
				group := fmt.Sprint("g", g)
				messages = append(messages, queue.Message{Group: group, Body: fmt.Appendf(nil, "%s:%d", group, i)})
			}
			if _, err := producer.PutBatch(t.Context(), messages); err != nil {
				t.Fatal(err)
			}
			pass(time.Duration(rand.IntN(20)) * time.Millisecond)
		}
		pass(time.Minute)
		stop()
		wg.Wait()
		y.check(t, groups, n)
		if y.most < 3 {
			t.Errorf("at most %d groups were worked on at the same time", y.most)
		}
		wantLen(t, producer, queue.Counts{})
		wantNoGroups(t, w)
	})
}

// wantNoGroups fails unless no group has left a node behind.
func wantNoGroups(t *testing.T, w *world) {
	t.Helper()
	sess := w.Session(t, time.Hour)
	parts, _, err := sess.Children(t.Context(), root+"/groups")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range parts {
		names, _, err := sess.Children(t.Context(), root+"/groups/"+part)
		if err != nil || len(names) > 0 {
			t.Errorf("groups %v are left, %v", names, err)
		}
	}
}

// Promise: 7
func TestOneTransactionPutsItemsOfManyGroups(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, other := w.queue(queue.Config{}), w.queue(queue.Config{})
		for round := range 2 {
			var messages []queue.Message
			for i := range 4 {
				for _, group := range []string{"a", "", "b", strings.Repeat("c", 255)} {
					messages = append(messages, queue.Message{Group: group, Body: fmt.Appendf(nil, "%.1s%d", group, i)})
				}
			}
			if _, err := q.PutBatch(t.Context(), messages); err != nil {
				t.Fatal(err)
			}
			wantLen(t, q, queue.Counts{Ready: 7 + 4*round, Waiting: 9 + 12*round})
			q, other = other, q // which has not heard of the groups
		}
		var got []string
		for range 32 {
			item := take(t, q)
			got = append(got, string(item.Body()))
			done(t, item)
		}
		for _, group := range []string{"a", "b", "c"} {
			of := slices.DeleteFunc(slices.Clone(got), func(s string) bool { return s[:1] != group })
			want := []string{"0", "1", "2", "3", "0", "1", "2", "3"}
			for i := range want {
				want[i] = group + want[i]
			}
			if !slices.Equal(of, want) {
				t.Errorf("got %v", of)
			}
		}
		wantEmpty(t, q)
		wantNoGroups(t, w)
	})
}

// An item that fails keeps the others of its group waiting, whatever comes of it, and dead letters do not.
//
// Promise: 7
func TestGroupWaitsForAnItemThatFails(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{MaxAttempts: 2, Backoff: queue.Backoff{First: time.Minute, Max: time.Minute}})
		putGroup(t, q, "g", 0, 6)
		next := func(want string, attempt int) *queue.Item {
			t.Helper()
			item := take(t, q)
			if string(item.Body()) != want || item.Group() != "g" || item.Attempt() != attempt {
				t.Fatalf("got %s of %s, attempt %d; want %s, attempt %d",
					item.Body(), item.Group(), item.Attempt(), want, attempt)
			}
			return item
		}
		if err := next("g:0", 1).Fail(t.Context(), errors.New("no")); err != nil {
			t.Fatal(err)
		}
		wantEmpty(t, q)
		wantLen(t, q, queue.Counts{Delayed: 1, Waiting: 5})
		pass(time.Minute)
		if err := next("g:0", 2).Fail(t.Context(), errors.New("no")); err != nil {
			t.Fatal(err)
		}
		wantLen(t, q, queue.Counts{Ready: 1, Waiting: 4, Dead: 1})
		if err := next("g:1", 1).Return(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if err := next("g:1", 1).Return(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		wantEmpty(t, q)
		pass(time.Minute)
		if err := next("g:1", 1).Reject(t.Context(), "bad"); err != nil {
			t.Fatal(err)
		}
		done(t, next("g:2", 1))
		if n, err := q.Requeue(t.Context()); n != 2 || err != nil { // to the end of the group
			t.Fatal(n, err)
		}
		wantLen(t, q, queue.Counts{Ready: 1, Waiting: 4})
		item := next("g:3", 1)
		if err := q.DoneAll(t.Context(), []*queue.Item{item}); err != nil {
			t.Fatal(err)
		}
		done(t, next("g:4", 1))
		item = next("g:5", 1)
		path := "/beside"
		if err := item.Done(t.Context(), zk.CreateOp(path, nil, zk.Persistent)); err != nil {
			t.Fatal(err)
		}
		done(t, next("g:0", 1))
		item = next("g:1", 1)
		if err := item.Done(t.Context(), zk.CreateOp(path, nil, zk.Persistent)); !errors.Is(err, zk.NodeExists) {
			t.Fatalf("got %v, want that the caller's write is refused", err)
		}
		done(t, item)
		wantLen(t, q, queue.Counts{})
		wantNoGroups(t, w)
	})
}

// Whichever request of a put or of an acknowledgement gets lost, or its reply: nothing is lost, doubled, or out of
// order.
//
// Promise: 7
func TestFaultsKeepGroupsInOrder(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]zktest.Fault{
		"request lost": zktest.Refuse, "cut before": zktest.CutBefore,
		"reply lost": zktest.DropReply, "cut after": zktest.CutAfter,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				groups, n := 3, soak.Pick(15, 30)
				w.Control(oneIn(11, fault))
				y := newGroupTally()
				ctx, stop := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				for range 3 {
					soon := queue.Backoff{First: time.Second, Max: time.Second}
					q := w.queue(queue.Config{Backoff: soon}.WithSegment(4))
					wg.Go(func() {
						attempts := 0
						if err := q.Consume(ctx, 1, func(_ context.Context, item *queue.Item) error {
							y.begin(item)
							time.Sleep(10 * time.Millisecond) // of the bubble
							if attempts++; attempts%5 == 0 {
								y.end(item, false)
								return errors.New("no")
							}
							y.end(item, true)
							return nil
						}); err != nil {
							t.Error(err)
						}
					})
				}
				for g := range groups {
					q := w.queue(queue.Config{}.WithSegment(4))
					wg.Go(func() {
						group := fmt.Sprint("g", g)
						for i := range n {
							m := queue.Message{Group: group, Body: fmt.Appendf(nil, "%s:%d", group, i)}
							if _, err := q.Put(t.Context(), m); err != nil {
								t.Error(err)
							}
							time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond) // of the bubble
						}
					})
				}
				pass(15 * time.Minute)
				w.Control(nil)
				pass(5 * time.Minute)
				stop()
				wg.Wait()
				y.check(t, groups, n)
				wantLen(t, w.queue(queue.Config{}), queue.Counts{})
				wantNoGroups(t, w)
			})
		})
	}
}

// A consumer that dies leaves its item to others, before the rest of its group.
//
// Promise: 7
func TestGroupGoesOnAfterItsConsumerHasDied(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, other := w.queue(queue.Config{}), w.queue(queue.Config{})
		putGroup(t, other, "g", 0, 3)
		item := take(t, q)
		w.ExpireSession(item.Session().ID())
		for i := range 3 {
			got := take(t, other)
			wantBody(t, got, fmt.Sprint("g:", i))
			if i == 0 && got.Attempt() != 2 {
				t.Errorf("attempt %d", got.Attempt())
			}
			done(t, got)
		}
		if err := item.Done(t.Context()); !errors.Is(err, queue.ErrClaimLost) {
			t.Errorf("got %v, want ErrClaimLost", err)
		}
		wantEmpty(t, other)
		wantNoGroups(t, w)
	})
}

// A put that comes while the last item of its group is finished is not forgotten.
//
// Promise: 7
func TestPutWhileItsGroupEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		consumer, producer := w.queue(queue.Config{}), w.queue(queue.Config{})
		for _, putting := range []bool{false, true} {
			putGroup(t, producer, "g", 0, 1)
			item := take(t, consumer)
			held, release := context.WithCancel(t.Context())
			reached := make(chan struct{}, 99)
			w.Control(func(r zktest.Request) zktest.Fault {
				ends := len(r.Parts) > 2 && r.Parts[0].Op == zktest.OpDelete
				puts := len(r.Parts) > 2 && strings.Contains(r.Parts[0].Path, "/receipts/")
				if ends && !putting || puts && putting {
					reached <- struct{}{}
					return zktest.Until(held)
				}
				return zktest.Pass
			})
			var wg sync.WaitGroup
			end := func() { done(t, item) }
			put := func() { putGroup(t, producer, "g", 1, 2) }
			if putting {
				end, put = put, end
			}
			wg.Go(end)
			<-reached
			put()
			release()
			wg.Wait()
			w.Control(nil)
			got := take(t, consumer)
			wantBody(t, got, "g:1")
			done(t, got)
			wantEmpty(t, consumer)
			wantNoGroups(t, w)
		}
	})
}

// Promise: 7
func TestItemsOfGroupsAreListedRemovedAndPurged(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		var ids []string
		for i := range 6 {
			id, err := q.Put(t.Context(), queue.Message{Group: "g", Body: fmt.Appendf(nil, "g:%d", i)})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		states := make(map[string]queue.State)
		for _, state := range []queue.State{queue.Ready, queue.Waiting} {
			for x, err := range q.Items(t.Context(), state) {
				if err != nil || x.Group != "g" {
					t.Fatalf("%+v, %v", x, err)
				}
				states[string(x.Body)] = x.State
			}
		}
		if len(states) != 6 || states["g:0"] != queue.Ready || states["g:5"] != queue.Waiting {
			t.Errorf("got %v", states)
		}
		for _, i := range []int{0, 3, 5} {
			if err := q.Remove(t.Context(), ids[i]); err != nil {
				t.Fatal(err)
			}
		}
		item := take(t, q)
		wantBody(t, item, "g:1")
		if err := q.Remove(t.Context(), ids[1]); !errors.Is(err, queue.ErrClaimed) {
			t.Errorf("got %v, want ErrClaimed", err)
		}
		if err := item.Fail(t.Context(), errors.New("no")); err != nil {
			t.Fatal(err)
		}
		if err := q.Remove(t.Context(), ids[1]); err != nil { // delayed
			t.Fatal(err)
		}
		item = take(t, q)
		wantBody(t, item, "g:2")
		done(t, item)
		if x, err := q.Item(t.Context(), ids[4]); err != nil || x.State != queue.Ready {
			t.Errorf("got %+v, %v", x, err)
		}
		if err := q.Remove(t.Context(), ids[4]); err != nil {
			t.Fatal(err)
		}
		wantNoGroups(t, w)

		putGroup(t, q, "a", 0, 5)
		putGroup(t, q, "b", 0, 5)
		if err := take(t, q).Fail(t.Context(), &queue.RetryError{After: time.Hour}); err != nil {
			t.Fatal(err)
		}
		putAll(t, q, 0, 3)
		if n, err := q.Purge(t.Context()); n != 13 || err != nil {
			t.Errorf("%d were purged, %v, want 13", n, err)
		}
		wantLen(t, q, queue.Counts{})
		wantNoGroups(t, w)
	})
}

// Promise: 7
func TestItemsThatWaitInGroupsCountForTheBound(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{MaxItems: 3})
		putGroup(t, q, "g", 0, 3)
		if _, err := q.Put(t.Context(), queue.Message{}); !errors.Is(err, queue.ErrFull) {
			t.Errorf("got %v, want ErrFull", err)
		}
	})
}

// Promise: 7
func TestGroupsThatMakeNoSenseAreRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		for _, m := range []queue.Message{
			{Group: strings.Repeat("x", 256)}, {Group: "g", Delay: time.Second},
		} {
			if _, err := q.Put(t.Context(), m); err == nil {
				t.Errorf("%+v was taken", m)
			}
		}
		// What another program puts into a group's list goes to the dead letters, and holds nothing up.
		putGroup(t, q, "g", 0, 3)
		sess := w.Session(t, time.Hour)
		dir := groupList(t, sess)
		if _, err := sess.Create(t.Context(), dir+"/", []byte("junk"), zk.PersistentSequential); err != nil {
			t.Fatal(err)
		}
		putGroup(t, q, "g", 3, 4)
		for i := range 4 {
			item := take(t, q)
			wantBody(t, item, fmt.Sprint("g:", i))
			done(t, item)
		}
		wantEmpty(t, q)
		wantLen(t, q, queue.Counts{Dead: 1})
		wantNoGroups(t, w)
	})
}

// groupList returns the path of the segment of the only group.
func groupList(t *testing.T, sess *zk.Session) string {
	t.Helper()
	dir := root + "/groups"
	for range 3 {
		names, _, err := sess.Children(t.Context(), dir)
		if err != nil || len(names) != 1 {
			t.Fatal(names, err)
		}
		dir += "/" + names[0]
	}
	return dir
}

// Promise: 7
func TestPutOnceInAGroup(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		for i := range 3 {
			for range 2 {
				m := queue.Message{Group: "g", Body: fmt.Appendf(nil, "g:%d", i)}
				if _, _, err := q.PutOnce(t.Context(), strconv.Itoa(i), m); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i := range 3 {
			item := take(t, q)
			wantBody(t, item, fmt.Sprint("g:", i))
			done(t, item)
		}
		wantEmpty(t, q)
	})
}

// However large the items of a group may be, a dead one and the next fit into one transaction.
func TestLargeItemsOfAGroupDie(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		_, err := q.Put(t.Context(), queue.Message{Group: "g", Body: make([]byte, 600<<10)})
		large, ok := errors.AsType[*queue.TooLargeError](err)
		if !ok {
			t.Fatalf("got %v, want a TooLargeError", err)
		}
		body := make([]byte, large.Limit-100)
		for range 3 {
			if _, err := q.Put(t.Context(), queue.Message{Group: "g", Body: body}); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			if err := take(t, q).Reject(t.Context(), strings.Repeat("bad", 100)); err != nil {
				t.Fatal(err)
			}
		}
		wantLen(t, q, queue.Counts{Dead: 3})
		wantNoGroups(t, w)
	})
}

func TestGoroutinesPutIntoOneGroup(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const each, goroutines = 5, 8
		q := w.queue(queue.Config{})
		var wg sync.WaitGroup
		for range goroutines {
			wg.Go(func() {
				for range each {
					if _, err := q.Put(t.Context(), queue.Message{Group: "g"}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		for range each * goroutines {
			if err := take(t, q).Done(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		wantNoGroups(t, w)
	})
}

// A client that may not create a group's list is told, and does not try again and again.
//
// Promise: 7
func TestGroupThatMayNotBeMadeIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		put(t, q, "dead", queue.Message{Group: "g"})
		kill(t, q, 1)
		_, sess := w.login(t)
		parts, _, err := sess.Children(t.Context(), root+"/groups")
		if err != nil || len(parts) != 1 {
			t.Fatal(parts, err)
		}
		acl := append(zk.CreatorACL(), zk.ACL{Perms: zk.PermRead, ID: zk.ID{Scheme: "world", ID: "anyone"}})
		if _, err := sess.SetACL(t.Context(), root+"/groups/"+parts[0], acl, -1); err != nil {
			t.Fatal(err)
		}
		if _, err := q.Put(t.Context(), queue.Message{Group: "g"}); !errors.Is(err, zk.NoAuth) {
			t.Errorf("put: got %v, want NoAuth", err)
		}
		if n, err := q.Requeue(t.Context()); n != 0 || !errors.Is(err, zk.NoAuth) {
			t.Errorf("requeue: got %d, %v, want NoAuth", n, err)
		}
		wantLen(t, q, queue.Counts{Dead: 1})
	})
}

// However many groups there are, putting and counting take a few round trips, and a put that is bounded few requests.
//
// Promise: 7
func TestManyGroupsAreLookedAtTogether(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const n = 100
		q, other, bounded := w.queue(queue.Config{}), w.queue(queue.Config{}), w.queue(queue.Config{MaxItems: 10 * n})
		put(t, bounded, "first", queue.Message{})
		var requests atomic.Int64
		w.Control(func(zktest.Request) zktest.Fault {
			requests.Add(1)
			return zktest.Pass
		})
		w.Delay(time.Millisecond)
		few := func(what string, most int64, f func()) {
			t.Helper()
			requests.Store(0)
			begin := time.Now()
			f()
			if trips := time.Since(begin).Milliseconds() / 2; trips > 20 {
				t.Errorf("%s took %d round trips", what, trips)
			}
			if requests.Load() > most {
				t.Errorf("%s took %d requests, want %d at most", what, requests.Load(), most)
			}
		}
		var messages []queue.Message
		for i := range 2 * n {
			messages = append(messages, queue.Message{Group: strconv.Itoa(i % n)})
		}
		for _, q := range []*queue.Queue{q, other} { // the second finds the groups, and not where their lists end
			few("PutBatch", 4*n, func() {
				if _, err := q.PutBatch(t.Context(), messages); err != nil {
					t.Error(err)
				}
			})
		}
		few("Len", 4*n, func() { wantLen(t, q, queue.Counts{Ready: n + 1, Waiting: 3 * n}) })
		few("a bounded Put", 10, func() { put(t, bounded, "second", queue.Message{}) })
	})
}

// whileAGroupIsMade calls put, which succeeds, and change when the transaction that makes the group's list is on its
// way.
func (w *world) whileAGroupIsMade(put func() error, change func()) {
	w.t.Helper()
	held, release := context.WithCancel(w.t.Context())
	reached := make(chan struct{}, 1)
	w.Control(func(r zktest.Request) zktest.Fault {
		if slices.ContainsFunc(r.Parts, func(p zktest.Part) bool {
			return p.Op == zktest.OpCreate && strings.HasPrefix(p.Path, root+"/groups/")
		}) {
			reached <- struct{}{}
			return zktest.Until(held)
		}
		return zktest.Pass
	})
	ended := make(chan error)
	go func() { ended <- put() }()
	<-reached
	w.Control(nil)
	change()
	release()
	if err := <-ended; err != nil {
		w.t.Fatal(err)
	}
}

// Groups that become busy after a put has looked at them, and a directory that is gone by then, cost it only another
// attempt.
func TestGroupsThatChangeWhileMoreArePut(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, other := w.queue(queue.Config{}), w.queue(queue.Config{})
		for _, change := range []func(){
			func() { putGroup(t, other, "g1", 0, 1) },
			func() {
				if _, err := w.Session(t, time.Hour).DeleteAll(t.Context(), root+"/groups"); err != nil {
					t.Error(err)
				}
			},
		} {
			var messages []queue.Message
			for i := range 3 {
				messages = append(messages, queue.Message{Group: fmt.Sprint("g", i), Body: []byte("late")})
			}
			w.whileAGroupIsMade(func() error {
				_, err := q.PutBatch(t.Context(), messages)
				return err
			}, change)
			for range messages {
				done(t, take(t, other))
			}
		}
	})
}

// Promise: 7
func TestItemThatHasWaitedInItsGroupKeepsItsTime(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		putGroup(t, q, "g", 0, 2)
		first := take(t, q)
		pass(10 * time.Minute)
		done(t, first)
		second := take(t, q)
		if put := second.EnqueuedAt(); put.Sub(first.EnqueuedAt()) > time.Minute {
			t.Errorf("it says that it was put at %v, and the one before it at %v", put, first.EnqueuedAt())
		}
		done(t, second)
	})
}

// The next item is removed, or all that wait are, when the transaction that makes it ready is on its way.
//
// Promise: 7
func TestNextItemOfAGroupIsRemovedWhileItBecomesReady(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, other := w.queue(queue.Config{}), w.queue(queue.Config{})
		for _, purged := range []bool{false, true} {
			putGroup(t, q, "g", 0, 3)
			item := take(t, q)
			var next string
			for x, err := range other.Items(t.Context(), queue.Waiting) {
				if err != nil {
					t.Fatal(err)
				}
				next = x.ID
				break
			}
			held, release := context.WithCancel(t.Context())
			reached := make(chan struct{}, 1)
			w.Control(func(r zktest.Request) zktest.Fault {
				if len(r.Parts) > 2 && r.Parts[0].Path == item.Path() {
					reached <- struct{}{}
					return zktest.Until(held)
				}
				return zktest.Pass
			})
			ended := make(chan error)
			go func() { ended <- item.Done(t.Context()) }()
			<-reached
			w.Control(nil)
			if purged {
				if n, err := other.Purge(t.Context()); n != 2 || err != nil {
					t.Fatal(n, err)
				}
			} else if err := other.Remove(t.Context(), next); err != nil {
				t.Fatal(err)
			}
			release()
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			if !purged {
				last := take(t, q)
				wantBody(t, last, "g:2")
				done(t, last)
			}
			wantLen(t, other, queue.Counts{})
			wantNoGroups(t, w)
		}
	})
}

// Two producers, or one and a requeue, are the first of a group at the same time: the later one's item waits.
//
// Promise: 7
func TestTwoPutsThatMakeTheSameGroup(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q, other := w.queue(queue.Config{}), w.queue(queue.Config{})
		for _, requeued := range []bool{false, true} {
			late := func() error {
				_, err := q.Put(t.Context(), queue.Message{Group: "g", Body: []byte("g:1")})
				return err
			}
			if requeued {
				putGroup(t, q, "g", 1, 2)
				kill(t, q, 1)
				late = func() error {
					_, err := q.Requeue(t.Context())
					return err
				}
			}
			w.whileAGroupIsMade(late, func() { putGroup(t, other, "g", 0, 1) })
			wantLen(t, other, queue.Counts{Ready: 1, Waiting: 1})
			for _, body := range []string{"g:0", "g:1"} {
				item := take(t, other)
				wantBody(t, item, body)
				done(t, item)
			}
			wantNoGroups(t, w)
		}
	})
}
