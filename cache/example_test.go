package cache_test

// How the package is used.

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-a3166700/turnstile/cache"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// start returns a client of a new server, with a few nodes.
func start(ctx context.Context) (client *zk.Client, stop func()) {
	srv, err := zktest.Start()
	check(err)
	client, err = zk.Open(ctx, srv.Config(10*time.Second))
	check(err)
	sess, err := client.Session(ctx)
	check(err)
	for _, path := range []string{"/config", "/config/limit", "/config/size"} {
		_, err = sess.Create(ctx, path, []byte("10"), zk.Persistent)
		check(err)
	}
	return client, func() {
		check(client.Close())
		check(srv.Close())
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func ExampleOpenTree() {
	ctx := context.Background()
	client, stop := start(ctx)
	defer stop()

	tree, err := cache.OpenTree(client, "/config", cache.Config{})
	check(err)
	defer tree.Close()
	check(tree.WaitSynced(ctx))
	view := tree.View() // what is read from it fits together
	for e := range view.Children("/config") {
		fmt.Printf("%s = %s\n", e.Path, e.Data)
	}
	// Output:
	// /config/limit = 10
	// /config/size = 10
}

func ExampleTree_Changes() {
	ctx := context.Background()
	client, stop := start(ctx)
	defer stop()

	tree, err := cache.OpenTree(client, "/config", cache.Config{})
	check(err)
	defer tree.Close()
	for c, err := range tree.Changes(ctx) { // first what there is, and then what changes
		check(err)
		fmt.Printf("%v %s %s\n", c.Kind, c.Path, c.After.Data)
		if c.Path == "/config/size" && c.Kind == cache.Created {
			sess, err := client.Session(ctx)
			check(err)
			_, err = sess.Set(ctx, "/config/limit", []byte("20"), -1)
			check(err)
		}
		if c.Kind == cache.Changed {
			break
		}
	}
	// Output:
	// created /config 10
	// created /config/limit 10
	// created /config/size 10
	// changed /config/limit 20
}

func ExampleTree_Sync() {
	ctx := context.Background()
	client, stop := start(ctx)
	defer stop()

	limit, err := cache.OpenNode(client, "/config/limit", cache.Config{})
	check(err)
	defer limit.Close()
	sess, err := client.Session(ctx)
	check(err)
	_, err = sess.Set(ctx, "/config/limit", []byte("30"), -1)
	check(err)
	check(limit.Sync(ctx)) // now the cache has the write
	e, ok := limit.Get()
	fmt.Printf("%s %t\n", e.Data, ok)
	// Output: 30 true
}
