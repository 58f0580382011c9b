package grpcresolver_test

import (
	"context"
	"fmt"
	"iter"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/seed-a3166700/turnstile/discovery"
	"github.com/seed-a3166700/turnstile/discovery/grpcresolver"
)

// services stands for a discovery.Registry, which needs a server.
type services map[string][]discovery.Instance

func (s services) Watch(ctx context.Context, service string) iter.Seq2[[]discovery.Instance, error] {
	return func(yield func([]discovery.Instance, error) bool) {
		if yield(s[service], nil) {
			<-ctx.Done()
			yield(nil, context.Cause(ctx))
		}
	}
}

func Example() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, health.NewServer())
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(listener) })
	defer wg.Wait()
	defer server.Stop()
	at, _ := net.ResolveTCPAddr("tcp", listener.Addr().String())

	// In a program this is a Registry, with which the server has registered its instance.
	registry := services{"users": {{Service: "users", ID: "1", Address: at.IP.String(), Port: at.Port}}}

	conn, err := grpc.NewClient("zookeeper:///users",
		grpc.WithResolvers(grpcresolver.New(registry)),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}]}`),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	reply, err := healthpb.NewHealthClient(conn).Check(context.Background(), &healthpb.HealthCheckRequest{})
	fmt.Println(reply.GetStatus(), err)
	// Output: SERVING <nil>
}
