package elect_test

import (
	"context"
	"fmt"

	"github.com/seed-a3166700/turnstile/elect"
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

// One of several processes serves; another one takes over when it ends.
func Example() {
	connected(func(ctx context.Context, client *zk.Client) error {
		c, err := elect.NewCandidate(client, "/app/leader", "host-1", elect.Config{})
		if err != nil {
			return err
		}
		return c.Run(ctx, func(ctx context.Context, l *elect.Leadership) error {
			fmt.Println("host-1 leads; the token is positive:", l.Token() > 0)
			return nil // resigns
		})
	})
	// Output: host-1 leads; the token is positive: true
}

func ExampleCandidate_Campaign() {
	connected(func(ctx context.Context, client *zk.Client) error {
		c, err := elect.NewCandidate(client, "/app/leader", "host-1", elect.Config{})
		if err != nil {
			return err
		}
		l, err := c.Campaign(ctx)
		if err != nil {
			return err
		}
		defer l.Resign()
		if err := l.Proclaim(ctx, []byte("10.0.0.1:8080")); err != nil {
			return err
		}
		list, err := c.Participants(ctx)
		for _, p := range list {
			fmt.Printf("%s leads: %v, at %s\n", p.ID, p.Leads, p.Value)
		}
		return err
	})
	// Output: host-1 leads: true, at 10.0.0.1:8080
}

// Clients of the service find the leader. A client that observes is not a candidate.
func ExampleCandidate_Observe() {
	connected(func(ctx context.Context, client *zk.Client) error {
		host, err := elect.NewCandidate(client, "/app/leader", "host-1", elect.Config{})
		if err != nil {
			return err
		}
		l, err := host.Campaign(ctx)
		if err != nil {
			return err
		}
		observer, err := elect.NewCandidate(client, "/app/leader", "", elect.Config{})
		if err != nil {
			return err
		}
		for leader, err := range observer.Observe(ctx) {
			if err != nil {
				return err
			}
			if leader.Nobody() {
				fmt.Println("nobody leads")
				break
			}
			fmt.Println(leader.ID, "leads")
			if err := l.Resign(); err != nil {
				return err
			}
		}
		return nil
	})
	// Output:
	// host-1 leads
	// nobody leads
}
