package member_test

import (
	"context"
	"fmt"

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
		n, err := member.NewNode(client, "/app/status/host-1", []byte("starting"), member.NodeConfig{})
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
