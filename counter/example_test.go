package counter_test

import (
	"context"
	"fmt"

	"github.com/seed-a3166700/turnstile/counter"
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
		visits, err := counter.New(client, "/visits", counter.Config{})
		if err != nil {
			return err
		}
		n, err := visits.Add(ctx, 1)
		if err != nil {
			return err
		}
		fmt.Println("visitor", n)
		return nil
	})
	// Output: visitor 1
}

// No more than five seats are sold, by however many processes.
func ExampleCounter_AddUpTo() {
	connected(func(ctx context.Context, client *zk.Client) error {
		seats, err := counter.New(client, "/seats", counter.Config{Layout: counter.Int})
		if err != nil {
			return err
		}
		for _, wanted := range []int64{3, 3, 2} {
			sold, ok, err := seats.AddUpTo(ctx, wanted, 5)
			if err != nil {
				return err
			}
			fmt.Println(wanted, "wanted:", ok, "- sold so far:", sold)
		}
		return nil
	})
	// Output:
	// 3 wanted: true - sold so far: 3
	// 3 wanted: false - sold so far: 3
	// 2 wanted: true - sold so far: 5
}

func ExampleSequence() {
	connected(func(ctx context.Context, client *zk.Client) error {
		orders, err := counter.NewSequence(client, "/order-ids", counter.SequenceConfig{})
		if err != nil {
			return err
		}
		for range 3 {
			id, err := orders.Next(ctx)
			if err != nil {
				return err
			}
			fmt.Println("order", id)
		}
		return nil
	})
	// Output:
	// order 1
	// order 2
	// order 3
}

func ExampleValue_Watch() {
	connected(func(ctx context.Context, client *zk.Client) error {
		level, err := counter.NewValue(client, "/config/log-level", counter.ValueConfig{})
		if err != nil {
			return err
		}
		if _, err := level.Seed(ctx, []byte("info")); err != nil {
			return err
		}
		for now, err := range level.Watch(ctx) {
			if err != nil {
				return err
			}
			fmt.Printf("log level: %s\n", now.Data)
			if string(now.Data) == "debug" {
				return nil
			}
			if _, _, err := level.CompareAndSet(ctx, now, []byte("debug")); err != nil {
				return err
			}
		}
		return nil
	})
	// Output:
	// log level: info
	// log level: debug
}
