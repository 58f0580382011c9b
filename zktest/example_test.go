package zktest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// The server applies a request, but its reply is lost. The client reports that the outcome is unknown. A test calls
// zktest.Run(t) instead of Start and Close, and srv.Session(t, …) instead of Open and Session.
func Example() {
	srv, sess := begin()
	defer srv.Close()
	defer sess.Client().Close()

	srv.Control(func(r zktest.Request) zktest.Fault {
		if r.Op == zktest.OpCreate && r.Nth == 1 {
			return zktest.DropReply
		}
		return zktest.Pass
	})
	ctx := context.Background()
	_, err := sess.Create(ctx, "/job", nil, zk.Persistent)
	fmt.Println("unknown:", zk.OutcomeOf(err) == zk.Unknown)
	_, err = sess.Create(ctx, "/job", nil, zk.Persistent)
	fmt.Println("exists:", errors.Is(err, zk.NodeExists))
	// Output:
	// unknown: true
	// exists: true
}

// A session expires as if its client had been silent for too long.
func ExampleServer_ExpireSession() {
	srv, sess := begin()
	defer srv.Close()
	defer sess.Client().Close()

	srv.ExpireSession(sess.ID())
	<-sess.Context().Done()
	fmt.Println(errors.Is(context.Cause(sess.Context()), zk.ErrExpired))
	// Output: true
}

// The server of a test counts the requests of its clients.
func ExampleLink_Traffic() {
	srv, sess := begin()
	defer srv.Close()
	defer sess.Client().Close()

	_, err := sess.Create(context.Background(), "/job", nil, zk.Persistent)
	fmt.Println(err, srv.Traffic().Requests[zktest.OpCreate])
	// Output: <nil> 1
}

// A Net replaces the real network, also in a testing/synctest bubble.
func ExampleNet() {
	var network zktest.Net
	srv, err := zktest.Start(zktest.On(&network))
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()

	fmt.Println(srv.Addr())
	network.Cut()
	_, err = network.Dial(context.Background(), "tcp", srv.Addr())
	fmt.Println(err)
	// Output:
	// 10.0.0.1:2181
	// dial tcp 127.0.0.1:1025->10.0.0.1:2181: connection refused
}

// begin starts a server and opens a session.
func begin() (*zktest.Server, *zk.Session) {
	ctx := context.Background()
	srv, err := zktest.Start()
	if err != nil {
		log.Fatal(err)
	}
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
