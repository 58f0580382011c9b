package queue_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

func Example() {
	if err := example(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// mail to ada, attempt 1
	// mail to grace, attempt 1
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

	q, err := queue.New(client, "/queues/mail", queue.Config{})
	if err != nil {
		return err
	}
	for _, to := range []string{"ada", "grace"} {
		if _, err := q.Put(ctx, []byte(to), queue.PutOptions{}); err != nil {
			return err
		}
	}
	for {
		item, err := q.TryTake(ctx)
		if errors.Is(err, queue.ErrEmpty) {
			return nil
		}
		if err != nil {
			return err
		}
		fmt.Printf("mail to %s, attempt %d\n", item.Body(), item.Attempt())
		if err := item.Done(ctx); err != nil {
			return err
		}
	}
}
