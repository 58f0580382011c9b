// Package discovery lets services register their instances in ZooKeeper, and clients find them. The nodes and their
// JSON are those of curator-x-discovery, so services and clients in Java take part.
//
//	r, err := discovery.NewRegistry(client, "/services", discovery.Config{})
//	...
//	reg, err := r.Register(ctx, discovery.Instance{Service: "users", Port: 8080})
//	...
//	defer reg.Unregister()
//
// A client picks an instance for each call, and says how the call went:
//
//	p, err := r.OpenProvider("users", discovery.ProviderConfig{})
//	...
//	use, err := p.Pick(ctx)
//	...
//	err = call(use.Instance.URL())
//	use.Done(err)
package discovery
