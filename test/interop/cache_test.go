package interop_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/cache"
	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// A server before 3.9 stores one mode for each path and connection, so that a one-shot watch takes the place of the
// cache's.
//
// Promise: 15
func TestCacheSurvivesAOneShotWatchOnItsPath(t *testing.T) {
	t.Parallel()
	link := zktest.Proxy(t, apacheServer(t))
	client := link.Client(t, 20*time.Second)
	sess, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/c", "/c/a"} {
		if _, err := sess.Create(t.Context(), path, nil, zk.Persistent); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := cache.OpenTree(client, "/c", cache.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	if err := tree.WaitSynced(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		_, _, w, err := sess.GetW(t.Context(), "/c")
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			w.Close()
		} else if _, err := sess.Set(t.Context(), "/c", nil, -1); err != nil {
			t.Fatal(err)
		}
		path, data := fmt.Sprintf("/c/%d", i), strconv.Itoa(i)
		if _, err := sess.Create(t.Context(), path, nil, zk.Persistent); err != nil {
			t.Fatal(err)
		}
		if _, err := sess.Set(t.Context(), "/c/a", []byte(data), -1); err != nil {
			t.Fatal(err)
		}
		if err := tree.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if e, _ := tree.Get("/c/a"); string(e.Data) != data {
			t.Errorf("got %q, want %q", e.Data, data)
		}
		if _, ok := tree.Get(path); !ok {
			t.Errorf("%s is missing", path)
		}
	}
	tree.Close()
	link.NoWatches(t)
}

// TestCachesOfOnePathDoNotDisturbEachOther: they have persistent watches of different modes.
//
// Promise: 15
func TestCachesOfOnePathDoNotDisturbEachOther(t *testing.T) {
	t.Parallel()
	link := zktest.Proxy(t, apacheServer(t))
	client := link.Client(t, 20*time.Second)
	sess, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/c", "/c/a"} {
		if _, err := sess.Create(t.Context(), path, nil, zk.Persistent); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 4 {
		var tree *cache.Tree
		var node *cache.Node
		open := []func() error{
			func() (err error) { tree, err = cache.OpenTree(client, "/c", cache.Config{}); return err },
			func() (err error) { node, err = cache.OpenNode(client, "/c", cache.Config{}); return err },
		}
		for k := range open { // in both orders
			if err := open[(i+k)%2](); err != nil {
				t.Fatal(err)
			}
			if tree != nil && tree.WaitSynced(t.Context()) != nil {
				t.Fatal(tree.Err())
			}
			if node != nil && node.WaitSynced(t.Context()) != nil {
				t.Fatal(node.Err())
			}
		}
		data := strconv.Itoa(i)
		for _, path := range []string{"/c", "/c/a"} {
			if _, err := sess.Set(t.Context(), path, []byte(data), -1); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(tree.Sync(t.Context()), node.Sync(t.Context())); err != nil {
			t.Fatal(err)
		}
		mine, _ := node.Get()
		root, _ := tree.Get("/c")
		below, _ := tree.Get("/c/a")
		if string(mine.Data) != data || string(root.Data) != data || string(below.Data) != data {
			t.Errorf("got %q, %q and %q, want %q", mine.Data, root.Data, below.Data, data)
		}
		tree.Close()
		node.Close()
	}
	link.NoWatches(t)
}

// TestCacheFollowsApacheZooKeeper covers what servers do differently: events without zxids, multiRead, and the removal
// of persistent watches.
//
// Promise: 15
func TestCacheFollowsApacheZooKeeper(t *testing.T) {
	t.Parallel()
	link := zktest.Proxy(t, apacheServer(t))
	client, other := link.Client(t, 20*time.Second), link.Session(t, 20*time.Second)
	tree, err := cache.OpenTree(client, "/t", cache.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	want := []string{"/t=0"}
	if _, err := other.Create(t.Context(), "/t", []byte("0"), zk.Persistent); err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		path, data := fmt.Sprintf("/t/%03d", i), strconv.Itoa(i)
		if _, err := other.Create(t.Context(), path, []byte(data), zk.Ephemeral); err != nil {
			t.Fatal(err)
		}
		switch i % 100 {
		case 30:
			link.Drop()
		case 60:
			sess, err := client.Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			link.ExpireSession(sess.ID())
		}
		for { // other's connection was dropped, too
			err := other.Delete(t.Context(), path, -1)
			if errors.Is(err, zk.ErrConnectionLost) {
				continue
			}
			if err != nil && !errors.Is(err, zk.NoNode) {
				t.Fatal(err)
			}
			break
		}
		if i%3 == 0 {
			if _, err := other.Create(t.Context(), path, []byte(data+" again"), zk.Persistent); err != nil {
				t.Fatal(err)
			}
			want = append(want, path+"="+data+" again")
		}
	}
	if err := tree.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for e := range tree.All() {
		got = append(got, e.Path+"="+string(e.Data))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %d nodes %q, want %d", len(got), got, len(want))
	}
	if v := tree.View(); !v.Exact() || v.Zxid() == 0 {
		t.Errorf("got exact %t at %d", v.Exact(), v.Zxid())
	}
	tree.Close()
	link.NoWatches(t)
}

// apacheServer starts Apache ZooKeeper and returns its address.
func apacheServer(t *testing.T) string {
	t.Helper()
	zoo := peer.ZooKeeper(t, peer.Options{Properties: map[string]string{"zookeeper.forceSync": "no"}, Heap: "256m"})
	return zoo.ConnectString()
}
