package cache_test

// What caches hold, and what they tell of changes.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/cache"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// timeout is the session timeout of the tests.
const timeout = 20 * time.Second

// fixture is a server, a client whose caches are tested, and a session of another client that changes nodes.
type fixture struct {
	*testing.T
	srv    *zktest.Server
	client *zk.Client
	other  *zk.Session
}

func setup(t *testing.T, opts ...zktest.Option) *fixture {
	t.Helper()
	srv := zktest.Run(t, opts...)
	f := &fixture{T: t, srv: srv, client: srv.Client(t, timeout), other: srv.Session(t, timeout)}
	return f
}

func (f *fixture) create(paths ...string) {
	f.Helper()
	for _, path := range paths {
		if _, err := f.other.Create(f.Context(), path, []byte("data of "+path), zk.Persistent); err != nil {
			f.Fatal(err)
		}
	}
}

func (f *fixture) set(path, data string) {
	f.Helper()
	if _, err := f.other.Set(f.Context(), path, []byte(data), -1); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) delete(paths ...string) {
	f.Helper()
	for _, path := range paths {
		if err := f.other.Delete(f.Context(), path, -1); err != nil {
			f.Fatal(err)
		}
	}
}

func (f *fixture) tree(path string, cfg cache.Config) *cache.Tree {
	f.Helper()
	tree, err := cache.OpenTree(f.client, path, cfg)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(tree.Close)
	f.must(tree.WaitSynced(f.Context()))
	return tree
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// contents returns path=data of all nodes.
func contents(view *cache.View) []string {
	var all []string
	for e := range view.All() {
		all = append(all, e.Path+"="+string(e.Data))
	}
	return all
}

// onServer returns what a cache of the tree at path should contain.
func (f *fixture) onServer(path string) []string {
	f.Helper()
	var all []string
	var visit func(path string)
	visit = func(path string) {
		data, _, err := f.other.Get(f.Context(), path)
		if errors.Is(err, zk.NoNode) {
			return
		}
		f.must(err)
		all = append(all, path+"="+string(data))
		names, _, err := f.other.Children(f.Context(), path)
		f.must(err)
		for _, name := range names {
			visit(strings.TrimSuffix(path, "/") + "/" + name)
		}
	}
	visit(path)
	return all
}

// wantSame fails unless the cache has what the server has, once it is in sync.
func (f *fixture) wantSame(tree *cache.Tree, path string) {
	f.Helper()
	f.must(tree.Sync(f.Context()))
	got, want := contents(tree.View()), f.onServer(path)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		f.Fatalf("got %d nodes %.2000q, want %d nodes %.2000q", len(got), got, len(want), want)
	}
}

// Promise: 15
func TestTreeHasWhatTheServerHas(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/app", "/app/a", "/app/b", "/app/b/c", "/app/b/c/d", "/app-not", "/ap")
	tree := f.tree("/app", cache.Config{})
	f.wantSame(tree, "/app")

	f.create("/app/b/e", "/app/f", "/app/f/g")
	f.set("/app/a", "new")
	f.delete("/app/b/c/d", "/app/b/c")
	f.wantSame(tree, "/app")

	e, ok := tree.Get("/app/a")
	if !ok || string(e.Data) != "new" || e.Version != 1 || e.Size != 3 || e.Mzxid <= e.Czxid || e.Mtime < e.Ctime {
		t.Errorf("got %+v, %t", e, ok)
	}
	for _, path := range []string{"/", "/app-not", "/ap", "/app/", "/app/b/c", "/appxa", "app", ""} {
		if e, ok := tree.Get(path); ok {
			t.Errorf("got %+v at %q, which is not in the cache", e, path)
		}
	}
	var names []string
	for e := range tree.Children("/app") {
		names = append(names, e.Path)
	}
	if got := strings.Join(names, " "); got != "/app/a /app/b /app/f" {
		t.Errorf("got children %q", got)
	}
	if !tree.View().Exact() || tree.View().Len() != 6 {
		t.Errorf("got exact %t, %d nodes, want true, 6", tree.View().Exact(), tree.View().Len())
	}
}

// Promise: 15
func TestTreeAtTheRoot(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/a", "/a/b")
	tree := f.tree("/", cache.Config{Exclude: func(path string) bool { return path == "/zookeeper" }})
	if got := contents(tree.View()); !slices.Equal(got, []string{"/=", "/a=data of /a", "/a/b=data of /a/b"}) {
		t.Errorf("got %q", got)
	}
	f.create("/c")
	f.must(tree.Sync(t.Context()))
	if _, ok := tree.Get("/c"); !ok {
		t.Error("/c is missing")
	}
}

// Promise: 15
func TestNodeFollowsOneNode(t *testing.T) {
	t.Parallel()
	f := setup(t)
	node, err := cache.OpenNode(f.client, "/n", cache.Config{})
	f.must(err)
	defer node.Close()
	f.must(node.WaitSynced(t.Context()))
	if e, ok := node.Get(); ok {
		t.Errorf("got %+v before the node exists", e)
	}
	f.create("/n", "/n/child")
	f.must(node.Sync(t.Context()))
	if e, ok := node.Get(); !ok || string(e.Data) != "data of /n" {
		t.Errorf("got %+v, %t", e, ok)
	}
	if n := node.View().Len(); n != 1 {
		t.Errorf("got %d nodes, want 1", n)
	}
	f.delete("/n/child", "/n")
	f.must(node.Sync(t.Context()))
	if e, ok := node.Get(); ok {
		t.Errorf("got %+v after the node was deleted", e)
	}
}

// Promise: 15
func TestChildrenFollowsOneLevel(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/p", "/p/a", "/p/a/deep")
	children, err := cache.OpenChildren(f.client, "/p", cache.Config{})
	f.must(err)
	defer children.Close()
	f.must(children.WaitSynced(t.Context()))
	f.create("/p/b", "/p/b/deep")
	f.must(children.Sync(t.Context()))
	var got []string
	for e := range children.All() {
		got = append(got, e.Path)
	}
	if !slices.Equal(got, []string{"/p/a", "/p/b"}) || children.View().Len() != 3 {
		t.Errorf("got %q and %d nodes", got, children.View().Len())
	}
	if e, ok := children.Get("b"); !ok || e.Path != "/p/b" {
		t.Errorf("got %+v, %t", e, ok)
	}
}

// Promise: 15
func TestConfigLimitsWhatIsKept(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/t", "/t/a", "/t/a/b", "/t/a/b/c", "/t/skip", "/t/skip/x")
	tree := f.tree("/t", cache.Config{
		NoData: true, MaxDepth: 2, Exclude: func(path string) bool { return path == "/t/skip" },
	})
	check := func(want string) {
		t.Helper()
		f.must(tree.Sync(t.Context()))
		var got []string
		for e := range tree.All() {
			got = append(got, e.Path)
			if e.Data != nil || e.Size != len("data of "+e.Path) {
				t.Errorf("%s: got data %q, size %d", e.Path, e.Data, e.Size)
			}
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("got %q, want %q", s, want)
		}
	}
	check("/t /t/a /t/a/b")
	f.create("/t/skip/y", "/t/a/b/d", "/t/a/e", "/t/a/e/f")
	check("/t /t/a /t/a/b /t/a/e")
	f.set("/t/a/e", "")
	f.must(tree.Sync(t.Context()))
	if e, ok := tree.Get("/t/a/e"); !ok || e.Data != nil || e.Size != 0 {
		t.Errorf("got %+v, %t; want no data", e, ok)
	}
}

// Promise: 15
func TestRootThatComesAndGoes(t *testing.T) {
	t.Parallel()
	f := setup(t)
	tree := f.tree("/later", cache.Config{})
	if n := tree.View().Len(); n != 0 {
		t.Fatalf("got %d nodes, want none", n)
	}
	for range 3 {
		f.create("/later", "/later/a", "/later/a/b")
		f.wantSame(tree, "/later")
		f.delete("/later/a/b", "/later/a", "/later")
		f.wantSame(tree, "/later")
	}
}

// Promise: 15
func TestAViewNeverChanges(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/v", "/v/a", "/v/b")
	tree := f.tree("/v", cache.Config{})
	view := tree.View()
	before := contents(view)
	f.set("/v/a", "new")
	f.delete("/v/b")
	f.create("/v/c")
	f.must(tree.Sync(t.Context()))
	if got := contents(view); !slices.Equal(got, before) {
		t.Errorf("got %q, want %q", got, before)
	}
	if tree.View().Zxid() <= view.Zxid() {
		t.Errorf("got zxid %d after %d", tree.View().Zxid(), view.Zxid())
	}
}

// Promise: 15
func TestDataOfAnEntryIsACopy(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/d")
	tree := f.tree("/d", cache.Config{})
	e, _ := tree.Get("/d")
	clear(e.Data)
	if e, _ := tree.Get("/d"); string(e.Data) != "data of /d" {
		t.Errorf("got %q", e.Data)
	}
}

// collect reads changes until stop returns true for one.
func (f *fixture) collect(
	ctx context.Context, changes func(func(cache.Change, error) bool), stop func(cache.Change) bool,
) []string {
	f.Helper()
	var got []string
	for c, err := range changes {
		if err != nil {
			f.Fatalf("after %q: %v", got, err)
		}
		got = append(got, c.Kind.String()+" "+c.Path+" "+string(c.Before.Data)+">"+string(c.After.Data))
		if stop(c) {
			return got
		}
	}
	return got
}

// Promise: 15
func TestChangesTellTheDifferences(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/c", "/c/a", "/c/b", "/c/r")
	tree := f.tree("/c", cache.Config{})
	step := 0
	got := f.collect(t.Context(), tree.Changes(t.Context()), func(c cache.Change) bool {
		switch step++; step {
		case 4:
			f.set("/c/a", "1")
			f.set("/c/a", "2")
			f.delete("/c/b")
			f.delete("/c/r")
			f.create("/c/r", "/c/z")
			f.must(tree.Sync(t.Context()))
		case 8:
			return true
		}
		return false
	})
	want := []string{
		"created /c >data of /c", "created /c/a >data of /c/a", "created /c/b >data of /c/b",
		"created /c/r >data of /c/r",
		"changed /c/a data of /c/a>2", "deleted /c/b data of /c/b>", "replaced /c/r data of /c/r>data of /c/r",
		"created /c/z >data of /c/z",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// Promise: 15
func TestASlowReaderGetsTheLastState(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/s", "/s/n")
	tree := f.tree("/s", cache.Config{})
	state := map[string]string{}
	for c, err := range tree.Changes(t.Context()) {
		f.must(err)
		if c.Kind == cache.Deleted {
			delete(state, c.Path)
		} else {
			state[c.Path] = string(c.After.Data)
		}
		if c.Path == "/s/n" && c.Kind == cache.Created { // the reader stops here, while a lot happens
			for i := range 200 {
				f.set("/s/n", strconv.Itoa(i))
				path := fmt.Sprintf("/s/x%d", i)
				f.create(path)
				if i%2 == 0 {
					f.delete(path)
				}
			}
			f.must(tree.Sync(t.Context()))
		}
		if c.Path == "/s/x99" {
			break
		}
	}
	want := map[string]string{}
	for e := range tree.All() {
		want[e.Path] = string(e.Data)
	}
	if !maps.Equal(state, want) {
		t.Errorf("got %d nodes, want %d", len(state), len(want))
	}
}

// Promise: 15
func TestCloseLeavesNothing(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/x", "/x/a")
	tree := f.tree("/x", cache.Config{})
	ended := make(chan error, 1)
	go func() {
		for _, err := range tree.Changes(t.Context()) {
			if err != nil {
				ended <- err
			}
		}
	}()
	tree.Close()
	tree.Close()
	if err := <-ended; !errors.Is(err, cache.ErrClosed) {
		t.Errorf("Changes: got %v, want ErrClosed", err)
	}
	if err := tree.Sync(t.Context()); !errors.Is(err, cache.ErrClosed) {
		t.Errorf("Sync: got %v, want ErrClosed", err)
	}
	if err := tree.Err(); !errors.Is(err, cache.ErrClosed) {
		t.Errorf("Err: got %v, want ErrClosed", err)
	}
	if tree.Synced().Current || tree.View().Len() != 2 {
		t.Errorf("got current %t, %d nodes", tree.Synced().Current, tree.View().Len())
	}
	f.srv.NoWatches(t)
}

// Promise: 15
func TestCloseBeforeTheFirstSynchronization(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.srv.Cut()
	tree, err := cache.OpenTree(f.client, "/x", cache.Config{})
	f.must(err)
	tree.Close()
	if err := tree.WaitSynced(t.Context()); !errors.Is(err, cache.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
	f.srv.Heal()
	f.srv.NoWatches(t)
}

// Promise: 15
func TestWaitSyncedEndsWithItsContext(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.srv.Cut()
	tree, err := cache.OpenTree(f.client, "/x", cache.Config{})
	f.must(err)
	defer tree.Close()
	mine := errors.New("mine")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(mine)
	if err := tree.WaitSynced(ctx); !errors.Is(err, mine) {
		t.Errorf("WaitSynced: got %v, want the cause", err)
	}
	for _, err := range tree.Changes(ctx) {
		if !errors.Is(err, mine) {
			t.Errorf("Changes: got %v, want the cause", err)
		}
	}
	if s := tree.Synced(); s.Current || s.Zxid != 0 || s.Behind <= 0 {
		t.Errorf("got %+v", s)
	}
}

func TestInvalidConfigurations(t *testing.T) {
	t.Parallel()
	f := setup(t)
	if _, err := cache.OpenTree(nil, "/x", cache.Config{}); err == nil {
		t.Error("a nil client is accepted")
	}
	for _, path := range []string{"", "x", "/x/", "/x//y"} {
		if _, err := cache.OpenTree(f.client, path, cache.Config{}); !errors.Is(err, zk.BadArguments) {
			t.Errorf("path %q: got %v, want BadArguments", path, err)
		}
	}
	if _, err := cache.OpenTree(f.client, "/x", cache.Config{MaxDepth: -1}); err == nil {
		t.Error("a negative depth is accepted")
	}
	if _, err := cache.OpenChildren(f.client, "x", cache.Config{}); !errors.Is(err, zk.BadArguments) {
		t.Errorf("children: got %v, want BadArguments", err)
	}
	if _, err := cache.OpenNode(f.client, "x", cache.Config{}); !errors.Is(err, zk.BadArguments) {
		t.Errorf("node: got %v, want BadArguments", err)
	}
}

// Promise: 15
func TestTheClosedClientEndsTheCache(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("/x")
	tree := f.tree("/x", cache.Config{})
	f.must(f.client.Close())
	for _, err := range tree.Changes(t.Context()) {
		if err != nil && !errors.Is(err, zk.ErrClosed) {
			t.Errorf("got %v, want zk.ErrClosed", err)
		}
	}
}
