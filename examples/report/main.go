// Command report writes a report that two processes must never write at the same time.
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

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := open(ctx, "127.0.0.1:2181")                     // an ensemble: "zk1:2181,zk2:2181,zk3:2181"
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
	return run(ctx, client)
}

func run(ctx context.Context, client *zk.Client) error {
	m, err := lock.NewMutex(client, "/locks/report", lock.Config{})
	if err != nil {
		return err
	}
	return m.Do(ctx, func(ctx context.Context, hold *lock.Hold) error { // waits in line; ctx ends the wait
		return write(ctx, hold.Token())
	})
}

// write does the work. Its ctx ends, with the cause, before another process can acquire the lock. token is larger than
// that of every earlier hold, so that the store of the report can refuse a late writer.
func write(ctx context.Context, token lock.Token) error {
	fmt.Printf("my turn, with token %d\n", token)
	return context.Cause(ctx)
}
