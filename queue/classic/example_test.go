package classic_test

import (
	"context"
	"fmt"

	"github.com/seed-a3166700/turnstile/queue/classic"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// A queue that Curator's DistributedQueue in Java can put to and take from.
func Example() {
	if err := example(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// mail to ada
	// mail to grace
}

func example(ctx context.Context) error {
	srv, err := zktest.Start() // your program names its ensemble
	if err != nil {
		return err
	}
	defer srv.Close()
	client, err := zk.Open(ctx, zk.Config{Servers: srv.Addr()})
	if err != nil {
		return err
	}
	defer client.Close()

	q, err := classic.NewCurator(client, "/queues/mail", classic.Config{LockPath: "/queues/mail-locks"})
	if err != nil {
		return err
	}
	for _, to := range []string{"ada", "grace"} {
		if err := q.Put(ctx, []byte(to)); err != nil {
			return err
		}
	}
	for range 2 {
		item, err := q.Take(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("mail to %s\n", item.Body())
		if err := item.Done(ctx); err != nil {
			return err
		}
	}
	return nil
}
