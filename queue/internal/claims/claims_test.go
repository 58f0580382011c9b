package claims_test

import (
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/queue/internal/claims"
	"github.com/seed-a3166700/turnstile/queue/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// world is a Set whose watches are all set, on a server that is there for them alone.
type world struct {
	*claims.Set
	t     *testing.T
	sess  *zk.Session
	owned atomic.Bool
}

func (w *world) Begin() { w.owned.Store(true) }
func (w *world) End()   { w.owned.Store(false) }

func inWorld(t *testing.T, test func(*world)) {
	t.Helper()
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		w := &world{t: t, sess: srv.Session(t, 20*time.Second)}
		w.Set = claims.New(w, 100)
		for _, on := range []claims.Subject{claims.Priorities, claims.Delayed, claims.Consumers} {
			w.Watch(on, w.watch("/node"))
		}
		w.WatchGate(w.watch("/node"), false)
		test(w)
		for _, watch := range w.Drop() {
			watch.Close()
		}
	})
}

// watch returns a watch on a node, which does not exist.
func (w *world) watch(path string) *zk.Watch {
	w.t.Helper()
	_, _, watch, err := w.sess.ExistsW(w.t.Context(), path)
	if err != nil {
		w.t.Fatal(err)
	}
	return watch
}

// lease returns a lease of items of segment 1 of a priority, of which the first so many are marked.
func (w *world) lease(priority, marked int, items ...int) *claims.Lease {
	r := claims.Range{First: items[0], Last: items[len(items)-1]}
	at := claims.Place{Priority: priority, Segment: 1, Item: r.First}
	for n := r.First; n < r.Last; n++ {
		if !slices.Contains(items, n) {
			r.Except = append(r.Except, n)
		}
	}
	return w.NewLease("/claim", &segment.List{}, at, r, marked)
}

func buffer(l *claims.Lease) {
	var items []claims.Item
	for _, n := range l.Range().Items() {
		items = append(items, claims.Item{Seq: n})
	}
	l.Buffer(items, 0)
}

// wantPops checks which items can be popped.
func (w *world) wantPops(want ...int) {
	w.t.Helper()
	var got []int
	for l, it, _ := w.Pop(0); l != nil; l, it, _ = w.Pop(0) {
		got = append(got, it.Seq)
	}
	if !slices.Equal(got, want) {
		w.t.Fatalf("popped %v, want %v", got, want)
	}
}

func (w *world) wantOwned(want bool) {
	w.t.Helper()
	if got := w.owned.Load(); got != want {
		w.t.Fatalf("owned: got %v, want %v", got, want)
	}
}

func (w *world) wantOps(a *claims.Ack, want ...zk.Op) {
	w.t.Helper()
	if got := a.Ops(); !reflect.DeepEqual(got, want) {
		w.t.Fatalf("got %v, want %v", got, want)
	}
}

func TestItemsArePoppedInTheOrderOfTheirPlaces(t *testing.T) {
	inWorld(t, func(w *world) {
		odd, even, urgent := w.lease(0, 9, 1, 3, 5), w.lease(0, 9, 2, 4, 6), w.lease(-1, 9, 7, 8)
		buffer(even)
		buffer(odd)
		w.WatchList(-1, w.watch("/list"))
		buffer(urgent)
		w.wantPops(7, 8, 1, 2, 3, 4, 5, 6)
	})
}

func TestClaimBehindBufferedItemsMarksNone(t *testing.T) {
	inWorld(t, func(w *world) {
		buffer(w.lease(0, 1, 1, 2))
		if r := w.lease(0, 9, 3, 4).Range(); r.Delivered != 2 {
			w.t.Errorf("marked through %d, want none", r.Delivered)
		}
		if r := w.lease(-1, 9, 3, 4).Range(); r.Delivered != 4 {
			w.t.Errorf("marked through %d, want 4", r.Delivered)
		}
	})
}

func TestItemIsPoppedOnceItIsMarked(t *testing.T) {
	inWorld(t, func(w *world) {
		l := w.lease(0, 1, 1, 2, 3)
		buffer(l)
		w.wantPops(1)
		for _, done := range []bool{false, true} {
			a := w.BeginAck(0, true, l)
			w.wantOps(a, zk.SetOp(l.Path, claims.Range{First: 1, Last: 3, Delivered: 2}.Encode(), -1))
			w.wantPops()
			a.End(done)
		}
		w.wantPops(2)
		a := w.BeginAck(5, true) // nothing is finished: it marks what callers wait for
		w.wantOps(a, zk.SetOp(l.Path, claims.Range{First: 1, Last: 3, Delivered: 3}.Encode(), -1))
		a.End(true)
		w.wantPops(3)
	})
}

func TestAckDoesNotMarkWhileTheNodeIsWritten(t *testing.T) {
	inWorld(t, func(w *world) {
		l := w.lease(0, 1, 1, 2)
		buffer(l)
		w.wantPops(1)
		writing := l.WaitToWrite()
		if a := w.BeginAck(0, true); a.Marks() {
			w.t.Error("it marks while a writer waits")
		}
		writing <- struct{}{}
		l.WaitedToWrite()
		if a := w.BeginAck(0, true); a.Marks() {
			w.t.Error("it marks while the node is written")
		}
		for range len(w.Changed()) {
			<-w.Changed()
		}
		l.EndWrite()
		<-w.Changed()
		if a := w.BeginAck(0, true); !a.Marks() {
			w.t.Error("it does not mark when the node was written")
		}
	})
}

func TestMarksOfOneClaimShareTheWriteSemaphore(t *testing.T) {
	inWorld(t, func(w *world) {
		l := w.lease(0, 2, 1, 2, 3, 4, 5, 6)
		buffer(l)
		w.wantPops(1, 2)
		first, second := w.BeginAck(1, true), w.BeginAck(2, true)
		if !first.Marks() || second.Marks() {
			w.t.Errorf("marks: %v, %v; want as many marked as are open", first.Marks(), second.Marks())
		}
		more := w.BeginAck(3, true) // while the first is under way
		w.wantOps(more, zk.SetOp(l.Path, claims.Range{First: 1, Last: 6, Delivered: 5}.Encode(), -1))
		more.End(true)
		first.End(true)
		w.wantPops(3, 4, 5)
	})
}

func TestLastItemEndsTheClaim(t *testing.T) {
	inWorld(t, func(w *world) {
		pop := func() *claims.Lease {
			l := w.lease(0, 1, 1)
			buffer(l)
			w.wantPops(1)
			return l
		}
		l := pop()
		a := w.BeginAck(0, true, l)
		w.wantOps(a, zk.DeleteOp(l.Path, -1))
		if got := a.End(false); got != nil {
			w.t.Errorf("it was not done, and leaves %v", got)
		}
		if got := w.BeginAck(0, true, l).End(true); len(got) != 1 || got[0].Rest != (claims.Rest{Tidy: true}) {
			w.t.Errorf("got %v, want the segment to be tidied", got)
		}

		l = pop()
		l.WaitToWrite() <- struct{}{}
		a = w.BeginAck(0, true, l)
		w.wantOps(a, zk.CheckOp(l.Path, -1))
		if got := a.End(true); len(got) != 1 || got[0].Rest != (claims.Rest{Delete: true}) {
			w.t.Errorf("got %v, want the node to be deleted", got)
		}

		l = pop()
		if got := l.Finish(1); got != (claims.Rest{Delete: true}) {
			w.t.Errorf("got %v, want the node to be deleted", got)
		}
	})
}

func TestClaimStaysUntilItsItemsAreGivenBack(t *testing.T) {
	inWorld(t, func(w *world) {
		l := w.lease(0, 1, 1, 2, 3)
		buffer(l)
		w.wantPops(1)
		out, _ := w.TakeOut(0)
		if len(out) != 1 || out[0].Items[0].Seq != 2 {
			w.t.Fatalf("took out %v", out)
		}
		if got := l.Finish(1); got != (claims.Rest{}) {
			w.t.Errorf("it ends with items that are about to be given back: %v", got)
		}
		rest, kept, last := l.GiveBack(2)
		if rest.First != 2 || rest.Last != 3 || kept.Last != 1 || !last {
			w.t.Errorf("got %+v, %+v, %v", rest, kept, last)
		}
		if l.Returned(kept, false) != true {
			w.t.Error("the item was finished after GiveBack, and nothing deletes the node")
		}
	})
}

func TestItemsThatCannotBeGivenBackAreBufferedAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		buffer(w.lease(0, 9, 1, 2))
		if _, ok := w.TakeOut(time.Second); ok {
			w.t.Error("took out what was just claimed")
		}
		time.Sleep(time.Second)
		out, ok := w.TakeOut(time.Second)
		w.wantPops()
		w.wantOwned(false)
		if !ok || w.Returnable() {
			w.t.Errorf("got %v, and there is more: %v", ok, w.Returnable())
		}
		w.Rebuffer(out[0])
		w.wantOwned(true)
		w.wantPops() // other claims, which come first, may have been given back
		w.BeginFetch(false)
		w.wantPops()
		w.EndFetch(false)
		w.wantPops(1, 2)
	})
}

func TestServerIsAskedFirst(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(*world){
		"something was given back":             func(w *world) { w.LookFirst() },
		"a look has failed":                    func(w *world) { w.EndFetch(true) },
		"something more urgent may be there":   func(w *world) { w.NoteMore(-1) },
		"the queue is paused":                  func(w *world) { w.WatchGate(w.watch("/node"), true) },
		"the watches are forgotten":            func(w *world) { closeAll(w.Forget()) },
		"the list of priorities has changed":   func(w *world) { w.Watch(claims.Priorities, w.fired()) },
		"a more urgent ready list has changed": func(w *world) { w.WatchList(-1, w.fired()) },
		"the gate has changed":                 func(w *world) { w.WatchGate(w.fired(), false) },
		"the consumer is looking":              func(w *world) { w.BeginFetch(false) },
		"the consumer has ended":               func(w *world) { closeAll(w.Drop()) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				buffer(w.lease(0, 9, 1))
				ask(w)
				if !w.MustFetch(0) {
					w.t.Error("the server is not asked")
				}
				w.wantPops()
			})
		})
	}
}

func TestDelayedItemThatIsDueComesFirst(t *testing.T) {
	inWorld(t, func(w *world) {
		buffer(w.lease(0, 9, 1))
		w.SetNextDue(100)
		if w.MustFetch(0) || w.MustFetch(99) || !w.MustFetch(100) {
			w.t.Errorf("unknown: %v, before: %v, then: %v", w.MustFetch(0), w.MustFetch(99), w.MustFetch(100))
		}
	})
}

func TestLessUrgentChangesDoNotMatter(t *testing.T) {
	inWorld(t, func(w *world) {
		buffer(w.lease(0, 9, 1))
		w.NoteMore(1)
		w.WatchList(0, w.fired())
		w.Watch(claims.Delayed, w.fired())
		w.wantPops(1)
	})
}

// fired returns a watch that has fired.
func (w *world) fired() *zk.Watch {
	w.t.Helper()
	watch := w.watch("/changes")
	if _, err := w.sess.Create(w.t.Context(), "/changes", nil, zk.Persistent); err != nil {
		w.t.Fatal(err)
	}
	if err := w.sess.Delete(w.t.Context(), "/changes", -1); err != nil {
		w.t.Fatal(err)
	}
	return watch
}

func closeAll(watches []*zk.Watch) {
	for _, watch := range watches {
		watch.Close()
	}
}

func TestWaitingConsumerHasAllItsWatches(t *testing.T) {
	inWorld(t, func(w *world) {
		if all, deaf := w.Quiet([]int{0, 1}); all != nil || !slices.Equal(deaf, []int{0, 1}) {
			w.t.Errorf("got %v, deaf to %v", all, deaf)
		}
		w.WatchList(0, w.watch("/list"))
		w.WatchList(7, w.watch("/list"))
		all, deaf := w.Quiet([]int{0})
		if len(all) != 6 || deaf != nil {
			w.t.Errorf("got %v, deaf to %v", all, deaf)
		}
		if stale := w.WatchPriorities(w.watch("/node"), []int{0}); len(stale) != 1 {
			w.t.Errorf("forgot %v, want the watch of a list that is gone", stale)
		} else {
			closeAll(stale)
		}
		w.Fired(all[len(all)-1])
		if all, _ := w.Quiet([]int{0}); all != nil {
			w.t.Errorf("one has fired: got %v", all)
		}
	})
}

func TestOwnershipLastsAsLongAsThereAreClaims(t *testing.T) {
	inWorld(t, func(w *world) {
		w.wantOwned(false)
		l := w.lease(0, 9, 1)
		w.wantOwned(false)
		buffer(l)
		w.wantOwned(true)
		w.wantPops(1)
		w.wantOwned(true)
		l.Finish(1)
		w.wantOwned(false)
		late := w.lease(0, 9, 2)
		buffer(w.lease(0, 9, 3))
		closeAll(w.Drop())
		w.wantOwned(false)
		buffer(late) // it was read while the consumer ended
		w.Rebuffer(claims.Buffered{Lease: late, Items: []claims.Item{{Seq: 2}}})
		w.ReturnLater(late)
		w.wantOwned(false)
		if w.Returnable() {
			w.t.Error("the consumer has ended, and has something to give back")
		}
	})
}

func TestNodeOfAClosedConsumerGoesWithItsLastItem(t *testing.T) {
	inWorld(t, func(w *world) {
		l := w.lease(0, 9, 1, 2)
		buffer(l)
		w.wantPops(1, 2)
		if w.Close() {
			w.t.Error("it has gone while two items are open")
		}
		if rest := l.Finish(1); rest.Leave {
			w.t.Error("it has gone while an item is open")
		}
		if rest := l.Finish(1); !rest.Leave {
			w.t.Error("no item is open, and it stays")
		}
	})
}

func TestItemThatIsPutBackIsNotInTheClaim(t *testing.T) {
	inWorld(t, func(w *world) {
		l := w.lease(0, 9, 1, 2, 3)
		buffer(l)
		w.wantPops(1, 2, 3)
		kept, last := l.PutBack(2)
		if rest := l.PutBackDone(kept, last); last || rest != (claims.Rest{}) {
			w.t.Errorf("the claim ends with two open items: %v, %v", last, rest)
		}
		if got := l.Range().Items(); !slices.Equal(got, []int{1, 3}) || w.Open() != 2 {
			w.t.Errorf("the claim has %v, and %d are open", got, w.Open())
		}
		l.Finish(1)
		kept, last = l.PutBack(3)
		if rest := l.PutBackDone(kept, last); !last || rest != (claims.Rest{Tidy: true}) {
			w.t.Errorf("the claim does not end with its last item: %v, %v", last, rest)
		}
	})
}

// Consumers pop, mark, finish, give back and look, all at the same time.
func TestEachItemIsPoppedOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		const items, parts = 1000, 20
		for part := range parts {
			numbers := make([]int, items/parts)
			for i := range numbers {
				numbers[i] = part*len(numbers) + i
			}
			buffer(w.lease(0, 1, numbers...))
		}
		var popped [items]atomic.Int32
		var left, ended atomic.Int32
		left.Store(items)
		var order sync.Mutex // of the Acks
		ack := func(leases ...*claims.Lease) {
			order.Lock()
			a := w.BeginAck(1, true, leases...)
			order.Unlock()
			for _, f := range a.End(true) {
				if f.Rest.Tidy == f.Rest.Delete {
					w.t.Errorf("%+v", f.Rest)
				}
				ended.Add(1)
			}
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for left.Load() > 0 {
					l, it, _ := w.Pop(0)
					if l == nil {
						ack()
						continue
					}
					popped[it.Seq].Add(1)
					left.Add(-1)
					ack(l)
				}
			})
		}
		wg.Go(func() {
			for left.Load() > 0 {
				out, _ := w.TakeOut(0)
				for _, b := range out {
					w.Rebuffer(b)
				}
				w.BeginFetch(false)
				w.EndFetch(false)
			}
		})
		wg.Wait()
		for i := range popped {
			if n := popped[i].Load(); n != 1 {
				w.t.Errorf("item %d was popped %d times", i, n)
			}
		}
		if ended.Load() != parts || w.Open() != 0 || !w.Empty() {
			w.t.Errorf("%d of %d claims have ended, %d items are open", ended.Load(), parts, w.Open())
		}
		w.wantOwned(false)
	})
}
