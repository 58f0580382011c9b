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

	"github.com/seed-a3166700/turnstile/cache"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// TestChangesEndWithTheirContext: also if there is a later version each time that the reader asks for one.
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

// TestStatusTellsOfAReconnectThatTheCacheHasNotNoticed: the cache is busy from before the disconnect until after the
// reconnect.
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
	await := func(want zk.State) {
		for state := range sess.States(t.Context()) {
			if state == want {
				return
			}
		}
	}
	f.srv.Cut(sess.ID())
	await(zk.Suspended)
	f.srv.Heal()
	await(zk.Connected)
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
	tree, err := cache.NewTree(f.client, "/l", cache.Config{})
	f.must(err)
	<-asked
	tree.Close()
	release()
	f.srv.NoWatches(t)
}
