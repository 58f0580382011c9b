// Command config prints the settings that are kept in ZooKeeper below /config, and every change of them.
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

	"github.com/seed-a3166700/turnstile/cache"
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
	return follow(ctx, client, "/config", func(path, value string, exists bool) {
		if exists {
			fmt.Printf("%s = %s\n", path, value)
		} else {
			fmt.Printf("%s is gone\n", path)
		}
	})
}

// follow calls apply with each setting below path: as it is now, and after every change.
func follow(ctx context.Context, client *zk.Client, path string, apply func(path, value string, exists bool)) error {
	tree, err := cache.OpenTree(client, path, cache.Config{})
	if err != nil {
		return err
	}
	defer tree.Close()
	for change, err := range tree.Changes(ctx) { // first what there is, then every change
		if err != nil {
			return err
		}
		apply(change.Path, string(change.After.Data), change.Kind != cache.Deleted)
	}
	return nil
}
