// Command migrating does with Turnstile what the pages docs/migrating*.md show for other projects, once each.
package main

// Connecting, and running the functions of each page.

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := all(ctx, "127.0.0.1:2181", func(context.Context) error { return nil })
	if err != nil && !errors.Is(err, context.Cause(ctx)) { // to be stopped is no failure
		log.Fatal(err)
	}
	stop()
}

// A function does what one snippet shows, most of them with work to do.
type function func(ctx context.Context, client *zk.Client, work func(context.Context) error) error

// all runs every function. Each page has a root of its own, as its layouts differ.
func all(ctx context.Context, servers string, work func(context.Context) error) error {
	client, err := connect(ctx, servers)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := tryLock(ctx, client, work); err != nil {
		return err
	}
	for root, functions := range map[string]map[string]function{"/curator": curator, "/kazoo": kazoo} {
		if _, err := client.CreateAll(ctx, zk.Node{Path: root + "/config"}, zk.Parents{}); err != nil {
			return err
		}
		below, err := connect(ctx, servers+root)
		if err != nil {
			return err
		}
		defer below.Close()
		for name, f := range functions {
			if err := f(ctx, below, work); err != nil {
				return fmt.Errorf("%s: %s: %w", root, name, err)
			}
		}
	}
	return nil
}

func connect(ctx context.Context, servers string) (*zk.Client, error) {
	return zk.Open(ctx, zk.Config{Servers: servers, Timeout: 10 * time.Second})
}

func tryLock(ctx context.Context, client *zk.Client, work func(context.Context) error) error {
	m, err := lock.NewMutex(client, "/locks/report", lock.Config{Layout: lock.Curator})
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, 5*time.Second) // or m.TryLock, which does not wait
	defer cancel()
	hold, err := m.Lock(waiting)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil // not acquired
	}
	if err != nil {
		return err
	}
	defer hold.Unlock()
	return work(hold.Context())
}
