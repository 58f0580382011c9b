// Command shards shares four shards among all its processes: start several, and end some.
package main

// The whole program.

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/seed-a3166700/turnstile/member"
	"github.com/seed-a3166700/turnstile/zk"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := open(ctx, "127.0.0.1:2181")
	if err != nil && !errors.Is(err, context.Cause(ctx)) { // to be stopped is no failure
		log.Fatal(err)
	}
	stop()
}

func open(ctx context.Context, servers string) error {
	client, err := zk.Open(ctx, zk.Config{Servers: servers, Logger: slog.Default()})
	if err != nil {
		return err
	}
	defer client.Close()
	host := fmt.Sprintf("process-%d", os.Getpid())
	return share(ctx, client, host, []string{"a", "b", "c", "d"}, serve)
}

// share calls serve for each shard that this process owns.
func share(ctx context.Context, client *zk.Client, host string, shards []string, serve serveFunc) error {
	p, err := member.NewPartitioner(client, "/app/shards", host, shards, member.PartitionerConfig{})
	if err != nil {
		return err
	}
	return p.Run(ctx, func(ctx context.Context, s *member.Share) error {
		return serve(ctx, s.Item(), s.Token()) // until ctx ends; the item passes on when this has returned
	})
}

type serveFunc func(ctx context.Context, shard string, token zk.Token) error

func serve(ctx context.Context, shard string, token zk.Token) error {
	fmt.Println("serves", shard, "with token", token)
	<-ctx.Done()
	fmt.Println("serves", shard, "no more:", context.Cause(ctx))
	return nil
}
