package zk_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/zk"
)

// Promise: 8
func TestReconnectRestoresWatchesBeforeAnythingElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		restored := make(chan *wire.SetWatchesRequest, 1)
		seen := make(chan int64, 1)
		f := newFake(t, func(p *peer) {
			req, ok := p.connect()
			if !ok {
				return
			}
			p.grant(req)
			if p.nth == 1 {
				seen <- req.LastZxidSeen
				r, _ := p.next()
				if r.Op != wire.OpSetWatches || r.Xid != wire.XidSetWatches {
					t.Errorf("first request of the new connection: %v with xid %d, want setWatches with -8",
						r.Op, r.Xid)
				}
				restored <- r.record().(*wire.SetWatchesRequest)
				p.notify(wire.EventDataChanged, "/data")
				p.answer(r, 90, wire.OK, nil)
			}
			p.loop(func(r request) bool {
				switch r.Op {
				case wire.OpExists:
					p.answer(r, 41, wire.NoNode, nil)
				case wire.OpGetData:
					p.notify(wire.EventChildrenChanged, "/not-watched")
					p.answer(r, 42, wire.OK, &wire.DataResponse{})
				default:
					return false
				}
				return true
			})
		})
		_, s := f.open(f.config())
		ctx := t.Context()
		_, _, child, _ := s.ChildrenW(ctx, "/child")
		_, _, exist, _ := s.ExistsW(ctx, "/exist")
		_, _, data, err := s.GetW(ctx, "/data")
		if err != nil {
			t.Fatal(err)
		}
		f.refuse(errors.New("no route"))
		f.cut()
		waitState(s, zk.Suspended)
		b := s.Batch()
		queued := b.Sync("/")
		b.Send()
		f.refuse(nil)
		if _, err := queued.Get(ctx); err != nil {
			t.Fatal(err)
		}
		if got := <-seen; got != 42 {
			t.Errorf("last zxid of the connect request: %d, want 42", got)
		}
		got := <-restored
		if got.RelativeZxid != 42 || !slices.Equal(got.Data, []string{"/data"}) ||
			!slices.Equal(got.Exist, []string{"/exist"}) || !slices.Equal(got.Child, []string{"/child"}) {
			t.Errorf("restored %+v, want each watch in its list, relative to 42", got)
		}
		wantEvent(t, data, zk.EventDataChanged, "/data")
		child.Close()
		exist.Close()
	})
}

// Promise: 8
func TestLastZxidDoesNotMoveUntilAllWatchesAreRestored(t *testing.T) {
	t.Parallel()
	// Otherwise the packets without a reply would lose a change before it.
	synctest.Test(t, func(t *testing.T) {
		seen := make(chan int64, 2)
		f := newFake(t, func(p *peer) {
			req, ok := p.connect()
			if !ok {
				return
			}
			p.grant(req)
			switch p.nth {
			case 0:
				p.loop(func(r request) bool {
					p.answer(r, 42, wire.OK, &wire.DataResponse{})
					return true
				})
			case 1:
				r, _ := p.next()
				p.answer(r, 90, wire.OK, nil)
			default:
				seen <- req.LastZxidSeen
				p.loop(nil)
			}
		})
		_, s := f.open(f.config())
		b := s.Batch()
		var last *zk.Future[zk.WatchedData]
		for i := range 300 {
			last = b.GetW(fmt.Sprintf("/%s/%d", strings.Repeat("long", 200), i))
		}
		b.Send()
		if _, err := last.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.cut()
		if got := <-seen; got != 42 {
			t.Errorf("last zxid after half of the watches were restored: %d, want 42", got)
		}
	})
}

// Promise: 8
func TestRestoredWatchesAreSplitIntoPackets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const watches = 1000
		counts := make(chan int, 100)
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(func(r request) bool {
				if r.Op == wire.OpSetWatches {
					if n := r.body.Len(); n > 36<<10 {
						t.Errorf("packet of %d bytes, want at most about 32 KiB", n)
					}
					counts <- len(r.record().(*wire.SetWatchesRequest).Data)
				}
				return false
			})
		})
		_, s := f.open(f.config())
		b := s.Batch()
		var last *zk.Future[zk.WatchedData]
		for i := range watches {
			last = b.GetW(fmt.Sprintf("/%s/%d", strings.Repeat("long", 200), i))
		}
		b.Send()
		if _, err := last.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
		after(s, f.cut)
		if err := s.Sync(t.Context(), "/"); err != nil {
			t.Fatal(err)
		}
		close(counts)
		packets, total := 0, 0
		for n := range counts {
			packets++
			total += n
		}
		if total != watches || packets < 24 {
			t.Errorf("%d watches in %d packets, want %d in at least 24", total, packets, watches)
		}
	})
}

func TestPersistentWatchesAreToldToReadAgainAfterAReconnect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ops := make(chan wire.Op, 10)
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(func(r request) bool {
				if r.Op == wire.OpSetWatches || r.Op == wire.OpSetWatches2 {
					ops <- r.Op
				}
				return false
			})
		})
		_, s := f.open(f.config())
		_, _, once, _ := s.GetW(t.Context(), "/once")
		f.cut()
		if op := <-ops; op != wire.OpSetWatches {
			t.Errorf("without persistent watches: %v, want setWatches, which old servers know", op)
		}
		for path, watch := range map[string]func(context.Context, string) (*zk.Watch, error){
			"/recursive": s.WatchRecursive, "/plain": s.Watch,
		} {
			w, err := watch(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			f.cut()
			if op := <-ops; op != wire.OpSetWatches2 {
				t.Errorf("with a persistent watch of %s: %v, want setWatches2", path, op)
			}
			wantEvent(t, w, zk.EventResynced, path)
			w.Close()
		}
		once.Close()
	})
}

func TestPersistentWatchIsRemovedFromOldServersToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log watchLog
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(func(r request) bool {
				if r.Op != wire.OpRemoveWatches {
					return false
				}
				n := len(log.removals)
				log.note(r)
				if log.removals[n].kind < wire.WatcherPersistent {
					return false
				}
				p.answer(r, 1, wire.MarshallingError, nil) // 3.8 does not know it
				return true
			})
		})
		_, s := f.open(f.config())
		ctx := t.Context()
		alone, _ := s.Watch(ctx, "/alone")
		alone.Close()
		synctest.Wait()
		log.want(t, removal{"/alone", wire.WatcherAny})
		log.removals = nil
		shared, _ := s.WatchRecursive(ctx, "/shared")
		_, _, once, err := s.GetW(ctx, "/shared")
		if err != nil {
			t.Fatal(err)
		}
		shared.Close()
		synctest.Wait()
		log.want(t, removal{"/shared", wire.WatcherPersistentRecursive})
		once.Close()
		synctest.Wait()
		if last := log.removals[len(log.removals)-1]; last != (removal{"/shared", wire.WatcherAny}) {
			t.Errorf("last removal %v, want the leftover of /shared removed with all others", last)
		}
	})
}

// The server's watch has ended with the connection.
func TestWatchClosedWithoutAConnectionIsNotRemovedOverTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log watchLog
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(log.note)
		})
		_, s := f.open(f.config())
		_, _, w, err := s.GetW(t.Context(), "/a")
		if err != nil {
			t.Fatal(err)
		}
		f.cut()
		synctest.Wait()
		if _, connected := s.Server(); connected {
			t.Fatal("connected again at once")
		}
		w.Close()
		if _, _, err := s.Get(t.Context(), "/a"); err != nil { // over the next connection
			t.Fatal(err)
		}
		synctest.Wait()
		log.want(t)
	})
}

func TestABusyServerIsAskedAgainToRemoveAWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log watchLog
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(func(r request) bool {
				if r.Op != wire.OpRemoveWatches {
					return false
				}
				log.note(r)
				if len(log.removals)%2 == 0 {
					return false
				}
				p.answer(r, 1, wire.ThrottledOp, nil)
				return true
			})
		})
		_, s := f.open(f.config())
		_, _, data, err := s.GetW(t.Context(), "/data")
		if err != nil {
			t.Fatal(err)
		}
		_, _, list, err := s.ChildrenW(t.Context(), "/list")
		if err != nil {
			t.Fatal(err)
		}
		lasting, err := s.WatchRecursive(t.Context(), "/lasting")
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range []*zk.Watch{data, list, lasting} {
			w.Close()
			synctest.Wait()
		}
		log.want(t, removal{"/data", wire.WatcherData}, removal{"/data", wire.WatcherData},
			removal{"/list", wire.WatcherChildren}, removal{"/list", wire.WatcherChildren},
			removal{"/lasting", wire.WatcherAny}, removal{"/lasting", wire.WatcherAny})
	})
}

func TestAPersistentWatchSurvivesABusyServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sets, restored := 0, make(chan []string, 1)
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(func(r request) bool {
				switch r.Op {
				case wire.OpSetWatches2:
					restored <- r.record().(*wire.SetWatchesRequest).PersistentRecur
				case wire.OpAddWatch:
					if sets++; sets == 2 { // behind the one-shot watch that took its place
						p.answer(r, 1, wire.ThrottledOp, nil)
						return true
					}
				default:
				}
				return false
			})
		})
		_, s := f.open(f.config())
		w, err := s.WatchRecursive(t.Context(), "/a")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := s.GetW(t.Context(), "/a"); err != nil {
			t.Fatal(err)
		}
		if got := <-restored; !slices.Equal(got, []string{"/a"}) {
			t.Errorf("restored the recursive watches of %v, want /a", got)
		}
		wantEvent(t, w, zk.EventResynced, "/a")
	})
}

func TestWatchThatNobodyReadsBlocksNobodyAndSaysWhatItDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const events = 1<<16 + 10
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(func(r request) bool {
				if r.Op == wire.OpSync {
					for range events {
						p.notify(wire.EventDataChanged, "/a")
					}
				}
				return false
			})
		})
		_, s := f.open(f.config())
		w, err := s.Watch(t.Context(), "/a")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Sync(t.Context(), "/"); err != nil {
			t.Fatalf("request behind %d events that were not read: %v", events, err)
		}
		wantEvent(t, w, zk.EventResynced, "/a")
		wantEvent(t, w, zk.EventDataChanged, "/a")
	})
}
