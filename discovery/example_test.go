package discovery_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-a3166700/turnstile/discovery"
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

func ExampleRegistry_Register() {
	connected(func(ctx context.Context, client *zk.Client) error {
		r, err := discovery.NewRegistry(client, "/services", discovery.Config{})
		if err != nil {
			return err
		}
		reg, err := r.Register(ctx, discovery.Instance{Service: "users", ID: "host-1", Address: "10.0.0.1", Port: 8080})
		if err != nil {
			return err
		}
		defer reg.Unregister()
		instances, err := r.Instances(ctx, "users")
		if err != nil {
			return err
		}
		for _, i := range instances {
			fmt.Println(i.ID, i.URL())
		}
		return nil
	})
	// Output: host-1 http://10.0.0.1:8080
}

func ExampleProvider() {
	connected(func(ctx context.Context, client *zk.Client) error {
		r, err := discovery.NewRegistry(client, "/services", discovery.Config{})
		if err != nil {
			return err
		}
		for _, id := range []string{"host-1", "host-2"} {
			reg, err := r.Register(ctx, discovery.Instance{Service: "users", ID: id, Address: id, Port: 80})
			if err != nil {
				return err
			}
			defer reg.Unregister()
		}
		p, err := r.OpenProvider("users", discovery.ProviderConfig{})
		if err != nil {
			return err
		}
		defer p.Close()

		first, err := p.Pick(ctx)
		if err != nil {
			return err
		}
		first.Done(errors.New("connection refused"))
		second, err := p.Pick(ctx, first) // another one
		if err != nil {
			return err
		}
		second.Done(nil)
		fmt.Println(first.Instance.ID, second.Instance.URL())
		return nil
	})
	// Output: host-1 http://host-2:80
}
