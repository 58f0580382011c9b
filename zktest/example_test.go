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

// A reply is lost after the server has applied the request: the client cannot know, and says so. In a test, zktest.Run(t)
// stands in the place of Start and Close, and srv.Session(t, …) in that of Open and Session.
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

// A session ends as if nobody had heard from its client.
func ExampleServer_ExpireSession() {
	srv, sess := begin()
	defer srv.Close()
	defer sess.Client().Close()

	srv.ExpireSession(sess.ID())
	<-sess.Context().Done()
	fmt.Println(errors.Is(context.Cause(sess.Context()), zk.ErrExpired))
	// Output: true
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
