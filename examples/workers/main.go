// Command workers joins a group and prints how many members it has, now and after every change.
package main

// The whole program.

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
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
	return announce(ctx, client, strconv.Itoa(os.Getpid()), "10.0.0.1:8080", func(members []member.Member) {
		log.Print(len(members), " members")
	})
}

// announce makes this program a member of /workers, and calls changed with the members, now and after every change.
func announce(
	ctx context.Context, client *zk.Client, id, address string, changed func([]member.Member),
) error {
	g, err := member.NewGroup(client, "/workers", member.GroupConfig{})
	if err != nil {
		return err
	}
	m, err := g.Join(ctx, id, []byte(address))
	if err != nil {
		return err
	}
	defer m.Leave()
	for members, err := range g.Watch(ctx) {
		if err != nil {
			return err
		}
		changed(members)
	}
	return nil
}
