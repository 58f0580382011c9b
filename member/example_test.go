package member_test

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-a3166700/turnstile/member"
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

func ExampleGroup() {
	connected(func(ctx context.Context, client *zk.Client) error {
		g, err := member.NewGroup(client, "/workers", member.GroupConfig{})
		if err != nil {
			return err
		}
		m, err := g.Join(ctx, "host-1", []byte("10.0.0.1:8080"))
		if err != nil {
			return err
		}
		defer m.Leave()
		members, err := g.Members(ctx)
		if err != nil {
			return err
		}
		for _, m := range members {
			fmt.Println(m.ID, string(m.Data))
		}
		return nil
	})
	// Output: host-1 10.0.0.1:8080
}

func ExampleGroup_Watch() {
	connected(func(ctx context.Context, client *zk.Client) error {
		g, err := member.NewGroup(client, "/workers", member.GroupConfig{})
		if err != nil {
			return err
		}
		m, err := g.Join(ctx, "host-1", nil)
		if err != nil {
			return err
		}
		defer m.Leave()
		for members, err := range g.Watch(ctx) {
			if err != nil {
				return err
			}
			fmt.Println(len(members), "member")
			break
		}
		return nil
	})
	// Output: 1 member
}

func ExampleNode() {
	connected(func(ctx context.Context, client *zk.Client) error {
		n, err := member.OpenNode(client, "/app/status/host-1", []byte("starting"), member.NodeConfig{})
		if err != nil {
			return err
		}
		defer n.Close()
		if err := n.Set(ctx, []byte("ready")); err != nil { // in place now, and again after every loss
			return err
		}
		fmt.Println(n.Path(), n.InPlace())
		return nil
	})
	// Output: /app/status/host-1 true
}

// Several processes share the items. Each is worked on by one of them at a time.
func ExamplePartitioner_Run() {
	connected(func(ctx context.Context, client *zk.Client) error {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		p, err := member.NewPartitioner(client, "/app/shards", "host-1", []string{"users"},
			member.PartitionerConfig{Settle: time.Millisecond})
		if err != nil {
			return err
		}
		return p.Run(ctx, func(ctx context.Context, s *member.Share) error { // until ctx ends; then it returns nil
			fmt.Println("works on", s.Item())
			stop()
			<-ctx.Done() // the item passes on when this function has returned
			return nil
		})
	})
	// Output:
	// works on users
}

func ExampleLease_Take() {
	connected(func(ctx context.Context, client *zk.Client) error {
		l, err := member.NewLease(client, "/app/nightly", "host-1", time.Hour, member.LeaseConfig{})
		if err != nil {
			return err
		}
		leased, err := l.Take(ctx)
		if err != nil {
			return err // member.ErrLeased: another host has it
		}
		fmt.Println("for an hour:", time.Until(leased.Until).Round(time.Hour))
		return nil
	})
	// Output: for an hour: 1h0m0s
}
