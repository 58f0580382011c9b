package zk_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// wantEvent checks the next event of a watch.
func wantEvent(t *testing.T, w *zk.Watch, kind zk.EventType, path string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	e, err := w.Next(ctx)
	if err != nil || e.Type != kind || e.Path != path {
		t.Errorf("event of %s: got %v %s, %v; want %v %s", w.Path(), e.Type, e.Path, err, kind, path)
	}
}

func wantDone(t *testing.T, w *zk.Watch, want error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if e, err := w.Next(ctx); !errors.Is(err, want) {
		t.Errorf("watch of %s: got %v, %v; want %v", w.Path(), e, err, want)
	}
}

// removal is a removal of watches at the server.
type removal struct {
	path string
	kind int32
}

// watchLog answers all requests and records which watches were removed.
type watchLog struct {
	mu       sync.Mutex // guards removals
	removals []removal
}

func (l *watchLog) note(r request) bool {
	if r.Op == wire.OpRemoveWatches {
		rec := r.record().(*wire.WatcherTypeRequest)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.removals = append(l.removals, removal{rec.Path, rec.Type})
	}
	return false
}

func (l *watchLog) want(t *testing.T, want ...removal) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.removals, want) {
		t.Errorf("removed at the server: %v, want %v", l.removals, want)
	}
}

// withEvents returns a session of a fake server that sends events of /a, as received from the channel. Each is as for
// loop.
func withEvents(t *testing.T, each func(r request) bool) (*zk.Client, *zk.Session, chan<- wire.EventType) {
	t.Helper()
	events := make(chan wire.EventType)
	f := newFake(t, func(p *peer) {
		p.open()
		go func() {
			for kind := range events {
				p.notify(kind, "/a")
			}
		}()
		p.loop(each)
	})
	client, s := f.open(f.config())
	return client, s, events
}

// watchOf returns a new watch of /a.
func watchOf(t *testing.T, s *zk.Session) *zk.Watch {
	t.Helper()
	_, _, w, err := s.GetW(t.Context(), "/a")
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestAfterFuncRunsOnceWhenNextNeedsNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, s, events := withEvents(t, nil)
		defer close(events)
		watch := func() *zk.Watch { return watchOf(t, s) }
		var calls atomic.Int64
		call := func() { calls.Add(1) }
		want := func(what string, n int64) {
			t.Helper()
			synctest.Wait()
			if got := calls.Swap(0); got != n {
				t.Errorf("%s: %d calls, want %d", what, got, n)
			}
		}
		w := watch()
		w.AfterFunc(func() { t.Error("called after another had taken its place") })
		w.AfterFunc(call)
		want("nothing has come", 0)
		events <- wire.EventType(zk.EventDeleted)
		want("an event, and the watch is done", 1)
		w.AfterFunc(call)
		want("the event is still there", 1)
		wantEvent(t, w, zk.EventDeleted, "/a")
		w.AfterFunc(call)
		want("the watch is done", 1)
		w = watch()
		w.AfterFunc(call)
		w.Close()
		want("closed", 0)
		w = watch()
		w.AfterFunc(call)
		_ = client.Close()
		want("the session has ended", 1)
	})
}

func TestSendOnSendsWithTheNextEventAndNeverLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lists atomic.Int64
		client, s, events := withEvents(t, func(r request) bool {
			if r.Op == wire.OpGetChildren2 {
				lists.Add(1)
			}
			return false
		})
		defer close(events)
		watch := func() *zk.Watch { return watchOf(t, s) }
		hold := func(w *zk.Watch) (*zk.Future[zk.Children], func()) {
			b := s.Batch()
			list := b.Children("/a")
			return list, b.SendOn(w)
		}
		want := func(what string, n int64) {
			t.Helper()
			synctest.Wait()
			if got := lists.Swap(0); got != n {
				t.Errorf("%s: %d lists were sent, want %d", what, got, n)
			}
		}
		fails := func(what string, list *zk.Future[zk.Children], cause error) {
			t.Helper()
			want(what, 0)
			_, err := list.Get(t.Context())
			if zk.OutcomeOf(err) != zk.NotSent || cause != nil && !errors.Is(err, cause) {
				t.Errorf("%s: got %v (%v), want %v (%v)", what, err, zk.OutcomeOf(err), cause, zk.NotSent)
			}
		}
		w := watch()
		first, stopFirst := hold(w)
		second, stop := hold(w)
		fails("another has taken its place", first, nil)
		stopFirst()
		want("nothing has come", 0)
		events <- wire.EventType(zk.EventDeleted)
		want("an event", 1)
		stop() // too late
		if c, err := second.Get(t.Context()); err != nil || len(c.Names) != 1 {
			t.Errorf("got %v, %v", c, err)
		}
		wantEvent(t, w, zk.EventDeleted, "/a")
		hold(w)
		want("the watch is done", 1)

		w = watch()
		list, stop := hold(w)
		stop()
		fails("canceled", list, nil)
		events <- wire.EventType(zk.EventDeleted)
		want("an event after it was canceled", 0)
		w = watch()
		list, _ = hold(w)
		w.Close()
		fails("closed", list, zk.ErrWatchDone)
		w = watch()
		list, stop = hold(w)
		_ = client.Close()
		fails("the session has ended", list, zk.ErrClosed)
		stop()
		list, _ = hold(w)
		fails("the session had ended", list, zk.ErrClosed)
	})
}

// The time of a request that is sent with an event begins at the event.
func TestHookIsNotToldOfTheWaitForAnEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			p.open()
			time.AfterFunc(time.Second, func() { p.notify(wire.EventType(zk.EventDeleted), "/a") })
			p.loop(nil)
		})
		var took []time.Duration
		cfg := f.config()
		cfg.Hooks.Request = func(_ context.Context, r zk.RequestDone) {
			if r.Op == "getChildren" {
				took = append(took, r.Took)
			}
		}
		_, s := f.open(cfg)
		w := watchOf(t, s)
		b := s.Batch()
		list := b.Children("/a")
		b.SendOn(w)
		_, err := list.Get(t.Context())
		synctest.Wait()
		if err != nil || !slices.Equal(took, []time.Duration{0}) {
			t.Errorf("the hook was told of %v, %v; want one list in no time", took, err)
		}
	})
}

// Requests of SendOn are also sent if the connection breaks before and the event arrives on the next one.
func TestSendOnOutlivesAConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var connections atomic.Int64
		f := newFake(t, func(p *peer) {
			p.open()
			second := connections.Add(1) == 2
			p.loop(func(r request) bool {
				if r.Op == wire.OpSetWatches && second {
					p.notify(wire.EventType(zk.EventDeleted), "/a")
					p.raw(wire.AppendReply(nil, wire.ReplyHeader{Xid: wire.XidSetWatches, Zxid: 1}, nil))
					return true
				}
				return false
			})
		})
		_, s := f.open(f.config())
		w := watchOf(t, s)
		b := s.Batch()
		list := b.Children("/a")
		b.SendOn(w)
		f.cut()
		if c, err := list.Get(t.Context()); err != nil || len(c.Names) != 1 {
			t.Errorf("got %v, %v", c, err)
		}
		wantEvent(t, w, zk.EventDeleted, "/a")
	})
}

// Promise: 4
func TestCancelledCallLeavesNoWatchBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log watchLog
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(func(r request) bool {
				if r.Op == wire.OpGetData || r.Op == wire.OpExists || r.Op == wire.OpGetChildren2 {
					time.Sleep(time.Second)
				}
				return log.note(r)
			})
		})
		_, s := f.open(f.config())
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _, w, err := s.GetW(ctx, "/a")
			if wantFailure(t, err, context.DeadlineExceeded, zk.Unknown); w != nil {
				t.Error("a watch came with the error")
			}
		})
		wg.Go(func() {
			_, _, _, err := s.ChildrenW(ctx, "/b")
			wantFailure(t, err, context.DeadlineExceeded, zk.Unknown)
		})
		wg.Wait()
		time.Sleep(5 * time.Second)
		log.mu.Lock()
		slices.SortFunc(log.removals, func(a, b removal) int { return strings.Compare(a.path, b.path) })
		log.mu.Unlock()
		log.want(t, removal{"/a", wire.WatcherData}, removal{"/b", wire.WatcherChildren})
	})
}

func TestCancelledRequestKeepsItsPlaceAmongTheAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(func(r request) bool {
				if r.Op == wire.OpGetData {
					path := r.path()
					time.Sleep(time.Second)
					p.answer(r, 1, wire.OK, &wire.DataResponse{Data: []byte(path)})
					return true
				}
				return false
			})
		})
		_, s := f.open(f.config())
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, _, err := s.Get(ctx, "/first")
		wantFailure(t, err, context.DeadlineExceeded, zk.Unknown)
		data, _, err := s.Get(t.Context(), "/second")
		if err != nil || string(data) != "/second" {
			t.Errorf("after a cancelled request: got the answer %q, %v; want /second", data, err)
		}
		if f.dials != 1 {
			t.Errorf("%d connections, want 1", f.dials)
		}
	})
}

func TestCancelledRequestThatWaitsForAConnectionIsNeverSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got []string
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(func(r request) bool {
				if r.Op == wire.OpCreate2 {
					got = append(got, r.path())
				}
				return false
			})
		})
		_, s := f.open(f.config())
		f.refuse(errors.New("no route"))
		f.cut()
		waitState(s, zk.Suspended)
		ctx, cancel := context.WithCancel(t.Context())
		of := []context.Context{t.Context(), ctx, t.Context()}
		var wg sync.WaitGroup
		for i := range of {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				path := fmt.Sprintf("/%d", i)
				_, err := s.Create(of[i], path, nil, zk.Persistent)
				if i == 1 {
					wantFailure(t, err, context.Canceled, zk.NotSent)
				} else if err != nil {
					t.Errorf("create %s: %v", path, err)
				}
			})
		}
		time.Sleep(10 * time.Millisecond)
		cancel()
		synctest.Wait()
		f.refuse(nil)
		wg.Wait()
		if want := []string{"/0", "/2"}; !slices.Equal(got, want) {
			t.Errorf("created %v, want %v", got, want)
		}
	})
}

func TestWatchesOfOnePathShareOneOnTheServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log watchLog
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(log.note)
		})
		_, s := f.open(f.config())
		ctx := t.Context()
		_, _, a, _ := s.GetW(ctx, "/a")
		_, _, b, _ := s.GetW(ctx, "/a")
		_, _, c, err := s.ExistsW(ctx, "/a")
		if err != nil {
			t.Fatal(err)
		}
		a.Close()
		a.Close()
		c.Close()
		synctest.Wait()
		log.want(t)
		b.Close()
		synctest.Wait()
		log.want(t, removal{"/a", wire.WatcherData})
		wantDone(t, b, zk.ErrWatchDone)
	})
}

func TestWatchIsNotRemovedWhileAnotherIsOnItsWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log watchLog
		asked := 0
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(func(r request) bool {
				if r.Op == wire.OpGetData {
					if asked++; asked == 2 {
						time.Sleep(time.Second)
					}
				}
				return log.note(r)
			})
		})
		_, s := f.open(f.config())
		_, _, first, _ := s.GetW(t.Context(), "/a")
		b := s.Batch()
		second := b.GetW("/a")
		b.Send()
		first.Close()
		got, err := second.Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		log.want(t)
		got.Watch.Close()
		synctest.Wait()
		log.want(t, removal{"/a", wire.WatcherData})
	})
}

// Promise: 4
func TestAbandonedFutureLeavesNoWatchBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log watchLog
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(log.note)
		})
		_, s := f.open(f.config())
		b := s.Batch()
		early, late := b.GetW("/early"), b.GetW("/late")
		early.Abandon()
		early.Abandon() // nothing was sent yet, and may never be
		b.Send()
		<-late.Done()
		late.Abandon()
		late.Abandon()
		<-early.Done()
		if _, err := early.Get(t.Context()); err == nil {
			t.Error("an abandoned future gave an answer")
		}
		synctest.Wait()
		log.want(t, removal{"/early", wire.WatcherData}, removal{"/late", wire.WatcherData})
	})
}

func TestEventsReachTheWatchesThatTheirKindConcerns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		script := make(chan wire.Event, 16)
		f := newFake(t, func(p *peer) {
			p.open()
			go func() {
				for e := range script {
					p.notify(e.Type, e.Path)
				}
			}()
			p.loop(func(r request) bool {
				if r.Op == wire.OpExists && r.path() == "/a/none" {
					p.answer(r, 1, wire.NoNode, nil)
					return true
				}
				return false
			})
		})
		defer close(script)
		_, s := f.open(f.config())
		ctx := t.Context()
		_, _, data, _ := s.GetW(ctx, "/a")
		_, _, child, _ := s.ChildrenW(ctx, "/a")
		_, found, exist, err := s.ExistsW(ctx, "/a/none")
		if err != nil || found {
			t.Fatalf("ExistsW of an absent node: %t, %v", found, err)
		}
		persistent, _ := s.Watch(ctx, "/a")
		recursive, err := s.WatchRecursive(ctx, "/")
		if err != nil {
			t.Fatal(err)
		}
		script <- wire.Event{Type: wire.EventChildrenChanged, Path: "/a"}
		wantEvent(t, child, zk.EventChildrenChanged, "/a")
		wantDone(t, child, zk.ErrWatchDone)
		wantEvent(t, persistent, zk.EventChildrenChanged, "/a")
		script <- wire.Event{Type: wire.EventDataChanged, Path: "/a"}
		wantEvent(t, data, zk.EventDataChanged, "/a")
		wantEvent(t, persistent, zk.EventDataChanged, "/a")
		script <- wire.Event{Type: wire.EventCreated, Path: "/a/none"}
		wantEvent(t, exist, zk.EventCreated, "/a/none")
		_, _, data, _ = s.GetW(ctx, "/a")
		_, _, child, _ = s.ChildrenW(ctx, "/a")
		script <- wire.Event{Type: wire.EventDeleted, Path: "/a"}
		wantEvent(t, data, zk.EventDeleted, "/a")
		wantEvent(t, child, zk.EventDeleted, "/a")
		wantEvent(t, persistent, zk.EventResynced, "/a") // set again behind the one-shot watches
		wantEvent(t, persistent, zk.EventDeleted, "/a")
		wantEvent(t, recursive, zk.EventDataChanged, "/a") // no ChildrenChanged
		wantEvent(t, recursive, zk.EventCreated, "/a/none")
		wantEvent(t, recursive, zk.EventDeleted, "/a")
	})
}

func TestEventThatCameBeforeAnAnswerIsThereWhenTheCallReturns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(func(r request) bool {
				if r.Op == wire.OpSetData {
					p.notify(wire.EventDataChanged, "/a")
				}
				return false
			})
		})
		_, s := f.open(f.config())
		_, _, w, _ := s.GetW(t.Context(), "/a")
		if _, err := s.Set(t.Context(), "/a", nil, -1); err != nil {
			t.Fatal(err)
		}
		done, cancel := context.WithCancel(t.Context())
		cancel()
		if e, err := w.Next(done); err != nil || e.Type != zk.EventDataChanged {
			t.Errorf("event right after the answer: %v, %v", e, err)
		}
	})
}

// Promise: 8
func TestWatchEndsWithTheSessionsCause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			if req, ok := p.connect(); ok && req.SessionID == 0 {
				p.grant(req)
				p.loop(nil)
			} else if ok {
				p.expire()
			}
		})
		_, s := f.open(f.config())
		_, _, w, _ := s.GetW(t.Context(), "/a")
		f.cut()
		wantDone(t, w, zk.ErrExpired)
	})
}

// Promise: 15
func TestPersistentWatchIsSetAgainBehindAOneShotWatch(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	s := srv.Session(t, 20*time.Second)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.Create(t.Context(), "/a", nil, zk.Persistent)
	must(err)
	lasting, err := s.WatchRecursive(t.Context(), "/a")
	must(err)
	_, _, once, err := s.GetW(t.Context(), "/a") // the server may be older than 3.9
	must(err)
	if e, err := lasting.Next(t.Context()); err != nil || e.Type != zk.EventResynced {
		t.Errorf("got %v, %v, want an EventResynced", e, err)
	}
	_, err = s.Set(t.Context(), "/a", []byte("x"), -1)
	must(err)
	for _, w := range []*zk.Watch{once, lasting} {
		if e, err := w.Next(t.Context()); err != nil || e.Type != zk.EventDataChanged {
			t.Errorf("got %v, %v, want a change", e, err)
		}
	}
	_, _, once, err = s.GetW(t.Context(), "/a") // the event has told that the server is not
	must(err)
	once.Close()
	must(s.Sync(t.Context(), "/a"))
	if e, ok := lasting.Poll(); ok {
		t.Errorf("got %v, want nothing", e)
	}
	if n := srv.Traffic().Requests[zktest.OpAddWatch]; n != 2 {
		t.Errorf("got %d requests for persistent watches, want 2", n)
	}
	lasting.Close()
	srv.NoWatches(t)
}

// A server may make of a path a million levels.
func TestEventOfADeepPathIsSoonDealtWith(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(func(r request) bool {
				if r.Op == wire.OpSync {
					for _, path := range []string{strings.Repeat("/", 3<<20), "/ab/c", "/a/b", "/a"} {
						p.notify(wire.EventCreated, path)
					}
				}
				return false
			})
		})
		_, s := f.open(f.config())
		w, err := s.WatchRecursive(t.Context(), "/a")
		must(t, err)
		for i := range 16 { // or a look for each level costs little
			_, err := s.WatchRecursive(t.Context(), fmt.Sprint("/", i))
			must(t, err)
		}
		must(t, s.Sync(t.Context(), "/"))
		for _, want := range []string{"/a/b", "/a"} {
			if e, err := w.Next(t.Context()); err != nil || e.Path != want {
				t.Errorf("got %.20v, %v, want %s", e, err, want)
			}
		}
	})
}

func TestClosedWatchCallsNoFunction(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, _, w, err := srv.Session(t, time.Minute).GetW(t.Context(), "/")
		must(t, err)
		w.Close()
		w.AfterFunc(func() { t.Error("called") })
		time.Sleep(time.Second) // in a bubble
	})
}
