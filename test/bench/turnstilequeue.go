package main

import (
	"context"

	"github.com/seed-a3166700/turnstile/internal/measure"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
)

const kindTurnstileQueue = "turnstile-queue"

// ourQueue is a queue of ours, with a client of its own.
type ourQueue struct {
	client *zk.Client
	queue  *queue.Queue
}

func openTurnstileQueue(ctx context.Context, p *plan) (tasks, error) {
	seen, err := p.observers()
	if err != nil {
		return nil, err
	}
	client, _, err := connectWith(ctx, p.addr, seen.zk)
	if err != nil {
		return nil, err
	}
	q, err := queue.New(client, p.root, queue.Config{Hooks: seen.queue})
	if err != nil {
		return nil, err
	}
	return &ourQueue{client, q}, nil
}

func (o *ourQueue) put(ctx context.Context, bodies [][]byte) error {
	if len(bodies) == 1 {
		_, err := o.queue.Put(ctx, queue.Message{Body: bodies[0]})
		return err
	}
	_, err := o.queue.PutBatch(ctx, messages(bodies))
	return err
}

func messages(bodies [][]byte) []queue.Message {
	all := make([]queue.Message, len(bodies))
	for i, b := range bodies {
		all[i].Body = b
	}
	return all
}

func (o *ourQueue) take(ctx context.Context) (func(context.Context) error, error) {
	item, err := o.queue.Take(ctx)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return item.Done(ctx) }, nil
}

// close gives back what was claimed ahead. What cannot be given back goes back when the session ends.
func (o *ourQueue) close() {
	ctx, cancel := context.WithTimeout(context.Background(), measure.OrderLimit)
	defer cancel()
	_ = o.queue.Close(ctx)
	_ = o.client.Close()
}
