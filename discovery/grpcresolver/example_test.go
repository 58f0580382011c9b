package grpcresolver_test

import (
	"context"
	"fmt"
	"iter"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/seed-a3166700/turnstile/discovery"
	"github.com/seed-a3166700/turnstile/discovery/grpcresolver"
)

// registered are instances that do not change.
type registered []discovery.Instance

func (r registered) Watch(ctx context.Context, _ string) iter.Seq2[[]discovery.Instance, error] {
	return func(yield func([]discovery.Instance, error) bool) {
		if yield(r, nil) {
			<-ctx.Done()
		}
	}
}

func ExampleNew() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, health.NewServer())
	go func() { _ = server.Serve(l) }()
	defer server.Stop()
	at, _ := net.ResolveTCPAddr("tcp", l.Addr().String())

	// In a program this is a Registry, and the servers register themselves.
	registry := registered{{Service: "users", ID: "1", Address: at.IP.String(), Port: at.Port}}
	conn, err := grpc.NewClient("zookeeper:///users",
		grpc.WithResolvers(grpcresolver.New(registry)),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}]}`),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	answer, err := healthpb.NewHealthClient(conn).Check(context.Background(), &healthpb.HealthCheckRequest{})
	fmt.Println(answer.GetStatus(), err)
	// Output: SERVING <nil>
}
