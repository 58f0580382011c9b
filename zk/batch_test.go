package zk_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

func TestMultiReadUnderstandsBothFormsOfAnError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		long := &wire.MultiResponse{Results: []wire.MultiResult{
			{Op: wire.OpError, Err: wire.NoNode}, {Op: wire.OpGetData, Data: []byte("x")},
		}}
		short := long.Append(nil)
		short = append(short[:9:9], short[13:]...) // without the code after the header
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(func(r request) bool {
				if r.Op == wire.OpMultiRead {
					p.answer(r, 1, wire.OK, [...]wire.Record{long, rawRecord(short)}[(r.Xid-1)%2])
				}
				return r.Op == wire.OpMultiRead
			})
		})
		_, s := f.open(f.config())
		for _, form := range []string{"with the code twice", "with the code once"} {
			got, err := s.MultiRead(t.Context(), zk.GetOp("/none"), zk.GetOp("/a"))
			if err != nil || len(got) != 2 || !errors.Is(got[0].Err, zk.NoNode) ||
				string(got[1].Data) != "x" || got[1].Err != nil {
				t.Errorf("%s: %+v, %v", form, got, err)
			}
		}
	})
}

func TestFailedMultiSaysWhichOperationAndWhy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(func(r request) bool {
				p.answer(r, 1, wire.OK, &wire.MultiResponse{Results: []wire.MultiResult{
					{Op: wire.OpError, Err: wire.OK},
					{Op: wire.OpError, Err: wire.BadVersion},
					{Op: wire.OpError, Err: wire.RuntimeInconsistency},
				}})
				return true
			})
		})
		_, s := f.open(f.config())
		ops := []zk.Op{zk.CreateOp("/a", nil, zk.Persistent), zk.CheckOp("/b", 3), zk.DeleteOp("/c", -1)}
		_, err := s.Multi(t.Context(), ops...)
		wantFailure(t, err, zk.BadVersion, zk.Refused)
		var multi *zk.MultiError
		if !errors.As(err, &multi) || multi.Index != 1 || multi.Path != "/b" || multi.Op != "check" ||
			len(multi.Results) != 3 {
			t.Errorf("got %+v, want operation 1, check /b", multi)
		}
		for i, want := range []error{nil, zk.BadVersion, zk.RuntimeInconsistency} {
			if got := multi.Results[i].Err; got != want { //nolint:errorlint // the result itself, not what it wraps
				t.Errorf("operation %d: got %v, want %v", i, got, want)
			}
		}
		b := s.Batch()
		future := b.Multi(ops...)
		b.Send()
		_, err = future.Get(t.Context())
		wantFailure(t, err, zk.BadVersion, zk.Refused)
	})
}

// Promise: 9
func TestMultiThatIsAnsweredInPartIsNoSuccess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, results := range []int{0, 1, 3} {
			f := newFake(t, func(p *peer) {
				p.open()
				p.loop(func(r request) bool {
					if r.Op != wire.OpMulti && r.Op != wire.OpMultiRead {
						return false
					}
					body := &wire.MultiResponse{Results: make([]wire.MultiResult, results)}
					for i := range body.Results {
						body.Results[i].Op = wire.OpCheck
					}
					p.answer(r, 1, wire.OK, body)
					return true
				})
			})
			_, s := f.open(f.config())
			_, err := s.Multi(t.Context(), zk.CheckOp("/a", -1), zk.CheckOp("/b", -1))
			wantFailure(t, err, zk.ErrProtocol, zk.Unknown)
			_, err = s.MultiRead(t.Context(), zk.GetOp("/a"), zk.GetOp("/b"))
			wantFailure(t, err, zk.ErrProtocol, zk.Unknown)
			b := s.Batch()
			future := b.Multi(zk.CheckOp("/a", -1), zk.CheckOp("/b", -1))
			b.Send()
			_, err = future.Get(t.Context())
			wantFailure(t, err, zk.ErrProtocol, zk.Unknown)
		}
	})
}

func TestBatchLeavesInOneWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(nil)
		})
		var writes atomic.Int64
		cfg := f.config()
		cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := f.Dial(ctx, network, address)
			return countedConn{c, &writes}, err
		}
		_, s := f.open(cfg)
		before := writes.Load()
		b := s.Batch()
		created := b.Create("/a-", []byte("x"), zk.EphemeralSequential)
		children := b.Children("/")
		stat := b.Set("/a", nil, -1)
		exists := b.Exists("/a")
		deleted := b.Delete("/a", -1)
		bad := b.Delete("a//b", -1)
		if writes.Load() != before {
			t.Error("a batch was written before Send")
		}
		b.Send()
		ctx := t.Context()
		if c, err := created.Get(ctx); err != nil || c.Path != "/a-" {
			t.Errorf("create: %+v, %v", c, err)
		}
		if c, err := children.Get(ctx); err != nil || !slices.Equal(c.Names, []string{"a"}) {
			t.Errorf("children: %+v, %v", c, err)
		}
		if _, err := stat.Get(ctx); err != nil {
			t.Errorf("set: %v", err)
		}
		if e, err := exists.Get(ctx); err != nil || !e.Exists {
			t.Errorf("exists: %+v, %v", e, err)
		}
		if _, err := deleted.Get(ctx); err != nil {
			t.Errorf("delete: %v", err)
		}
		_, err := bad.Get(ctx)
		wantFailure(t, err, zk.BadArguments, zk.NotSent)
		if n := writes.Load() - before; n != 1 {
			t.Errorf("a batch of five took %d writes, want 1", n)
		}
		b.Send() // nothing
		again := b.Get("/a")
		b.Send()
		if _, err := again.Get(ctx); err != nil {
			t.Errorf("batch used again: %v", err)
		}
	})
}

func TestBatchRemovesWatchesBeforeItsOperationsInTheSameWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // guards ops
		var ops []wire.Op
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(func(r request) bool {
				mu.Lock()
				defer mu.Unlock()
				ops = append(ops, r.Op)
				return false
			})
		})
		var writes atomic.Int64
		cfg := f.config()
		cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := f.Dial(ctx, network, address)
			return countedConn{c, &writes}, err
		}
		_, s := f.open(cfg)
		ctx := t.Context()
		_, _, w, err := s.GetW(ctx, "/a")
		if err != nil {
			t.Fatal(err)
		}
		before := writes.Load()
		b := s.Batch()
		b.Unwatch(w)
		deleted := b.Delete("/a", -1)
		b.Send()
		if _, err := deleted.Get(ctx); err != nil {
			t.Fatal(err)
		}
		wantDone(t, w, zk.ErrWatchDone)
		w.Close() // does nothing
		b.Unwatch(w)
		b.Send() // likewise
		synctest.Wait()
		if n := writes.Load() - before; n != 1 {
			t.Errorf("the removal of a watch and an operation took %d writes, want 1", n)
		}
		mu.Lock()
		defer mu.Unlock()
		if want := []wire.Op{wire.OpGetData, wire.OpRemoveWatches, wire.OpDelete}; !slices.Equal(ops, want) {
			t.Errorf("requests %v, want %v", ops, want)
		}
	})
}

func TestRequestsUnderLoadShareWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(nil)
		})
		var writes atomic.Int64
		cfg := f.config()
		cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := f.Dial(ctx, network, address)
			return countedConn{c, &writes}, err
		}
		_, s := f.open(cfg)
		const callers, each = 64, 20
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				for range each {
					path := fmt.Sprintf("/%d", i)
					if c, err := s.Create(t.Context(), path, nil, zk.Persistent); err != nil || c.Path != path {
						t.Errorf("create %s: %q, %v", path, c.Path, err)
					}
				}
			})
		}
		wg.Wait()
		if n := writes.Load(); n > callers*each/8 {
			t.Errorf("%d writes for %d requests of %d callers, want them to share", n, callers*each, callers)
		}
	})
}

// countedConn counts writes. Each takes long enough for all callers to queue a request.
type countedConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c countedConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	time.Sleep(time.Millisecond)
	return c.Conn.Write(b)
}

func TestBatchReadsSeveralNodesInOneRequest(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	s := srv.Session(t, 20*time.Second)
	if _, err := s.Create(t.Context(), "/a", []byte("data"), zk.Persistent); err != nil {
		t.Fatal(err)
	}
	b := s.Batch()
	first := b.MultiRead(zk.GetOp("/a"), zk.GetOp("/none"), zk.ChildrenOp("/a"))
	invalid := b.MultiRead(zk.GetOp("/a"), zk.GetOp("b"))
	children := b.ChildrenW("/a")
	b.Send()
	got, err := first.Get(t.Context())
	if err != nil || len(got) != 3 {
		t.Fatalf("got %v, %v", got, err)
	}
	if string(got[0].Data) != "data" || !errors.Is(got[1].Err, zk.NoNode) || len(got[2].Children) != 0 {
		t.Errorf("got %+v", got)
	}
	if _, err := invalid.Get(t.Context()); !errors.Is(err, zk.BadArguments) || zk.OutcomeOf(err) != zk.NotSent {
		t.Errorf("got %v, want BadArguments", err)
	}
	list, err := children.Get(t.Context())
	if err != nil || list.Stat.Czxid == 0 {
		t.Fatalf("got %+v, %v", list, err)
	}
	if s.LastZxid() < list.Stat.Czxid {
		t.Errorf("got LastZxid %d after a reply with %d", s.LastZxid(), list.Stat.Czxid)
	}
	if _, err := s.Create(t.Context(), "/a/b", nil, zk.Persistent); err != nil {
		t.Fatal(err)
	}
	if e, ok := list.Watch.Poll(); !ok || e.Type != zk.EventChildrenChanged {
		t.Errorf("got event %+v, %t", e, ok)
	}
	abandoned := b.ChildrenW("/a")
	b.Send()
	abandoned.Abandon()
	if _, err := s.Create(t.Context(), "/last", nil, zk.Persistent); err != nil {
		t.Fatal(err)
	}
	srv.NoWatches(t)
}
