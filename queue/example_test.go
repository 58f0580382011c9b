package queue_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// connected calls example with a client of a server of its own. Your program opens a client of your ensemble.
func connected(example func(ctx context.Context, client *zk.Client) error) {
	err := func(ctx context.Context) error {
		srv, err := zktest.Start()
		if err != nil {
			return err
		}
		defer srv.Close()
		client, err := zk.Open(ctx, zk.Config{Servers: srv.Addr()})
		if err != nil {
			return err
		}
		defer client.Close()
		return example(ctx, client)
	}(context.Background())
	if err != nil {
		fmt.Println(err)
	}
}

func Example() {
	connected(func(ctx context.Context, client *zk.Client) error {
		q, err := queue.New(client, "/queues/mail", queue.Config{})
		if err != nil {
			return err
		}
		for _, to := range []string{"ada", "grace"} {
			if _, err := q.Put(ctx, queue.Message{Body: []byte(to)}); err != nil {
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
	})
	// Output:
	// mail to ada, attempt 1
	// mail to grace, attempt 1
}

// A handler that says what becomes of its items.
func ExampleQueue_Consume() {
	connected(func(ctx context.Context, client *zk.Client) error {
		q, err := queue.New(client, "/queues/mail", queue.Config{})
		if err != nil {
			return err
		}
		messages := []queue.Message{{Body: []byte("ada")}, {Body: []byte("eve"), Priority: 1}}
		if _, err := q.PutBatch(ctx, messages); err != nil {
			return err
		}

		work, stop := context.WithCancel(ctx)
		defer stop()
		err = q.Consume(work, 1, func(_ context.Context, item *queue.Item) error {
			if string(item.Body()) == "eve" {
				stop() // after this item
				return &queue.RejectError{Err: errors.New("no address")}
			}
			fmt.Printf("%s: attempt %d\n", item.Body(), item.Attempt())
			if item.Attempt() == 1 {
				return &queue.RetryError{} // at once; another error: after Config.Backoff
			}
			return nil
		})
		if err != nil {
			return err
		}
		for letter, err := range q.DeadLetters(ctx) {
			if err != nil {
				return err
			}
			fmt.Println("dead:", letter.Reason)
		}
		return nil
	})
	// Output:
	// ada: attempt 1
	// ada: attempt 2
	// dead: no address
}

// Run it on several machines: each item is put once, by one of them.
func ExampleQueue_Repeat() {
	connected(func(ctx context.Context, client *zk.Client) error {
		q, err := queue.New(client, "/queues/jobs", queue.Config{})
		if err != nil {
			return err
		}
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		repeated := make(chan error)
		go func() {
			repeated <- q.Repeat(ctx, queue.Periodic{
				Name:     "report",
				Schedule: every(time.Second), // or a schedule of github.com/robfig/cron/v3
				Message:  func(time.Time) queue.Message { return queue.Message{Body: []byte("the report")} },
			})
		}()
		err = q.Consume(ctx, 1, func(_ context.Context, item *queue.Item) error {
			fmt.Println(string(item.Body()))
			stop()
			return nil
		})
		return errors.Join(err, <-repeated)
	})
	// Output: the report
}

// Orders of one customer are shipped one after the other, those of others at the same time.
func ExampleMessage_group() {
	connected(func(ctx context.Context, client *zk.Client) error {
		q, err := queue.New(client, "/queues/orders", queue.Config{})
		if err != nil {
			return err
		}
		if _, err := q.PutBatch(ctx, []queue.Message{
			{Group: "ann", Body: []byte("order 1")},
			{Group: "bob", Body: []byte("order 2")},
			{Group: "ann", Body: []byte("order 3")}, // waits for order 1
		}); err != nil {
			return err
		}
		for range 3 {
			item, err := q.Take(ctx)
			if err != nil {
				return err
			}
			fmt.Printf("%s: %s\n", item.Group(), item.Body())
			if err := item.Done(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	// Output:
	// ann: order 1
	// bob: order 2
	// ann: order 3
}

// A put that is done together with another write, or not at all.
func ExampleQueue_Put() {
	connected(func(ctx context.Context, client *zk.Client) error {
		q, err := queue.New(client, "/queues/mail", queue.Config{})
		if err != nil {
			return err
		}
		if _, err := client.Create(ctx, "/order", []byte("open"), zk.Persistent); err != nil {
			return err
		}
		message := queue.Message{Body: []byte("your order is on its way")}
		for range 2 { // the second time the order has been sent already
			_, err := q.Put(ctx, message, zk.SetOp("/order", []byte("sent"), 0))
			fmt.Println("put:", err == nil, "changed before:", errors.Is(err, zk.BadVersion))
		}
		n, err := q.Len(ctx)
		fmt.Println(n.Ready, "item")
		return err
	})
	// Output:
	// put: true changed before: false
	// put: false changed before: true
	// 1 item
}

// An operator stops all consumers of a queue, and lets them go on with at most ten items a second.
func ExampleQueue_Pause() {
	connected(func(ctx context.Context, client *zk.Client) error {
		q, err := queue.New(client, "/queues/mail", queue.Config{})
		if err != nil {
			return err
		}
		if _, err := q.Put(ctx, queue.Message{Body: []byte("ada")}); err != nil {
			return err
		}
		if err := q.Pause(ctx, "the mail server is down"); err != nil {
			return err
		}
		_, err = q.TryTake(ctx)
		fmt.Println(errors.Is(err, queue.ErrPaused))

		if err := q.SetRate(ctx, queue.Rate{Items: 10, Per: time.Second}); err != nil {
			return err
		}
		if err := q.Resume(ctx); err != nil {
			return err
		}
		item, err := q.Take(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("%s\n", item.Body())
		return item.Done(ctx)
	})
	// Output:
	// true
	// ada
}
