package zk_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

func Example() {
	srv := startServer() // any ZooKeeper server will do
	defer srv.Close()
	ctx := context.Background()

	client, err := zk.Open(ctx, zk.Config{Servers: srv.Addr(), Timeout: 10 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	sess, err := client.Session(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}

	job, err := sess.Create(ctx, "/job-", []byte("report"), zk.EphemeralSequential)
	fmt.Println(job.Path, err)
	data, stat, err := sess.Get(ctx, job.Path)
	fmt.Printf("%s, version %d, %v\n", data, stat.Version, err)
	_, err = sess.Set(ctx, job.Path, []byte("done"), 7)
	fmt.Println(errors.Is(err, zk.BadVersion), err)
	// Output:
	// /job-0000000000 <nil>
	// report, version 0, <nil>
	// true zk: setData /job-0000000000: version does not match
}

// A Client outlives its sessions. When one has ended, Session returns the next.
func ExampleClient() {
	srv := startServer()
	defer srv.Close()
	ctx := context.Background()

	client, err := zk.Open(ctx, srv.Config(10*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	first, err := client.Session(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	srv.ExpireSession(first.ID()) // as if no server had heard from the client for the session's timeout
	<-first.Context().Done()

	second, err := client.Session(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(first.Err())
	fmt.Println(second.Err(), second.ID() != first.ID())
	// Output:
	// the session expired at the server
	// <nil> true
}

// Work that depends on a session's ephemeral nodes runs under a context that ends with the session.
func ExampleSession() {
	srv, sess := openSession()
	defer srv.Close()
	defer sess.Client().Close()

	ctx, cancel := context.WithCancel(sess.Context())
	defer cancel()
	_, err := sess.Create(ctx, "/worker", nil, zk.Ephemeral)
	fmt.Println(err)

	srv.ExpireSession(sess.ID()) // the server removes the node
	<-ctx.Done()
	fmt.Println(context.Cause(ctx))
	// Output:
	// <nil>
	// the session expired at the server
}

// A one-shot watch comes with the read that it extends, so that no change falls between the two.
func ExampleWatch() {
	srv, sess := openSession()
	defer srv.Close()
	defer sess.Client().Close()
	ctx := context.Background()

	_, found, watch, err := sess.ExistsW(ctx, "/ready")
	fmt.Println(found, err)
	if err != nil {
		return
	}
	defer watch.Close()
	if _, err := sess.Create(ctx, "/ready", nil, zk.Persistent); err != nil {
		fmt.Println(err)
		return
	}
	event, err := watch.Next(ctx)
	fmt.Println(event.Type, event.Path, err)
	// Output:
	// false <nil>
	// created /ready <nil>
}

// A recursive watch is persistent: it yields every change until it is closed.
func ExampleSession_WatchRecursive() {
	srv, sess := openSession()
	defer srv.Close()
	defer sess.Client().Close()
	ctx := context.Background()

	watch, err := sess.WatchRecursive(ctx, "/app")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer watch.Close()
	batch := sess.Batch()
	batch.Create("/app", nil, zk.Persistent)
	batch.Create("/app/config", []byte("v1"), zk.Persistent)
	batch.Set("/app/config", []byte("v2"), 0)
	batch.Send()
	for range 3 {
		event, err := watch.Next(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(event.Type, event.Path)
	}
	// Output:
	// created /app
	// created /app/config
	// data changed /app/config
}

// All turns a watch into a loop, which ends when the watch is closed.
func ExampleWatch_All() {
	srv, sess := openSession()
	defer srv.Close()
	defer sess.Client().Close()
	ctx := context.Background()

	watch, err := sess.WatchRecursive(ctx, "/config")
	if err != nil {
		fmt.Println(err)
		return
	}
	batch := sess.Batch()
	batch.Create("/config", []byte("v1"), zk.Persistent)
	batch.Set("/config", []byte("v2"), 0)
	batch.Delete("/config", 1)
	batch.Send()
	for event, err := range watch.All(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(event.Type, event.Path)
		if event.Type == zk.EventDeleted {
			watch.Close()
		}
	}
	// Output:
	// created /config
	// data changed /config
	// deleted /config
}

// CreateAll makes the parents that are missing, and DeleteAll deletes what is below a node, too.
func ExampleClient_CreateAll() {
	srv, sess := openSession()
	defer srv.Close()
	client := sess.Client()
	defer client.Close()
	ctx := context.Background()

	order := zk.Node{Path: "/shop/orders/7", Data: []byte("3 apples")}
	created, err := client.CreateAll(ctx, order, zk.Parents{Mode: zk.Container})
	fmt.Println(created.Path, err)
	data, _, err := client.Get(ctx, "/shop/orders/7")
	fmt.Println(string(data), err)
	deleted, err := client.DeleteAll(ctx, "/shop")
	fmt.Println(deleted, err)
	// Output:
	// /shop/orders/7 <nil>
	// 3 apples <nil>
	// 3 <nil>
}

// DeleteAll says how many nodes it has deleted, also if it fails.
func ExampleClient_DeleteAll() {
	srv, sess := openSession()
	defer srv.Close()
	client := sess.Client()
	defer client.Close()
	ctx := context.Background()

	deleted, err := client.DeleteAll(ctx, "/none")
	fmt.Println(deleted, err)
	deleted, err = client.DeleteAll(ctx, "/zookeeper")
	fmt.Println(deleted, errors.Is(err, zk.BadArguments))
	// Output:
	// 0 <nil>
	// 0 true
}

// A client that follows the ensemble's configuration goes on when all servers that it was told of have been replaced.
func ExampleClient_FollowConfig() {
	srv := startServer()
	defer srv.Close()
	client, err := zk.Open(context.Background(), srv.Config(10*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- client.FollowConfig(ctx) }()
	// The program works with the client.
	stop()
	fmt.Println(errors.Is(<-done, context.Canceled))
	// Output:
	// true
}

// Several requests leave in one write. The server executes them in order, each whether or not the others succeed.
func ExampleBatch() {
	srv, sess := openSession()
	defer srv.Close()
	defer sess.Client().Close()
	ctx := context.Background()

	batch := sess.Batch()
	batch.Create("/jobs", nil, zk.Persistent)
	created := batch.Create("/jobs/job-", []byte("report"), zk.EphemeralSequential)
	listed := batch.Children("/jobs")
	batch.Send()

	job, err := created.Get(ctx)
	fmt.Println(job.Path, err)
	jobs, err := listed.Get(ctx)
	fmt.Println(jobs.Names, err)
	// Output:
	// /jobs/job-0000000000 <nil>
	// [job-0000000000] <nil>
}

// Either all operations are applied or none.
func ExampleSession_Multi() {
	srv, sess := openSession()
	defer srv.Close()
	defer sess.Client().Close()
	ctx := context.Background()

	_, err := sess.Multi(ctx,
		zk.CreateOp("/stock", []byte("10"), zk.Persistent),
		zk.CreateOp("/orders", nil, zk.Persistent),
	)
	fmt.Println(err)
	_, err = sess.Multi(ctx,
		zk.SetOp("/stock", []byte("9"), 0),
		zk.CheckOp("/customer", -1), // does not exist
	)
	fmt.Println(err)
	if failed, ok := errors.AsType[*zk.MultiError](err); ok {
		fmt.Println(failed.Index, errors.Is(err, zk.NoNode))
	}
	stock, _, err := sess.Get(ctx, "/stock")
	fmt.Printf("%s %v\n", stock, err)
	// Output:
	// <nil>
	// zk: multi: operation 1, check /customer: node does not exist
	// 1 true
	// 10 <nil>
}

// Only the outcome Unknown leaves open whether the server has executed the request.
func ExampleOutcomeOf() {
	srv, sess := openSession()
	defer srv.Close()
	defer sess.Client().Close()
	ctx, cancel := context.WithCancel(context.Background())

	srv.Control(func(r zktest.Request) zktest.Fault {
		if r.Op == zktest.OpCreate && r.Nth == 1 {
			return zktest.DropReply // the server executes the request, and the connection breaks
		}
		return zktest.Pass
	})
	_, err := sess.Create(ctx, "/order", nil, zk.Persistent)
	fmt.Println(zk.OutcomeOf(err), errors.Is(err, zk.ErrConnectionLost))
	_, err = sess.Create(ctx, "/order", nil, zk.Persistent)
	fmt.Println(zk.OutcomeOf(err), errors.Is(err, zk.NodeExists))
	cancel()
	err = sess.Delete(ctx, "/order", -1)
	fmt.Println(zk.OutcomeOf(err), errors.Is(err, context.Canceled))
	// Output:
	// unknown true
	// refused true
	// not sent true
}

// startServer starts a ZooKeeper server in this process.
func startServer() *zktest.Server {
	srv, err := zktest.Start()
	if err != nil {
		log.Fatal(err)
	}
	return srv
}

// openSession starts a server and opens a session with it.
func openSession() (*zktest.Server, *zk.Session) {
	ctx := context.Background()
	srv := startServer()
	client, err := zk.Open(ctx, srv.Config(10*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	sess, err := client.Session(ctx)
	if err != nil {
		log.Fatal(err)
	}
	return srv, sess
}
