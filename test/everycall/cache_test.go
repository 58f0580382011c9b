package everycall_test

// The calls of packages cache and discovery.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strconv"

	"github.com/seed-a3166700/turnstile/cache"
	"github.com/seed-a3166700/turnstile/discovery"
	"github.com/seed-a3166700/turnstile/zk"
)

var cacheTypes = []reflect.Type{
	reflect.TypeFor[*cache.Tree](), reflect.TypeFor[*cache.Children](), reflect.TypeFor[*cache.Node](),
}

type anyCache interface {
	WaitSynced(ctx context.Context) error
	Sync(ctx context.Context) error
	Changes(ctx context.Context) iter.Seq2[cache.Change, error]
	Views(ctx context.Context) iter.Seq2[*cache.View, error]
	Close()
}

func cacheCalls() (calls []call) {
	for name, open := range map[string]func(*zk.Client, string) (anyCache, error){
		"Tree": func(c *zk.Client, path string) (anyCache, error) {
			return cache.OpenTree(c, path, cache.Config{})
		},
		"Children": func(c *zk.Client, path string) (anyCache, error) {
			return cache.OpenChildren(c, path, cache.Config{})
		},
		"Node": func(c *zk.Client, path string) (anyCache, error) {
			return cache.OpenNode(c, path, cache.Config{})
		},
	} {
		add := func(method string, f func(context.Context, anyCache) error) {
			do := func(ctx context.Context, a args) error {
				c, err := open(a.client, a.path)
				if err != nil {
					return err
				}
				defer c.Close()
				return f(ctx, c)
			}
			calls = append(calls, call{name: "cache." + name + "." + method, do: do, allows: []string{
				"root", "the server's", "helper below", "below a helper", "helper beside", "below one beside",
				"rights of 2 MB", "no rights", "rights for none",
			}})
		}
		add("WaitSynced", func(ctx context.Context, c anyCache) error { return c.WaitSynced(ctx) })
		add("Sync", func(ctx context.Context, c anyCache) error { return c.Sync(ctx) })
		add("Views", func(ctx context.Context, c anyCache) error {
			for _, err := range c.Views(ctx) {
				return err
			}
			return errors.New("the iteration ended")
		})
		add("Changes", func(ctx context.Context, c anyCache) error {
			ctx, stop := context.WithCancelCause(ctx)
			defer stop(nil)
			enough := errors.New("enough")
			go func() {
				if c.WaitSynced(ctx) == nil {
					stop(enough)
				}
			}()
			for _, err := range c.Changes(ctx) {
				if errors.Is(err, enough) {
					return nil // there was nothing
				}
				return err
			}
			return errors.New("the iteration ended")
		})
	}
	return calls
}

var discoveryTypes = []reflect.Type{
	reflect.TypeFor[*discovery.Registry](), reflect.TypeFor[*discovery.Registration](),
	reflect.TypeFor[*discovery.Provider](),
}

func onRegistry(
	f func(ctx context.Context, r *discovery.Registry, data []byte) error,
) func(context.Context, args) error {
	return func(ctx context.Context, a args) error {
		r, err := discovery.NewRegistry(a.client, a.path, discovery.Config{ACL: a.acl})
		if err != nil {
			return err
		}
		return f(ctx, r, a.data)
	}
}

func instance(data []byte) discovery.Instance {
	return discovery.Instance{
		Service: "web", ID: "one", Address: "10.0.0.1", Payload: json.RawMessage(strconv.Quote(string(data))),
	}
}

func onRegistered(
	f func(ctx context.Context, r *discovery.Registry, g *discovery.Registration, data []byte) error,
) func(context.Context, args) error {
	return onRegistry(func(ctx context.Context, r *discovery.Registry, data []byte) error {
		g, err := r.Register(ctx, instance(nil))
		if err != nil {
			return err
		}
		return errors.Join(f(ctx, r, g, data), g.UnregisterWait(ctx))
	})
}

func onProvider(f func(ctx context.Context, p *discovery.Provider) error) func(context.Context, args) error {
	return onRegistered(func(ctx context.Context, r *discovery.Registry, _ *discovery.Registration, _ []byte) error {
		p, err := r.OpenProvider("web", discovery.ProviderConfig{})
		if err != nil {
			return err
		}
		defer p.Close()
		return f(ctx, p)
	})
}

var discoveryCalls = atRoot([]call{
	{name: "discovery.Registry.Register", takesData: true, do: onRegistry(
		func(ctx context.Context, r *discovery.Registry, data []byte) error {
			g, err := r.Register(ctx, instance(data))
			if err != nil {
				return err
			}
			return g.UnregisterWait(ctx)
		},
	)},
	{name: "discovery.Registry.Services", do: onRegistry(
		func(ctx context.Context, r *discovery.Registry, _ []byte) error {
			_, err := r.Services(ctx)
			return err
		},
	)},
	{name: "discovery.Registry.Instances", do: onRegistered(
		func(ctx context.Context, r *discovery.Registry, _ *discovery.Registration, _ []byte) error {
			all, err := r.Instances(ctx, "web")
			if err == nil && len(all) != 1 {
				err = fmt.Errorf("got %d instances, want 1", len(all))
			}
			return err
		},
	)},
	{name: "discovery.Registry.Instance", do: onRegistered(
		func(ctx context.Context, r *discovery.Registry, _ *discovery.Registration, _ []byte) error {
			_, _, err := r.Instance(ctx, "web", "one")
			return err
		},
	)},
	{name: "discovery.Registry.Watch", do: onRegistered(
		func(ctx context.Context, r *discovery.Registry, _ *discovery.Registration, _ []byte) error {
			for _, err := range r.Watch(ctx, "web") {
				return err
			}
			return errors.New("the iteration ended")
		},
	)},
	{name: "discovery.Registration.Update", takesData: true, do: onRegistered(
		func(ctx context.Context, _ *discovery.Registry, g *discovery.Registration, data []byte) error {
			i := g.Instance()
			i.Payload = instance(data).Payload
			return g.Update(ctx, i)
		},
	)},
	{name: "discovery.Registration.Await", do: onRegistered(
		func(ctx context.Context, _ *discovery.Registry, g *discovery.Registration, _ []byte) error {
			return g.Await(ctx)
		},
	)},
	{name: "discovery.Registration.UnregisterWait", do: onRegistered(
		func(context.Context, *discovery.Registry, *discovery.Registration, []byte) error { return nil },
	)},
	{name: "discovery.Provider.Pick", do: onProvider(func(ctx context.Context, p *discovery.Provider) error {
		use, err := p.Pick(ctx)
		if err == nil {
			use.Done(nil)
		}
		return err
	})},
	{name: "discovery.Provider.Instances", do: onProvider(func(ctx context.Context, p *discovery.Provider) error {
		_, err := p.Instances(ctx)
		return err
	})},
})

// atRoot adds that a registry may be at the root.
func atRoot(calls []call) []call {
	for i := range calls {
		calls[i].allows = []string{"root"}
	}
	return calls
}
