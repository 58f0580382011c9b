package barrier_test

// Examples.

import (
	"context"
	"fmt"
	"sync"

	"github.com/seed-a3166700/turnstile/barrier"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

func Example() {
	srv, client := serve()
	defer srv.Close()
	defer client.Close()
	ctx := context.Background()

	d, err := barrier.NewDouble(client, "/app/import", 2, barrier.Config{})
	if err != nil {
		panic(err)
	}
	var parties sync.WaitGroup
	for range 2 { // as a rule in two processes
		parties.Go(func() {
			m, err := d.Enter(ctx)
			if err != nil {
				panic(err)
			}
			fmt.Println("both are here")
			if err := m.Leave(ctx); err != nil {
				panic(err)
			}
		})
	}
	parties.Wait()
	// Output:
	// both are here
	// both are here
}

func ExampleBarrier() {
	srv, client := serve()
	defer srv.Close()
	defer client.Close()
	ctx := context.Background()

	b, err := barrier.NewBarrier(client, "/app/paused", barrier.Config{})
	if err != nil {
		panic(err)
	}
	if err := b.Set(ctx); err != nil {
		panic(err)
	}
	go func() { _ = b.Remove(ctx) }()
	if err := b.Wait(ctx); err != nil {
		panic(err)
	}
	fmt.Println("go on")
	// Output: go on
}

func ExampleRounds() {
	srv, client := serve()
	defer srv.Close()
	defer client.Close()
	ctx := context.Background()

	r, err := barrier.NewRounds(client, "/app/training", barrier.RoundsConfig{Parties: 2, OnLoss: barrier.Continue})
	if err != nil {
		panic(err)
	}
	var parties sync.WaitGroup
	for i := range 2 {
		parties.Go(func() {
			p, err := r.Join(ctx)
			if err != nil {
				panic(err)
			}
			defer func() { _ = p.Leave(ctx) }()
			for range 3 {
				round, err := p.Arrive(ctx) // after the work of the round
				if err != nil {
					panic(err)
				}
				if i == 0 {
					fmt.Println("round", round, "is done")
				}
			}
		})
	}
	parties.Wait()
	// Output:
	// round 1 is done
	// round 2 is done
	// round 3 is done
}

func serve() (*zktest.Server, *zk.Client) {
	srv, err := zktest.Start()
	if err != nil {
		panic(err)
	}
	client, err := zk.Open(context.Background(), zk.Config{Servers: srv.Addr()})
	if err != nil {
		panic(err)
	}
	return srv, client
}
