package zk_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

func Example() {
	srv, err := zktest.Start() // any ZooKeeper will do
	if err != nil {
		fmt.Println(err)
		return
	}
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

	// Several requests in one write, answered in order.
	batch := sess.Batch()
	batch.Create("/jobs", nil, zk.Persistent)
	created := batch.Create("/jobs/job-", []byte("report"), zk.EphemeralSequential)
	watched := batch.GetW("/jobs/job-0000000000")
	batch.Send()
	job, err := created.Get(ctx)
	fmt.Println(job.Path, err)
	data, err := watched.Get(ctx)
	fmt.Printf("%s %v\n", data.Data, err)

	// A node changes only if it is as expected, and whoever watches it hears of it.
	_, err = sess.Set(ctx, job.Path, []byte("done"), 7)
	fmt.Println(errors.Is(err, zk.BadVersion), zk.OutcomeOf(err))
	_, err = sess.Multi(ctx, zk.Check("/jobs", 0), zk.SetData(job.Path, []byte("done"), 0))
	fmt.Println(err)
	event, err := data.Watch.Next(ctx)
	fmt.Println(event.Type, event.Path, err)
	// Output:
	// /jobs/job-0000000000 <nil>
	// report <nil>
	// true refused
	// <nil>
	// data changed /jobs/job-0000000000 <nil>
}
