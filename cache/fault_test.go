package cache_test

// Faults: what is lost, repeated or late must not show in a cache.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/cache"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// session returns the id of the session of the client whose caches are tested.
func (f *fixture) session() int64 {
	f.Helper()
	sess, err := f.client.Session(f.Context())
	f.must(err)
	return sess.ID()
}

// old makes the server look like one before 3.6 to every client of its link.
func old(r zktest.Request) zktest.Fault {
	switch r.Code {
	case 105, 106, 22: // setWatches2, addWatch, multiRead
		return zktest.Answer(zk.Unimplemented)
	default:
		return zktest.Pass
	}
}

// Promise: 15
func TestServerWithoutPersistentWatchesEndsACache(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.srv.Control(old)
	tree, err := cache.OpenTree(f.client, "/o", cache.Config{})
	f.must(err)
	defer tree.Close()
	if err := tree.WaitSynced(t.Context()); !errors.Is(err, cache.ErrServer) {
		t.Errorf("got %v, want ErrServer", err)
	}
}

// Promise: 15
func TestChangesArriveWithoutSync(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/w", "/w/a")
	tree := f.tree("/w", cache.Config{})
	steps := []struct {
		do   func()
		want string
	}{
		{func() { f.set("/w/a", "1") }, "changed /w/a data of /w/a>1"},
		{func() { f.create("/w/b") }, "created /w/b >data of /w/b"},
		{func() { f.create("/w/b/c") }, "created /w/b/c >data of /w/b/c"},
		{func() { f.delete("/w/b/c") }, "deleted /w/b/c data of /w/b/c>"},
		{func() { f.delete("/w/b") }, "deleted /w/b data of /w/b>"},
	}
	next, want := 0, "created /w/a >data of /w/a"
	f.collect(t.Context(), tree.Changes(t.Context()), func(c cache.Change) bool {
		got := c.Kind.String() + " " + c.Path + " " + string(c.Before.Data) + ">" + string(c.After.Data)
		if c.Path == "/w" {
			return false
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if next == len(steps) {
			return true
		}
		want = steps[next].want
		steps[next].do()
		next++
		return false
	})
}

// TestRecreationDuringADisconnectIsSeen: the node has the same version, data and data length afterwards.
//
// Promise: 15
func TestRecreationDuringADisconnectIsSeen(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/r", "/r/a", "/r/b", "/r/a/deep")
	tree := f.tree("/r", cache.Config{})
	before, _ := tree.Get("/r/a")
	told := 0
	got := f.collect(t.Context(), tree.Changes(t.Context()), func(cache.Change) bool {
		if told++; told == 4 {
			f.srv.Cut(f.session())
			f.delete("/r/a/deep", "/r/a")
			f.create("/r/a")
			f.srv.Heal()
		}
		return told == 6
	})
	want := []string{"replaced /r/a data of /r/a>data of /r/a", "deleted /r/a/deep data of /r/a/deep>"}
	if !slices.Equal(got[4:], want) {
		t.Errorf("got %q, want %q", got[4:], want)
	}
	after, ok := tree.Get("/r/a")
	if !ok || after.Czxid <= before.Czxid || after.Version != before.Version {
		t.Errorf("got %+v after %+v", after, before)
	}
}

// TestRecreationDuringTheComparisonLeavesNothingOld: a child is deleted during a disconnect, so no event tells of it.
// Its parent is deleted and created while the cache compares everything, so that what the comparison reads of it is of
// no use.
//
// Promise: 15
func TestRecreationDuringTheComparisonLeavesNothingOld(t *testing.T) {
	t.Parallel()
	for _, parent := range []string{"/r", "/r/a"} {
		t.Run(parent, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			f.create("/r", "/r/a", "/r/a/old", "/r/a/new")
			tree := f.tree("/r", cache.Config{})
			f.must(tree.WaitSynced(t.Context()))
			id := f.session()
			f.srv.Cut(id)
			f.delete("/r/a/old", "/r/a/new")
			if parent == "/r" {
				f.delete("/r/a")
			}
			compares := make(chan struct{})
			var once sync.Once
			ctx, release := context.WithCancel(t.Context())
			defer release()
			f.srv.Control(func(r zktest.Request) zktest.Fault {
				if r.Session != id || r.Code != 22 { // multiRead
					return zktest.Pass
				}
				once.Do(func() { close(compares) })
				return zktest.Until(ctx)
			})
			f.srv.Heal()
			<-compares
			f.delete(parent)
			f.create(parent, parent+"/new")
			release()
			f.wantSame(tree, "/r")
		})
	}
}

// Promise: 15
func TestNewSessionComparesEverything(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/e", "/e/a", "/e/b", "/e/c")
	tree := f.tree("/e", cache.Config{})
	id := f.session()
	f.srv.Cut(id)
	f.set("/e/a", "while away")
	f.delete("/e/b", "/e/c")
	f.create("/e/c", "/e/d")
	f.srv.ExpireSession(id)
	f.srv.Heal()
	f.wantSame(tree, "/e")
	if s := tree.Synced(); !s.Current || s.Behind != 0 {
		t.Errorf("got %+v, want current", s)
	}
	tree.Close()
	f.srv.NoWatches(t)
}

// Promise: 15
func TestStatusTellsOfADisconnect(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/s")
	tree := f.tree("/s", cache.Config{})
	if s := tree.Synced(); !s.Current || s.Behind != 0 || s.Zxid != tree.View().Zxid() || s.Zxid == 0 {
		t.Errorf("got %+v, want current", s)
	}
	sess, err := f.client.Session(t.Context())
	f.must(err)
	f.srv.Cut(sess.ID())
	for state := range sess.States(t.Context()) {
		if state == zk.Suspended {
			break
		}
	}
	if s := tree.Synced(); s.Current {
		t.Errorf("got %+v while disconnected", s)
	}
	f.srv.Heal()
	f.must(tree.Sync(t.Context()))
	if s := tree.Synced(); !s.Current || s.Behind != 0 {
		t.Errorf("got %+v after reconnecting, want current", s)
	}
}

// eachStep runs f with a fault at each request of the cache's session in turn, until there are no more.
func eachStep(t *testing.T, fault zktest.Fault) {
	t.Helper()
	for step := 1; step < 200; step++ {
		f := setup(t)
		f.create("/l", "/l/a", "/l/b", "/l/a/x", "/l/a/y", "/l/b/z", "/l/a/x/1")
		id, seen, reached := f.session(), 0, false
		f.srv.Control(func(r zktest.Request) zktest.Fault {
			if r.Session == id && r.Seq > 0 {
				if seen++; seen == step {
					reached = true
					return fault
				}
			}
			return zktest.Pass
		})
		tree := f.tree("/l", cache.Config{})
		f.set("/l/a", "changed")
		f.delete("/l/b/z", "/l/b")
		f.create("/l/c", "/l/a/x/2")
		f.wantSame(tree, "/l")
		tree.Close()
		f.srv.Control(nil)
		f.srv.NoWatches(t)
		if !reached {
			if step < 5 {
				t.Fatalf("only %d steps", step)
			}
			return
		}
	}
	t.Fatal("the steps never end")
}

// Promise: 15
func TestAConnectionThatBreaksAtAnyStep(t *testing.T) {
	t.Parallel()
	faults := map[string]zktest.Fault{
		"refuse": zktest.Refuse, "cut before": zktest.CutBefore, "cut after": zktest.CutAfter,
		"drop reply": zktest.DropReply, "throttled": zktest.Answer(zk.ThrottledOp),
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachStep(t, fault)
		})
	}
}

// Promise: 15
func TestASessionThatExpiresAtAnyStepOfTheLoad(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/l")
	for i := range 5 {
		f.create(fmt.Sprintf("/l/%d", i), fmt.Sprintf("/l/%d/x", i))
	}
	for step := 1; step < 200; step++ {
		id, seen, reached := f.session(), 0, make(chan struct{})
		f.srv.Control(func(r zktest.Request) zktest.Fault {
			if r.Session == id && r.Seq > 0 {
				if seen++; seen == step {
					close(reached)
					return zktest.DropReply
				}
			}
			return zktest.Pass
		})
		tree, err := cache.OpenTree(f.client, "/l", cache.Config{})
		f.must(err)
		synced := make(chan error, 1)
		go func() { synced <- tree.WaitSynced(t.Context()) }()
		select {
		case <-reached:
			f.srv.ExpireSession(id)
			f.must(<-synced)
		case err := <-synced:
			f.must(err)
			tree.Close()
			f.srv.Control(nil)
			f.srv.NoWatches(t)
			return
		}
		f.wantSame(tree, "/l")
		tree.Close()
	}
}

// Promise: 15
func TestEventsDuringTheLoad(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/d")
	for i := range 30 {
		f.create(fmt.Sprintf("/d/%02d", i), fmt.Sprintf("/d/%02d/x", i))
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	stop := make(chan struct{})
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			path := fmt.Sprintf("/d/%02d/x", i%30)
			if i%2 == 0 {
				f.delete(path)
				f.create(path)
			} else {
				f.set(path, strconv.Itoa(i))
			}
		}
	})
	for range 5 {
		tree := f.tree("/d", cache.Config{})
		if n := tree.View().Len(); n < 60 {
			t.Errorf("got %d nodes, want 60 or 61", n)
		}
		f.srv.Drop(f.session())
		f.must(tree.Sync(t.Context()))
		tree.Close()
	}
	close(stop)
	wg.Wait()
	tree := f.tree("/d", cache.Config{})
	f.wantSame(tree, "/d")
	tree.Close()
	f.srv.NoWatches(t)
}

// TestACacheNeverGoesBack: under changes, disconnects and expired sessions, every node a reader sees is at least as new
// as before, and the cache has the server's state at the end.
//
// Promise: 15
func TestACacheNeverGoesBack(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/n")
	tree := f.tree("/n", cache.Config{})
	var readers sync.WaitGroup
	readers.Go(func() {
		state := map[string]cache.Entry{}
		newest := map[string]int64{}
		for c, err := range tree.Changes(t.Context()) {
			if err != nil {
				return
			}
			before, had := state[c.Path]
			if had != (c.Kind != cache.Created) || had && before.Mzxid != c.Before.Mzxid {
				t.Errorf("%v %s from %d, but %t, %d before", c.Kind, c.Path, c.Before.Mzxid, had, before.Mzxid)
			}
			if c.Kind == cache.Deleted {
				delete(state, c.Path)
				continue
			}
			if c.After.Mzxid <= newest[c.Path] {
				t.Errorf("%s: got mzxid %d after %d", c.Path, c.After.Mzxid, newest[c.Path])
			}
			newest[c.Path] = c.After.Mzxid
			state[c.Path] = c.After
		}
	})
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 600 {
		path := fmt.Sprintf("/n/%d", rng.IntN(20))
		switch rng.IntN(10) {
		case 0, 1, 2:
			_, _ = f.other.Create(t.Context(), path, nil, zk.Persistent)
		case 3, 4:
			_, _ = f.other.Create(t.Context(), path+"/below", nil, zk.Persistent)
		case 5:
			_ = f.other.Delete(t.Context(), path+"/below", -1)
		case 6:
			_ = f.other.Delete(t.Context(), path, -1)
		default:
			_, _ = f.other.Set(t.Context(), path, []byte(strconv.Itoa(i)), -1)
		}
		switch i % 100 {
		case 50:
			f.srv.Drop(f.session())
		case 99:
			f.srv.ExpireSession(f.session())
		}
	}
	f.wantSame(tree, "/n")
	tree.Close()
	readers.Wait()
}

// TestEverySnapshotIsAState: one transaction changes two nodes together, and no version has one change without the
// other.
//
// Promise: 15
func TestEverySnapshotIsAState(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/m", "/m/a", "/m/z")
	tree := f.tree("/m", cache.Config{})
	var readers sync.WaitGroup
	versions := 0
	readers.Go(func() {
		for _, err := range tree.Changes(t.Context()) {
			if err != nil {
				return
			}
			view := tree.View()
			a, _ := view.Get("/m/a")
			z, _ := view.Get("/m/z")
			if versions++; view.Exact() && a.Version != z.Version {
				t.Errorf("got versions %d and %d in one state", a.Version, z.Version)
			}
		}
	})
	for i := range 300 {
		data := []byte(strconv.Itoa(i))
		_, err := f.other.Multi(t.Context(), zk.SetOp("/m/a", data, -1), zk.SetOp("/m/z", data, -1))
		f.must(err)
		switch {
		case i%50 == 0:
			f.srv.Drop(f.session())
		case i%5 == 0:
			f.must(tree.Sync(t.Context()))
		}
	}
	f.must(tree.Sync(t.Context()))
	tree.Close()
	readers.Wait()
	if versions < 10 {
		t.Errorf("only %d versions", versions)
	}
}

// Promise: 15
func TestLargeReplies(t *testing.T) {
	t.Parallel()
	f := setup(t)
	big := bytes.Repeat([]byte("x"), 200<<10)
	f.create("/big", "/big/small", "/big/large", "/big/mixed")
	for i := range 40 {
		_, err := f.other.Create(t.Context(), fmt.Sprintf("/big/large/%d", i), big, zk.Persistent)
		f.must(err)
		f.create(fmt.Sprintf("/big/small/%d", i))
		_, err = f.other.Create(t.Context(), fmt.Sprintf("/big/mixed/%02d", i), big[:i/20*len(big)], zk.Persistent)
		f.must(err)
	}
	cfg := f.srv.Config(timeout)
	cfg.MaxFrame = 300 << 10 // one large node fits, two do not
	client, err := zk.Open(t.Context(), cfg)
	f.must(err)
	defer client.Close()
	f.client = client
	tree := f.tree("/big", cache.Config{})
	f.wantSame(tree, "/big")
	if s := tree.Synced(); !s.Current {
		t.Errorf("got %+v", s)
	}
	tree.Close()
}

// Promise: 15
func TestANodeThatDoesNotFitIsAnError(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/big", "/big/a")
	f.set("/big/a", strings.Repeat("x", 10_000))
	cfg := f.srv.Config(timeout)
	cfg.MaxFrame = 5000
	client, err := zk.Open(t.Context(), cfg)
	f.must(err)
	defer client.Close()
	tree, err := cache.OpenTree(client, "/big", cache.Config{})
	f.must(err)
	defer tree.Close()
	if err := tree.WaitSynced(t.Context()); !errors.Is(err, zk.ErrReplyTooLarge) {
		t.Errorf("got %v, want ErrReplyTooLarge", err)
	}
	bare, err := cache.OpenTree(client, "/big", cache.Config{NoData: true})
	f.must(err)
	defer bare.Close()
	f.must(bare.WaitSynced(t.Context()))
	if e, ok := bare.Get("/big/a"); !ok || e.Size != 10_000 {
		t.Errorf("got %+v, %t", e, ok)
	}
}

// Promise: 15
func TestNodesThatMayNotBeReadAreLeftOut(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/acl", "/acl/open", "/acl/closed", "/acl/closed/below")
	closed := []zk.ACL{{Perms: zk.PermAdmin, ID: zk.ID{Scheme: "world", ID: "anyone"}}}
	_, err := f.other.SetACL(t.Context(), "/acl/closed", closed, -1)
	f.must(err)
	tree := f.tree("/acl", cache.Config{})
	if got := contents(tree.View()); !slices.Equal(got, []string{"/acl=data of /acl", "/acl/open=data of /acl/open"}) {
		t.Errorf("got %q", got)
	}
}

// A right that is missing at one moment does not end a cache.
//
// Promise: 15
func TestCacheOutlivesARefusal(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/acl", "/acl/a")
	closed := []zk.ACL{{Perms: zk.PermAdmin, ID: zk.ID{Scheme: "world", ID: "anyone"}}}
	setACL := func(acl []zk.ACL) {
		t.Helper()
		_, err := f.other.SetACL(t.Context(), "/acl", acl, -1)
		f.must(err)
	}
	setACL(closed)
	tree, err := cache.OpenTree(f.client, "/acl", cache.Config{})
	f.must(err)
	defer tree.Close()
	if err := tree.WaitSynced(t.Context()); !errors.Is(err, zk.NoAuth) {
		t.Errorf("got %v, want NoAuth", err)
	}
	for _, err := range tree.Views(t.Context()) {
		if err == nil {
			break // it goes on after the refusal
		}
		if !errors.Is(err, zk.NoAuth) {
			t.Fatalf("got %v, want NoAuth", err)
		}
		setACL(zk.OpenACL())
	}
	f.wantSame(tree, "/acl")
	if err := tree.Err(); err != nil {
		t.Errorf("got %v from Err, want nil", err)
	}
	setACL(closed)
	f.srv.Drop(f.session())
	for tree.Err() == nil {
		_ = tree.Sync(t.Context())
	}
	if err := tree.Sync(t.Context()); !errors.Is(err, zk.NoAuth) {
		t.Errorf("got %v from Sync, want NoAuth", err)
	}
	if _, ok := tree.Get("/acl/a"); !ok || tree.Synced().Current {
		t.Errorf("got a copy that has the node: %t, of status %+v; want what was known, as such", ok, tree.Synced())
	}
	setACL(zk.OpenACL())
	for tree.Sync(t.Context()) != nil {
	}
	f.wantSame(tree, "/acl")
}

// Promise: 15
func TestAServerThatLostItsDataIsFollowed(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.client = f.srv.Client(t, 2*time.Second) // the session ends when no server has accepted it for so long
	f.create("/w", "/w/a")
	tree := f.tree("/w", cache.Config{})
	f.srv.Wipe()
	fresh, err := f.srv.Client(t, timeout).Session(t.Context())
	f.must(err)
	f.other = fresh
	f.create("/w", "/w/b")
	for c, err := range tree.Changes(t.Context()) {
		f.must(err)
		if c.Path == "/w/b" {
			break
		}
	}
	f.wantSame(tree, "/w")
}

// Promise: 15
func TestManyNodes(t *testing.T) {
	t.Parallel()
	f := setup(t)
	n := nodes() / 10
	fill(t, f.other, "/t", n)
	f.create("/t/flat")
	for i := range 500 {
		f.create(fmt.Sprintf("/t/flat/%d", i))
	}
	tree := f.tree("/t", cache.Config{})
	want := n + (n+99)/100 + 1 + 501
	if got := tree.View().Len(); got != want {
		t.Errorf("got %d nodes, want %d", got, want)
	}
	view := tree.View()
	f.srv.Drop(f.session())
	f.must(tree.Sync(t.Context()))
	if got := tree.View().Len(); got != want {
		t.Errorf("got %d nodes after a disconnect, want %d", got, want)
	}
	if !slices.Equal(contents(view), contents(tree.View())) {
		t.Error("the contents differ")
	}
}

// A root that a stranger makes while the cache waits for it is not shown until it grants no more than asked for.
func TestRootThatGrantsMoreThanTheACLIsNotShown(t *testing.T) {
	t.Parallel()
	f := setup(t)
	admin := zk.ACL{Perms: zk.PermAdmin, ID: zk.ID{Scheme: "world", ID: "anyone"}}
	readable := append(zk.ReadOnlyACL(), admin)
	tree, err := cache.OpenTree(f.client, "/root", cache.Config{ACL: readable})
	f.must(err)
	defer tree.Close()
	f.must(tree.WaitSynced(t.Context()))
	f.create("/root", "/root/lie")
	for tree.Err() == nil {
		_ = tree.Sync(t.Context())
	}
	if got := contents(tree.View()); len(got) > 0 || !strings.Contains(tree.Err().Error(), "grants more than the ACL") {
		t.Errorf("got %q, %v, want nothing and why", got, tree.Err())
	}
	_, err = f.other.SetACL(t.Context(), "/root", readable, -1)
	f.must(err)
	for tree.Sync(t.Context()) != nil {
	}
	f.wantSame(tree, "/root")
}
