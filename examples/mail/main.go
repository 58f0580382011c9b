// Command mail sends the mails that are in a queue. "mail ADDRESS" puts one into it.
package main

// The producer and the consumer.

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := open(ctx, "127.0.0.1:2181", os.Args[1:], send)  // an ensemble: "zk1:2181,zk2:2181,zk3:2181"
	if err != nil && !errors.Is(err, context.Cause(ctx)) { // to be stopped is no failure
		log.Fatal(err)
	}
	stop()
}

func open(ctx context.Context, servers string, addresses []string, send func(context.Context, string) error) error {
	client, err := zk.Open(ctx, zk.Config{Servers: servers, Logger: slog.Default()})
	if err != nil {
		return err
	}
	defer client.Close()
	q, err := queue.New(client, "/queues/mail", queue.Config{})
	if err != nil {
		return err
	}
	defer q.Close(context.WithoutCancel(ctx))
	for _, to := range addresses {
		if err := put(ctx, q, to); err != nil {
			return err
		}
	}
	if len(addresses) > 0 {
		return nil
	}
	return work(ctx, q, send)
}

func put(ctx context.Context, q *queue.Queue, to string) error {
	_, err := q.Put(ctx, queue.Message{Body: []byte(to)}) // nil: it is on the servers' disks
	return err
}

// work sends four mails at a time until ctx ends. A mail that fails comes again, each time later, and finally becomes a
// dead letter.
func work(ctx context.Context, q *queue.Queue, send func(context.Context, string) error) error {
	return q.Consume(ctx, 4, func(ctx context.Context, item *queue.Item) error {
		return send(ctx, string(item.Body())) // ctx ends if the claim is lost; nil: done, never again
	})
}

func send(_ context.Context, to string) error {
	_, err := fmt.Println("mail to", to)
	return err
}
