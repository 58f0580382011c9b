package member_test

import (
	"context"
	"fmt"
	"log"

	"github.com/seed-a3166700/turnstile/member"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// connect returns a client of a server of its own.
func connect(ctx context.Context) (*zk.Client, func()) {
	srv, err := zktest.Start()
	if err != nil {
		log.Fatal(err)
	}
	client, err := zk.Open(ctx, zk.Config{Servers: srv.Addr()})
	if err != nil {
		log.Fatal(err)
	}
	return client, func() {
		if err := client.Close(); err != nil {
			log.Print(err)
		}
		_ = srv.Close()
	}
}

func ExampleGroup() {
	ctx := context.Background()
	client, end := connect(ctx)
	defer end()

	g, err := member.NewGroup(client, "/workers", member.GroupConfig{})
	if err != nil {
		log.Fatal(err)
	}
	m, err := g.Join(ctx, "host-1", []byte("10.0.0.1:8080"))
	if err != nil {
		log.Fatal(err)
	}
	defer m.Leave()
	members, err := g.Members(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range members {
		fmt.Println(m.ID, string(m.Data))
	}
	// Output: host-1 10.0.0.1:8080
}

func ExampleGroup_Watch() {
	ctx := context.Background()
	client, end := connect(ctx)
	defer end()

	g, err := member.NewGroup(client, "/workers", member.GroupConfig{})
	if err != nil {
		log.Fatal(err)
	}
	m, err := g.Join(ctx, "host-1", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer m.Leave()
	for members, err := range g.Watch(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(len(members), "member")
		break
	}
	// Output: 1 member
}

func ExampleNode() {
	ctx := context.Background()
	client, end := connect(ctx)
	defer end()

	n, err := member.NewNode(client, "/app/status/host-1", []byte("starting"), member.NodeConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer n.Close()
	if err := n.Set(ctx, []byte("ready")); err != nil { // in place now, and again after every loss
		log.Fatal(err)
	}
	fmt.Println(n.Path(), n.InPlace())
	// Output: /app/status/host-1 true
}
