package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/seed-a3166700/turnstile/discovery"
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

func ExampleRegistry_Register() {
	ctx := context.Background()
	client, end := connect(ctx)
	defer end()

	r, err := discovery.NewRegistry(client, "/services", discovery.Config{})
	if err != nil {
		log.Fatal(err)
	}
	reg, err := r.Register(ctx, discovery.Instance{Service: "users", ID: "host-1", Address: "10.0.0.1", Port: 8080})
	if err != nil {
		log.Fatal(err)
	}
	defer reg.Close()
	instances, err := r.Instances(ctx, "users")
	if err != nil {
		log.Fatal(err)
	}
	for _, i := range instances {
		fmt.Println(i.ID, i.URL())
	}
	// Output: host-1 http://10.0.0.1:8080
}

func ExampleProvider() {
	ctx := context.Background()
	client, end := connect(ctx)
	defer end()

	r, err := discovery.NewRegistry(client, "/services", discovery.Config{})
	if err != nil {
		log.Fatal(err)
	}
	for _, id := range []string{"host-1", "host-2"} {
		reg, err := r.Register(ctx, discovery.Instance{Service: "users", ID: id, Address: id, Port: 80})
		if err != nil {
			log.Fatal(err)
		}
		defer reg.Close()
	}
	p, err := r.Provider("users", discovery.ProviderConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()

	first, err := p.Pick(ctx)
	if err != nil {
		log.Fatal(err)
	}
	first.Done(errors.New("connection refused"))
	second, err := p.Pick(ctx, first) // another one
	if err != nil {
		log.Fatal(err)
	}
	second.Done(nil)
	fmt.Println(first.Instance.ID, second.Instance.URL())
	// Output: host-1 http://host-2:80
}
