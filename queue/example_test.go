package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

func Example() {
	srv, err := zktest.Start() // your program names its ensemble
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	ctx := context.Background()
	client, err := zk.Open(ctx, zk.Config{Servers: srv.Addr()})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	q, err := queue.New(client, "/queues/mail", queue.Config{})
	if err != nil {
		log.Fatal(err)
	}
	for _, to := range []string{"ada", "grace"} {
		if _, err := q.Put(ctx, []byte(to), queue.PutOptions{}); err != nil {
			log.Fatal(err)
		}
	}
	for {
		item, err := q.TryTake(ctx)
		if errors.Is(err, queue.ErrEmpty) {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("mail to %s, attempt %d\n", item.Body(), item.Attempt())
		if err := item.Done(ctx); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// mail to ada, attempt 1
	// mail to grace, attempt 1
}
