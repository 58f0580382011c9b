package grpcresolver_test

import (
	"context"
	"errors"
	"iter"
	"net"
	"strconv"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"

	"github.com/seed-a3166700/turnstile/discovery"
	"github.com/seed-a3166700/turnstile/discovery/grpcresolver"
)

// feed yields what a test sends.
type feed chan update

type update struct {
	instances []discovery.Instance
	err       error
}

func (f feed) Watch(ctx context.Context, _ string) iter.Seq2[[]discovery.Instance, error] {
	return func(yield func([]discovery.Instance, error) bool) {
		for {
			select {
			case <-ctx.Done():
				yield(nil, context.Cause(ctx))
				return
			case u := <-f:
				if !yield(u.instances, u.err) {
					return
				}
			}
		}
	}
}

// serve starts a gRPC server that says of every service by its own name that it is healthy.
func serve(t *testing.T, name string) discovery.Instance {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	h := health.NewServer()
	h.SetServingStatus(name, healthpb.HealthCheckResponse_SERVING)
	healthpb.RegisterHealthServer(s, h)
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); <-done })
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return discovery.Instance{Service: "s", ID: name, Address: "127.0.0.1", Port: n}
}

func dial(t *testing.T, w grpcresolver.Watcher) healthpb.HealthClient {
	t.Helper()
	conn, err := grpc.NewClient("zookeeper:///s", grpc.WithResolvers(grpcresolver.New(w)),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return healthpb.NewHealthClient(conn)
}

// reach calls until the server with the name answers.
func reach(t *testing.T, c healthpb.HealthClient, name string) {
	t.Helper()
	for {
		_, err := c.Check(t.Context(), &healthpb.HealthCheckRequest{Service: name}, grpc.WaitForReady(true))
		switch {
		case err == nil:
			return
		case status.Code(err) == codes.NotFound: // another server's answer
		default:
			t.Fatal(err)
		}
	}
}

// Promise: 17
func TestCallsReachTheInstancesThatAreRegistered(t *testing.T) {
	t.Parallel()
	a, b := serve(t, "a"), serve(t, "b")
	disabled := discovery.Instance{Service: "s", ID: "disabled", Address: "127.0.0.1", Port: 1, Disabled: true}
	f := make(feed, 1)
	f <- update{instances: []discovery.Instance{a, b, disabled}}
	c := dial(t, f)
	reach(t, c, "a")
	reach(t, c, "b")
	f <- update{instances: []discovery.Instance{b}}
	reach(t, c, "b")
}

// Promise: 17
func TestEndOfTheWatchIsReported(t *testing.T) {
	t.Parallel()
	f := make(feed, 1)
	f <- update{err: errors.New("the client is closed")}
	c := dial(t, f)
	_, err := c.Check(t.Context(), &healthpb.HealthCheckRequest{})
	if status.Code(err) != codes.Unavailable {
		t.Errorf("%v", err)
	}
}

func TestMalformedTargetsAreRefused(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"zookeeper:///", "zookeeper://s", "zookeeper:///a/b"} {
		conn, err := grpc.NewClient(target, grpc.WithResolvers(grpcresolver.New(make(feed))),
			grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			continue
		}
		_, err = healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
		if err == nil || status.Code(err) != codes.Unavailable {
			t.Errorf("%s: %v", target, err)
		}
		_ = conn.Close()
	}
}

// conn takes note of what a resolver tells it.
type conn struct {
	resolver.ClientConn
	states chan resolver.State
}

func (c conn) UpdateState(s resolver.State) error { c.states <- s; return nil }

func TestBalancerSeesTheInstance(t *testing.T) {
	t.Parallel()
	f := make(feed)
	c := conn{states: make(chan resolver.State)}
	var target resolver.Target
	target.URL.Path = "/s"
	r, err := grpcresolver.New(f).Build(target, c, resolver.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	in := discovery.Instance{Service: "s", ID: "1", Address: "a", Port: 1, TLSPort: 2, Payload: []byte(`{"zone":"b"}`)}
	var seen []resolver.State
	for range 2 {
		f <- update{instances: []discovery.Instance{in}}
		seen = append(seen, <-c.states)
	}
	e := seen[0].Endpoints[0]
	if got := e.Addresses[0].Addr; got != "a:2" {
		t.Errorf("address %s", got)
	}
	got, ok := grpcresolver.InstanceOf(e.Attributes)
	if !ok || string(got.Payload) != string(in.Payload) {
		t.Errorf("%+v, %v", got, ok)
	}
	if !e.Attributes.Equal(seen[1].Endpoints[0].Attributes) {
		t.Error("the same instance has other attributes after an update")
	}
	disabled := in
	disabled.ID, disabled.Disabled, in.Payload = "2", true, nil
	f <- update{instances: []discovery.Instance{in, disabled}}
	next := <-c.states
	if len(next.Endpoints) != 1 || len(next.Addresses) != 1 {
		t.Fatalf("got %+v, with a disabled instance", next)
	}
	if e.Attributes.Equal(next.Endpoints[0].Attributes) {
		t.Error("an instance that has changed has the same attributes")
	}
	if _, ok := grpcresolver.InstanceOf(nil); ok {
		t.Error("attributes of others are taken for an instance")
	}
}

func TestTargetMustNotNameAHost(t *testing.T) {
	t.Parallel()
	var target resolver.Target
	target.URL.Host, target.URL.Path = "host", "/s"
	if _, err := grpcresolver.New(make(feed)).Build(target, conn{}, resolver.BuildOptions{}); err == nil {
		t.Error("it is accepted")
	}
	if _, err := grpcresolver.New(nil).Build(target, conn{}, resolver.BuildOptions{}); err == nil {
		t.Error("no registry is accepted")
	}
}

// ending closes its channel when a Watch has ended.
type ending chan struct{}

func (e ending) Watch(ctx context.Context, _ string) iter.Seq2[[]discovery.Instance, error] {
	return func(yield func([]discovery.Instance, error) bool) {
		<-ctx.Done()
		yield(nil, context.Cause(ctx))
		close(e)
	}
}

func TestCloseEndsTheWatch(t *testing.T) {
	t.Parallel()
	e := make(ending)
	var target resolver.Target
	target.URL.Path = "/s"
	r, err := grpcresolver.New(e).Build(target, conn{}, resolver.BuildOptions{}) // it is told of nothing
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	select {
	case <-e:
	default:
		t.Error("the watch has not ended when Close returns")
	}
}

// told counts what a resolver tells gRPC.
type told struct {
	conn
	errs, states chan struct{}
}

func (c told) ReportError(error) { c.errs <- struct{}{} }

func (c told) UpdateState(resolver.State) error {
	c.states <- struct{}{}
	return nil
}

// A refusal does not end a resolver: it tells gRPC of the instances that come after it.
func TestResolverOutlivesARefusal(t *testing.T) {
	t.Parallel()
	f := make(feed)
	c := told{errs: make(chan struct{}, 1), states: make(chan struct{}, 1)}
	var target resolver.Target
	target.URL.Path = "/s"
	r, err := grpcresolver.New(f).Build(target, c, resolver.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f <- update{err: errors.New("refused")}
	<-c.errs
	f <- update{instances: []discovery.Instance{{Address: "10.0.0.1"}}}
	<-c.states
}
