package cache_test

// What must hold at the moments that are easily missed.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/seed-a3166700/turnstile/cache"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// TestChangesEndWithTheirContext: also if there is a later version each time that the reader asks for one.
//
// Promise: 15
func TestChangesEndWithTheirContext(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/c")
	tree := f.tree("/c", cache.Config{})
	mine := errors.New("mine")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	told := 0
	for _, err := range tree.Changes(ctx) {
		if err != nil {
			if !errors.Is(err, mine) {
				t.Errorf("got %v, want the cause", err)
			}
			return
		}
		if told++; told > 20 {
			t.Fatal("the changes go on after their context has ended")
		}
		cancel(mine)
		f.set("/c", strconv.Itoa(told))
		f.must(tree.Sync(t.Context()))
	}
	t.Fatal("the changes ended without an error")
}

// TestNodesThatMayBeReadAgainComeBackWithWhatIsBelow: no event tells of the nodes below.
//
// Promise: 15
func TestNodesThatMayBeReadAgainComeBackWithWhatIsBelow(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/acl", "/acl/a", "/acl/a/b", "/acl/a/b/c")
	allow := func(perms zk.Perms) {
		t.Helper()
		acl := []zk.ACL{{Perms: perms, ID: zk.ID{Scheme: "world", ID: "anyone"}}}
		_, err := f.other.SetACL(t.Context(), "/acl/a", acl, -1)
		f.must(err)
	}
	allow(zk.PermAdmin | zk.PermWrite)
	tree := f.tree("/acl", cache.Config{})
	if got := contents(tree.View()); !slices.Equal(got, []string{"/acl=data of /acl"}) {
		t.Fatalf("got %q while /acl/a may not be read", got)
	}
	allow(zk.PermAll)
	f.set("/acl/a", "open")
	f.wantSame(tree, "/acl")
	f.srv.Drop(f.session())
	f.wantSame(tree, "/acl")
}

// TestAViewHasAllChangesUpToItsZxid: each transaction changes two nodes.
//
// Promise: 15
func TestAViewHasAllChangesUpToItsZxid(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/z")
	_, err := f.other.Multi(t.Context(),
		zk.CreateOp("/z/a", nil, zk.Persistent), zk.CreateOp("/z/b", nil, zk.Persistent))
	f.must(err)
	tree := f.tree("/z", cache.Config{})
	var readers sync.WaitGroup
	readers.Go(func() {
		for view, err := range tree.Views(t.Context()) {
			if err != nil {
				return
			}
			a, _ := view.Get("/z/a")
			b, _ := view.Get("/z/b")
			newest := max(a.Mzxid, b.Mzxid)
			if zxid := view.Zxid(); min(a.Mzxid, b.Mzxid) < newest && newest <= zxid {
				t.Errorf("a version up to %d has states of %d and %d", zxid, a.Mzxid, b.Mzxid)
			}
		}
	})
	for i := range 300 {
		data := []byte(strconv.Itoa(i))
		_, err := f.other.Multi(t.Context(), zk.SetOp("/z/a", data, -1), zk.SetOp("/z/b", data, -1))
		f.must(err)
	}
	f.wantSame(tree, "/z")
	if a, _ := tree.Get("/z/a"); tree.View().Zxid() < a.Mzxid {
		t.Errorf("got zxid %d after Sync, want at least %d", tree.View().Zxid(), a.Mzxid)
	}
	tree.Close()
	readers.Wait()
}

// TestNodesBelowOneThatMayNotBeReadAreLeftOut: also those that may be read, and of which events tell.
func TestNodesBelowOneThatMayNotBeReadAreLeftOut(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/acl", "/acl/a", "/acl/a/old")
	_, err := f.other.SetACL(t.Context(), "/acl/a", []zk.ACL{{
		Perms: zk.PermCreate | zk.PermAdmin, ID: zk.ID{Scheme: "world", ID: "anyone"},
	}}, -1)
	f.must(err)
	tree := f.tree("/acl", cache.Config{})
	for range 2 {
		f.create("/acl/b", "/acl/a/new", "/acl/a/new/below")
		f.set("/acl/a/old", "changed")
		f.must(tree.Sync(t.Context()))
		want := []string{"/acl=data of /acl", "/acl/b=data of /acl/b"}
		if got := contents(tree.View()); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		_, err := f.other.SetACL(t.Context(), "/acl/a", zk.OpenACL(), -1)
		f.must(err)
		f.set("/acl/a", "readable")
		f.wantSame(tree, "/acl")
		f.delete("/acl/b", "/acl/a/new/below", "/acl/a/new", "/acl/a/old", "/acl/a")
		f.create("/acl/a", "/acl/a/old")
		_, err = f.other.SetACL(t.Context(), "/acl/a", []zk.ACL{{
			Perms: zk.PermCreate | zk.PermDelete | zk.PermAdmin, ID: zk.ID{Scheme: "world", ID: "anyone"},
		}}, -1)
		f.must(err)
		f.srv.Drop(f.session())
		f.must(tree.Sync(t.Context()))
	}
}

// TestExactViewOfADeletion: no node is read after deletions alone, which come with a transaction's other events.
func TestExactViewOfADeletion(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/d", "/d/a")
	tree := f.tree("/d", cache.Config{})
	var deleted int64
	for view, err := range tree.Views(t.Context()) {
		f.must(err)
		if _, there := view.Get("/d/a"); !there {
			if view.Exact() && view.Zxid() < deleted {
				t.Errorf("the exact version up to %d lacks what %d has deleted", view.Zxid(), deleted)
			}
			break
		}
		f.delete("/d/a")
		deleted = f.other.LastZxid()
	}
	const nodes = 20
	var create, remove []zk.Op
	for i := range nodes {
		path := fmt.Sprint("/d/", i)
		create, remove = append(create, zk.CreateOp(path, nil, zk.Persistent)), append(remove, zk.DeleteOp(path, -1))
	}
	var writer sync.WaitGroup
	writer.Go(func() {
		for range 100 {
			_, err := f.other.Multi(t.Context(), create...)
			f.must(err)
			_, err = f.other.Multi(t.Context(), remove...)
			f.must(err)
		}
		f.create("/d/end")
	})
	for view, err := range tree.Views(t.Context()) {
		f.must(err)
		_, end := view.Get("/d/end")
		if n := view.Len() - 1; view.Exact() && !end && n != 0 && n != nodes {
			t.Errorf("the exact version up to %d has %d of the %d nodes of a transaction", view.Zxid(), n, nodes)
		}
		if end {
			break
		}
	}
	writer.Wait()
}

// TestWhatIsNoPathFindsNothing: it may not pass for a path that is like it.
func TestWhatIsNoPathFindsNothing(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/p", "/p/b", "/p/b/c")
	for _, view := range []*cache.View{f.tree("/p", cache.Config{}).View(), f.tree("/", cache.Config{}).View()} {
		for _, path := range []string{
			"", "p", "//", "//p", "///p", "/p/", "/p//", "/p//b", "/p/b//c", "/p//b/c", "/p/b/c/", "/px",
		} {
			if e, ok := view.Get(path); ok {
				t.Errorf("%q has found %s", path, e.Path)
			}
			for e := range view.Children(path) {
				t.Errorf("%q has the child %s", path, e.Path)
			}
		}
		if e, ok := view.Get("/p/b/c"); !ok || e.Path != "/p/b/c" {
			t.Errorf("got %+v, %t", e, ok)
		}
	}
	children, err := cache.OpenChildren(f.client, "/p", cache.Config{})
	f.must(err)
	t.Cleanup(children.Close)
	f.must(children.WaitSynced(t.Context()))
	for _, name := range []string{"", "/", "b/", "/b", "b/c", "."} {
		if e, ok := children.Get(name); ok {
			t.Errorf("%q is no child, and has found %s", name, e.Path)
		}
	}
}

// await waits until the session has a state.
func (f *fixture) await(sess *zk.Session, want zk.State) {
	for state := range sess.States(f.Context()) {
		if state == want {
			return
		}
	}
}

// busyTree is a cache of /s whose goroutine is busy, and does nothing, until release is called. A call of Sync has its
// answer from the server, and waits for the cache.
func (f *fixture) busyTree() (tree *cache.Tree, sess *zk.Session, synced <-chan error, release func()) {
	f.Helper()
	f.create("/s", "/s/a")
	busy, proceed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	tree = f.tree("/s", cache.Config{Exclude: func(path string) bool {
		if path == "/s/busy" {
			once.Do(func() { close(busy); <-proceed })
		}
		return path == "/s/busy" // so that there is nothing to read
	}})
	sess, err := f.client.Session(f.Context())
	f.must(err)
	f.create("/s/busy")
	<-busy
	ended := make(chan error, 1)
	go func() { ended <- tree.Sync(f.Context()) }()
	synctest.Wait()
	return tree, sess, ended, func() { close(proceed); synctest.Wait() }
}

// TestStatusIsNotCurrentWithoutAConnection: the cache comes to a call of Sync after the disconnect.
func TestStatusIsNotCurrentWithoutAConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var net zktest.Net
		f := setup(t, zktest.On(&net))
		tree, sess, synced, release := f.busyTree()
		f.srv.Cut(sess.ID())
		f.await(sess, zk.Suspended)
		release()
		f.must(<-synced) // it has everything that was committed before
		if s := tree.Synced(); s.Current {
			t.Errorf("got %+v without a connection", s)
		}
		f.srv.Heal()
		f.must(tree.Sync(t.Context()))
		if s := tree.Synced(); !s.Current {
			t.Errorf("got %+v, want current", s)
		}
	})
}

// TestStatusIsCurrentOnlyAfterTheComparison: the cache comes to a call of Sync after the reconnect, while the server
// has not restored its watch.
func TestStatusIsCurrentOnlyAfterTheComparison(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var net zktest.Net
		f := setup(t, zktest.On(&net))
		tree, sess, synced, release := f.busyTree()
		held, restore := context.WithCancel(t.Context())
		f.srv.Control(func(r zktest.Request) zktest.Fault {
			if r.Session == sess.ID() && r.Op == zktest.OpSetWatches {
				return zktest.Until(held)
			}
			return zktest.Pass
		})
		f.srv.Cut(sess.ID())
		f.set("/s/a", "missed")
		f.srv.Heal()
		f.await(sess, zk.Connected)
		release()
		if s := tree.Synced(); s.Current {
			t.Errorf("got %+v before anything was compared", s)
		}
		restore()
		f.must(<-synced)
		f.must(tree.Sync(t.Context()))
		if e, _ := tree.Get("/s/a"); string(e.Data) != "missed" || !tree.Synced().Current {
			t.Errorf("got %q, %+v; want what was missed, current", e.Data, tree.Synced())
		}
	})
}

// TestNewSessionSyncsBeforeItReads: its server may lag behind the one that the cache has read from.
func TestNewSessionSyncsBeforeItReads(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/n", "/n/a")
	tree := f.tree("/n", cache.Config{})
	former := f.session()
	var mu sync.Mutex
	var ops []zktest.Op
	f.srv.Control(func(r zktest.Request) zktest.Fault {
		mu.Lock()
		defer mu.Unlock()
		if r.Session != former && r.Session != f.other.ID() && r.Op != zktest.OpConnect && r.Op != zktest.OpPing {
			ops = append(ops, r.Op)
		}
		return zktest.Pass
	})
	f.srv.ExpireSession(former)
	for f.session() == former || !tree.Synced().Current { // without a call of Sync
		if _, _, err := f.other.Exists(t.Context(), "/n"); err != nil {
			t.Fatal(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(ops) == 0 || ops[0] != zktest.OpSync {
		t.Errorf("got %v, want a sync first", ops)
	}
}

// TestStatusTellsOfAReconnectThatTheCacheHasNotNoticed: the cache is busy from before the disconnect until after the
// reconnect.
//
// Promise: 15
func TestStatusTellsOfAReconnectThatTheCacheHasNotNoticed(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/s", "/s/a")
	busy, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	tree := f.tree("/s", cache.Config{Exclude: func(path string) bool {
		if path == "/s/busy" {
			once.Do(func() { close(busy); <-release })
		}
		return false
	}})
	sess, err := f.client.Session(t.Context())
	f.must(err)
	f.create("/s/busy")
	<-busy
	f.srv.Cut(sess.ID())
	f.await(sess, zk.Suspended)
	f.srv.Heal()
	f.await(sess, zk.Connected)
	if s := tree.Synced(); s.Current || s.Behind <= 0 {
		t.Errorf("got %+v before anything was compared", s)
	}
	close(release)
	for !tree.Synced().Current { // without a call that the cache has to answer
		if _, _, err := sess.Exists(t.Context(), "/s"); err != nil {
			t.Fatalf("the cache has not become current: %v", err)
		}
	}
	f.wantSame(tree, "/s")
}

// TestSyncHasWhatWasCommittedAlsoIfTheNodeIsRecreatedMeanwhile: the node is deleted and created while the cache reads
// the state that Sync is to show, so that what it reads is of no use.
//
// Promise: 15
func TestSyncHasWhatWasCommittedAlsoIfTheNodeIsRecreatedMeanwhile(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/s", "/s/a", "/s/b")
	tree := f.tree("/s", cache.Config{})
	before, _ := tree.Get("/s/a")
	id := f.session()
	reads := make(chan func(), 8) // of the cache: each goes on when its function is called
	var held atomic.Bool
	held.Store(true)
	var readers sync.WaitGroup
	var seen []*cache.View
	readers.Go(func() {
		for view, err := range tree.Views(t.Context()) {
			if err != nil {
				return
			}
			seen = append(seen, view)
		}
	})
	synced := make(chan struct{}, 8)
	f.srv.Control(func(r zktest.Request) zktest.Fault {
		switch {
		case r.Session != id || !held.Load():
			return zktest.Pass
		case r.Code == 9: // sync
			synced <- struct{}{}
			return zktest.Pass
		case r.Code == 22: // multiRead
			ctx, cancel := context.WithCancel(t.Context())
			reads <- cancel
			return zktest.Until(ctx)
		}
		return zktest.Pass
	})
	f.set("/s/b", "first")
	first := <-reads
	f.set("/s/a", "committed")
	done := make(chan error, 1)
	go func() { done <- tree.Sync(t.Context()) }()
	<-synced
	first()
	second := <-reads
	f.delete("/s/a")
	f.create("/s/a")
	held.Store(false)
	second()
	f.must(<-done)
	if e, ok := tree.Get("/s/a"); ok && e.Czxid == before.Czxid && e.Version == 0 {
		t.Error("a write that was committed before Sync is missing")
	}
	f.wantSame(tree, "/s")
	now, _ := tree.Get("/s/a")
	tree.Close()
	readers.Wait()
	for _, view := range seen {
		if e, ok := view.Get("/s/a"); view.Zxid() >= now.Czxid && (!ok || e.Czxid != now.Czxid) {
			t.Errorf("a version up to %d has %+v, %t", view.Zxid(), e, ok)
		}
	}
}

// TestSyncEndsWithTheCache: also if no server can be reached.
//
// Promise: 15
func TestSyncEndsWithTheCache(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/x")
	tree := f.tree("/x", cache.Config{})
	sess, err := f.client.Session(t.Context())
	f.must(err)
	f.srv.Cut(sess.ID())
	for state := range sess.States(t.Context()) {
		if state == zk.Suspended {
			break
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout/2) // the session lives longer
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- tree.Sync(ctx) }()
	tree.Close()
	if err := <-ended; !errors.Is(err, cache.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
	f.srv.Heal()
}

// TestLongPathsFitIntoRequests: the paths of the nodes that a request may have would be larger than a packet.
//
// Promise: 15
func TestLongPathsFitIntoRequests(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/long")
	const n = 256
	var ops []zk.Op
	for i := range n {
		ops = append(ops, zk.CreateOp(fmt.Sprintf("/long/%s%d", strings.Repeat("y", 4200), i), nil, zk.Persistent))
	}
	for some := range slices.Chunk(ops, 64) {
		_, err := f.other.Multi(t.Context(), some...)
		f.must(err)
	}
	tree := f.tree("/long", cache.Config{})
	if got := tree.View().Len(); got != n+1 {
		t.Errorf("got %d nodes, want %d", got, n+1)
	}
}

// TestNodesBelowARecreatedNodeAreGone: no event tells of the deletion of a node that may not be read.
func TestNodesBelowARecreatedNodeAreGone(t *testing.T) {
	t.Parallel()
	for _, events := range []string{"one by one", "together", "not again"} {
		t.Run(events, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			f.create("/d", "/d/a", "/d/a/b")
			tree := f.tree("/d", cache.Config{})
			closed := []zk.ACL{{Perms: zk.PermAdmin, ID: zk.ID{Scheme: "world", ID: "anyone"}}}
			_, err := f.other.SetACL(t.Context(), "/d/a/b", closed, -1)
			f.must(err)
			id := f.session()
			if events == "together" {
				f.srv.HoldWatches(id)
			}
			f.delete("/d/a/b", "/d/a")
			if events != "not again" {
				f.create("/d/a")
			}
			f.srv.ReleaseWatches(id)
			f.wantSame(tree, "/d")
		})
	}
}

// TestEphemeralNodeInPlaceOfADirectory: an ephemeral node has no children, so they are not listed.
func TestEphemeralNodeInPlaceOfADirectory(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/e", "/e/a", "/e/a/b")
	tree := f.tree("/e", cache.Config{})
	f.srv.Cut(f.session())
	f.delete("/e/a/b", "/e/a")
	_, err := f.other.Create(t.Context(), "/e/a", nil, zk.Ephemeral)
	f.must(err)
	f.srv.Heal()
	f.wantSame(tree, "/e")
}

// TestChrootOfAClient: paths of a cache are those of its client.
func TestChrootOfAClient(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/root", "/root/a", "/root/a/b", "/a")
	cfg := f.srv.Config(timeout)
	cfg.Servers += "/root"
	client, err := zk.Open(t.Context(), cfg)
	f.must(err)
	defer client.Close()
	f.client = client
	tree := f.tree("/", cache.Config{})
	f.set("/root/a/b", "new")
	f.create("/root/c")
	f.must(tree.Sync(t.Context()))
	want := []string{"/=data of /root", "/a=data of /root/a", "/c=data of /root/c", "/a/b=new"}
	if got := contents(tree.View()); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	tree.Close()
}

func TestTheLastStateIsToldBeforeTheEnd(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/x")
	tree := f.tree("/x", cache.Config{})
	last := ""
	for c, err := range tree.Changes(t.Context()) {
		if errors.Is(err, cache.ErrClosed) {
			break
		}
		f.must(err)
		if last = string(c.After.Data); last != "last" {
			f.set("/x", "last")
			f.must(tree.Sync(t.Context()))
			tree.Close()
		}
	}
	if last != "last" {
		t.Errorf("got %q at the end", last)
	}
}

// TestCloseDuringALoadLeavesNoWatch: replies with watches arrive after the end.
func TestCloseDuringALoadLeavesNoWatch(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/l")
	const n = 600
	var ops []zk.Op
	for i := range n {
		ops = append(ops, zk.CreateOp(fmt.Sprintf("/l/%d", i), nil, zk.Persistent))
	}
	_, err := f.other.Multi(t.Context(), ops...)
	f.must(err)
	id, reads := f.session(), 0
	asked := make(chan struct{})
	ctx, release := context.WithCancel(t.Context())
	defer release()
	f.srv.Control(func(r zktest.Request) zktest.Fault {
		if r.Session != id || r.Code != 22 { // multiRead
			return zktest.Pass
		}
		if reads++; reads == 2 {
			close(asked)
		}
		if reads > 1 {
			return zktest.ReplyUntil(ctx)
		}
		return zktest.Pass
	})
	tree, err := cache.OpenTree(f.client, "/l", cache.Config{})
	f.must(err)
	<-asked
	tree.Close()
	release()
	f.srv.NoWatches(t)
}
