package zk_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// plant creates n nodes below dir, at random places of a tree, and returns how many there are with dir itself.
func plant(t *testing.T, s *zk.Session, dir string, n int) int {
	t.Helper()
	paths := []string{dir}
	b := s.Batch()
	made := []*zk.Future[zk.Created]{b.Create(dir, nil, zk.Persistent)}
	for i := range n {
		path := fmt.Sprintf("%s/%d", paths[rand.IntN(len(paths))], i)
		paths = append(paths, path)
		made = append(made, b.Create(path, nil, zk.Persistent))
	}
	b.Send()
	for _, m := range made {
		_, err := m.Get(t.Context())
		must(t, err)
	}
	return len(paths)
}

func wantGone(t *testing.T, c *zk.Client, path string) {
	t.Helper()
	if _, exists, err := c.Exists(t.Context(), path); exists || err != nil {
		t.Errorf("%s: %v, %v; want no node", path, exists, err)
	}
}

// Promise: 18
func TestDeleteAllDeletesATree(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := openClient(t, zktest.Run(t))
	s, err := c.Session(ctx)
	must(t, err)
	want := plant(t, s, "/tree", 3000)
	plant(t, s, "/tree2", 3)
	if n, err := c.DeleteAll(ctx, "/tree"); n != want || err != nil {
		t.Errorf("got %d, %v; want %d", n, err, want)
	}
	wantGone(t, c, "/tree")
	if n, _, err := c.Get(ctx, "/tree2"); err != nil {
		t.Errorf("its neighbor is gone: %v, %v", n, err)
	}
	if n, err := c.DeleteAll(ctx, "/tree"); n != 0 || err != nil {
		t.Errorf("a missing node: %d, %v; want 0, nil", n, err)
	}
}

// Promise: 18
func TestDeleteAllDeletesAVeryWideAndAVeryDeepTree(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	srv := zktest.Run(t)
	c := openClient(t, srv)
	s, err := c.Session(ctx)
	must(t, err)
	const wide, deep = 10_000, 1000 // wide is more than DeleteAll keeps at a time
	_, err = c.Create(ctx, "/wide", nil, zk.Persistent)
	must(t, err)
	b := s.Batch()
	for i := range wide {
		last := b.Create(fmt.Sprintf("/wide/%d", i), nil, zk.Persistent)
		if i%1000 == 999 {
			b.Send()
			_, err := last.Get(ctx)
			must(t, err)
		}
	}
	var lists atomic.Int32
	srv.Control(func(r zktest.Request) zktest.Fault {
		if r.Op == zktest.OpGetChildren {
			lists.Add(1)
		}
		return zktest.Pass
	})
	if n, err := c.DeleteAll(ctx, "/wide"); n != wide+1 || err != nil || lists.Load() < 2 {
		t.Errorf("wide: %d, %v, %d lists; want %d, and several lists", n, err, lists.Load(), wide+1)
	}
	_, err = c.CreateAll(ctx, zk.Node{Path: "/deep" + strings.Repeat("/d", deep)}, zk.Parents{})
	must(t, err)
	if n, err := c.DeleteAll(ctx, "/deep"); n != deep+1 || err != nil {
		t.Errorf("deep: %d, %v; want %d", n, err, deep+1)
	}
}

// Of several lists that are asked for at once, the error names the one that is too large, wherever it is.
func TestDeleteAllNamesTheListThatIsTooLarge(t *testing.T) {
	t.Parallel()
	for _, large := range []string{"/tree/a", "/tree/b", "/tree/c"} {
		t.Run(large, func(t *testing.T) {
			t.Parallel()
			srv := zktest.Run(t)
			s := srv.Session(t, time.Minute)
			_, err := s.Create(t.Context(), "/tree", nil, zk.Persistent)
			must(t, err)
			for _, dir := range []string{"/tree/a", "/tree/b", "/tree/c"} {
				_, err := s.Create(t.Context(), dir, nil, zk.Persistent)
				must(t, err)
				n := 5
				if dir == large {
					n = 200
				}
				for i := range n {
					_, err := s.Create(t.Context(), fmt.Sprintf("%s/child-%d", dir, i), nil, zk.Persistent)
					must(t, err)
				}
			}
			c, err := zk.Open(t.Context(), zk.Config{Servers: srv.Addr(), MaxFrame: 1024})
			must(t, err)
			defer c.Close()
			_, err = c.DeleteAll(t.Context(), "/tree")
			wantFailure(t, err, zk.ErrReplyTooLarge, zk.Refused)
			if e, ok := errors.AsType[*zk.Error](err); !ok || e.Path != large {
				t.Errorf("got %v, want the path %s", err, large)
			}
		})
	}
}

// Promise: 18
func TestDeleteAllRefusesTheRootAndTheServersOwnNodes(t *testing.T) {
	t.Parallel()
	c := openClient(t, zktest.Run(t))
	for _, path := range []string{"/", "/zookeeper", "", "a"} {
		_, err := c.DeleteAll(t.Context(), path)
		wantFailure(t, err, zk.BadArguments, zk.NotSent)
	}
	_, _, err := c.Get(t.Context(), "/zookeeper")
	must(t, err)
}

// Promise: 18
func TestDeleteAllSaysHowFarItCame(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	srv := zktest.Run(t)
	c := openClient(t, srv)
	s, err := c.Session(ctx)
	must(t, err)
	plant(t, s, "/tree", 100)
	_, err = c.Create(ctx, "/tree/shut", nil, zk.Persistent)
	must(t, err)
	srv.Control(func(r zktest.Request) zktest.Fault {
		if r.Path == "/tree/shut" {
			return zktest.Answer(zk.NoAuth)
		}
		return zktest.Pass
	})
	n, err := c.DeleteAll(ctx, "/tree")
	wantFailure(t, err, zk.NoAuth, zk.Refused)
	if failed := new(zk.Error); !errors.As(err, &failed) || failed.Path != "/tree/shut" ||
		!strings.Contains(err.Error(), fmt.Sprintf("after %d nodes", n)) {
		t.Errorf("got %v, want the node and %d", err, n)
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	_, err = c.DeleteAll(canceled, "/tree")
	wantFailure(t, err, context.Canceled, zk.NotSent)
}

// The node is deleted, and the reply lost. That the server refuses what is sent then says nothing about it.
//
// Promise: 18
func TestOutcomeOfDeleteAllIsUnknownAfterALostReply(t *testing.T) {
	t.Parallel()
	for _, expires := range []bool{false, true} {
		t.Run(fmt.Sprintf("session ends %v", expires), func(t *testing.T) {
			t.Parallel()
			srv := zktest.Run(t)
			c := openClient(t, srv)
			_, err := c.Create(t.Context(), "/node", nil, zk.Persistent)
			must(t, err)
			asked := 0
			srv.Control(func(r zktest.Request) zktest.Fault {
				if r.Path != "/node" {
					return zktest.Pass
				}
				asked++
				if asked > 1 {
					return zktest.Answer(zk.NoAuth)
				}
				if expires {
					defer srv.ExpireSession(r.Session)
				}
				return zktest.DropReply
			})
			_, err = c.DeleteAll(t.Context(), "/node")
			wantFailure(t, err, zk.NoAuth, zk.Unknown)
		})
	}
}

// Each request in turn meets each fault.
//
// Promise: 18
func TestDeleteAllGoesOnAfterEachFault(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]zktest.Fault{
		"lost before": zktest.Refuse, "cut before": zktest.CutBefore, "reply lost": zktest.DropReply,
		"cut after": zktest.CutAfter,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := zktest.Run(t)
			c := openClient(t, srv)
			s, err := c.Session(t.Context())
			must(t, err)
			for seq := 1; seq <= 60; seq += 5 {
				srv.Control(nil)
				plant(t, s, "/tree", 30)
				srv.Control(func(r zktest.Request) zktest.Fault {
					if r.Seq == seq {
						return fault
					}
					return zktest.Pass
				})
				if _, err := s.DeleteAll(t.Context(), "/tree"); err != nil {
					t.Fatalf("request %d: %v", seq, err)
				}
				wantGone(t, c, "/tree")
			}
		})
	}
}

// Promise: 18
func TestDeleteAllGoesOnWithTheNextSession(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	srv := zktest.Run(t)
	c := openClient(t, srv)
	s, err := c.Session(ctx)
	must(t, err)
	plant(t, s, "/tree", 500)
	srv.Control(func(r zktest.Request) zktest.Fault {
		if r.Seq == 300 {
			srv.ExpireSession(r.Session)
			return zktest.Refuse
		}
		return zktest.Pass
	})
	if _, err := c.DeleteAll(ctx, "/tree"); err != nil {
		t.Error(err)
	}
	wantGone(t, c, "/tree")
	if s.Err() == nil {
		t.Error("the session has not ended")
	}
}

// Promise: 18
func TestDeleteAllBearsConcurrentDeletionsAndCreations(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	srv := zktest.Run(t)
	c := openClient(t, srv)
	s, err := c.Session(ctx)
	must(t, err)
	for range 3 {
		plant(t, s, "/tree", 300)
		var wg sync.WaitGroup
		for i := range 3 { // they create for a while
			wg.Go(func() {
				for j := range 30 {
					path := fmt.Sprintf("/tree/new%d/%d", i, j)
					if _, err := s.CreateAll(ctx, zk.Node{Path: path}, zk.Parents{Mode: zk.Container}); err != nil &&
						!errors.Is(err, zk.NoNode) {
						t.Error(err)
					}
				}
			})
		}
		for range 3 {
			wg.Go(func() {
				if _, err := s.DeleteAll(ctx, "/tree"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if _, err := s.DeleteAll(ctx, "/tree"); err != nil {
			t.Error(err)
		}
		wantGone(t, c, "/tree")
	}
}

// Promise: 18
func TestDeleteAllAsksLittleMoreThanOnceForEachNode(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	srv := zktest.Run(t)
	c := openClient(t, srv)
	s, err := c.Session(ctx)
	must(t, err)
	b := s.Batch()
	b.Create("/d", nil, zk.Persistent)
	for i := range 20 {
		b.Create(fmt.Sprintf("/d/%d", i), nil, zk.Persistent)
		for j := range 10 {
			b.Create(fmt.Sprintf("/d/%d/%d", i, j), nil, zk.Persistent)
		}
	}
	b.Send()
	must(t, s.Sync(ctx, "/"))
	var mu sync.Mutex
	requests := 0
	srv.Control(func(zktest.Request) zktest.Fault {
		mu.Lock()
		defer mu.Unlock()
		requests++
		return zktest.Pass
	})
	n, err := c.DeleteAll(ctx, "/d")
	if n != 221 || err != nil {
		t.Errorf("got %d, %v; want 221", n, err)
	}
	most := func(limit int) {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if requests > limit {
			t.Errorf("got %d requests, want at most %d", requests, limit)
		}
		requests = 0
	}
	most(221 + 2*21 + 10)
	const deep = 100
	_, err = c.CreateAll(ctx, zk.Node{Path: "/chain" + strings.Repeat("/d", deep)}, zk.Parents{})
	must(t, err)
	most(1 << 20)
	n, err = c.DeleteAll(ctx, "/chain")
	if n != deep+1 || err != nil {
		t.Errorf("got %d, %v; want %d", n, err, deep+1)
	}
	most(5 * deep)
}
