// Package grpcresolver lets gRPC clients find the instances of a registered service by name.
//
//	conn, err := grpc.NewClient("zookeeper:///users",
//		grpc.WithResolvers(grpcresolver.New(registry)),
//		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}]}`), ...)
//
// It is a module of its own, so that programs which do not use gRPC do not depend on it.
package grpcresolver

// The resolver: it follows a service's instances and tells gRPC of every change.

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/resolver"

	"github.com/seed-a3166700/turnstile/discovery"
)

// Scheme is the scheme of targets that this resolver resolves.
const Scheme = "zookeeper"

// Watcher yields the instances of a service: now, and after every change. A *discovery.Registry is one.
type Watcher interface {
	// After an error the resolver continues the loop, which ends by itself if there is no point in that.
	Watch(ctx context.Context, service string) iter.Seq2[[]discovery.Instance, error]
}

// New returns a builder for grpc.WithResolvers. A target names a service: zookeeper:///users. gRPC gets the address of
// every instance that is not disabled, with its TLS port if it has one; the instance itself is in the attributes of its
// endpoint (see InstanceOf). Connections to instances that stay are not disturbed by a change.
//
// While ZooKeeper cannot be reached, or refuses, gRPC keeps the instances that it knows, and the resolver tries again.
// gRPC is told of an error that ends the watch, such as the client's end, and of a refusal before there are any
// instances; calls on connections that exist continue.
func New(w Watcher) resolver.Builder { return builder{w} }

// InstanceOf returns the instance whose endpoint has these attributes: for balancers that pick by an instance's
// payload. It returns false if the attributes are not from this resolver.
func InstanceOf(a *attributes.Attributes) (discovery.Instance, bool) {
	i, ok := a.Value(key{}).(*instance)
	if !ok {
		return discovery.Instance{}, false
	}
	return i.Instance, true
}

type key struct{}

// instance is comparable by what gRPC must notice: attributes that are not equal make it connect anew.
type instance struct {
	discovery.Instance
	text string
}

// Equal is called by attributes.
func (i *instance) Equal(other any) bool {
	o, ok := other.(*instance)
	return ok && i.text == o.text
}

type builder struct{ watcher Watcher }

func (builder) Scheme() string { return Scheme }

func (b builder) Build(target resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (
	resolver.Resolver, error,
) {
	if b.watcher == nil {
		return nil, errors.New("grpcresolver: the registry is nil; make one with discovery.NewRegistry")
	}
	service := target.Endpoint()
	if target.URL.Host != "" || service == "" || strings.Contains(service, "/") {
		return nil, fmt.Errorf("grpcresolver: target %q must be %s:///SERVICE, with three slashes", target.URL.String(),
			Scheme)
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := &follower{cancel: cancel}
	f.done.Go(func() { follow(ctx, b.watcher, service, cc) })
	return f, nil
}

// follower tells one gRPC connection of a service's instances.
type follower struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// ResolveNow does nothing: gRPC is told of every change as it happens.
func (*follower) ResolveNow(resolver.ResolveNowOptions) {}

func (f *follower) Close() {
	f.cancel()
	f.done.Wait()
}

func follow(ctx context.Context, w Watcher, service string, cc resolver.ClientConn) {
	for instances, err := range w.Watch(ctx, service) {
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			cc.ReportError(fmt.Errorf("grpcresolver: service %s: %w", service, err))
			continue // a refusal may pass; an error that does not ends the loop
		}
		// The error says that the balancer cannot use the state. gRPC fails calls with it, and there is nothing else to
		// try until the next change.
		_ = cc.UpdateState(state(instances))
	}
}

func state(instances []discovery.Instance) resolver.State {
	var s resolver.State
	for _, i := range instances {
		if i.Disabled || i.Address == "" {
			continue
		}
		raw, err := i.MarshalJSON()
		if err != nil {
			continue // an instance whose URI is malformed, which no registry of ours accepts
		}
		address := resolver.Address{Addr: i.HostPort()}
		s.Addresses = append(s.Addresses, address)
		s.Endpoints = append(s.Endpoints, resolver.Endpoint{
			Addresses:  []resolver.Address{address},
			Attributes: attributes.New(key{}, &instance{i, string(raw)}),
		})
	}
	return s
}
