package otel_test

import (
	"context"
	"fmt"

	api "go.opentelemetry.io/otel"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/otel"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// work does what the items of a queue say, under a lock.
func work(ctx context.Context, client *zk.Client) error {
	tracing := otel.New(otel.Config{}) // spans by the TracerProvider that the program has set
	q, err := queue.New(client, "/queues/imports", queue.Config{Hooks: tracing.Queue()})
	if err != nil {
		return err
	}
	defer q.Close(context.WithoutCancel(ctx))
	mutex, err := lock.NewMutex(client, "/jobs/import-42", lock.Config{Hooks: tracing.Lock()})
	if err != nil {
		return err
	}
	return q.Consume(ctx, 4, func(ctx context.Context, item *queue.Item) error {
		ctx = tracing.Context(ctx, item) // what follows is part of the item's span
		return mutex.Do(ctx, func(ctx context.Context, _ *lock.Hold) error {
			return load(ctx, item.Body())
		})
	})
}

// The spans of the lock are part of the item's, which links to that of the call that has put the item.
func ExampleNew() {
	ctx, stop := context.WithCancel(context.Background())
	load = func(context.Context, []byte) error {
		stop() // your program goes on
		return nil
	}
	recorder := tracetest.NewSpanRecorder() // your program has an exporter
	api.SetTracerProvider(sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder)))
	err := func() error {
		srv, err := zktest.Start() // your program connects to your ensemble
		if err != nil {
			return err
		}
		defer srv.Close()
		client, err := zk.Open(context.Background(), zk.Config{Servers: srv.Addr()})
		if err != nil {
			return err
		}
		defer client.Close()
		tracing := otel.New(otel.Config{})
		q, err := queue.New(client, "/queues/imports", queue.Config{Hooks: tracing.Queue()})
		if err != nil {
			return err
		}
		if _, err := q.Put(ctx, queue.Message{Body: []byte("42")}); err != nil {
			return err
		}
		return work(ctx, client)
	}()
	if err != nil {
		fmt.Println(err)
	}
	parents := make(map[string]string)
	for _, span := range recorder.Ended() {
		parents[span.SpanContext().SpanID().String()] = span.Name()
	}
	for _, span := range recorder.Ended() {
		fmt.Printf("%s, part of %q, links to %d\n",
			span.Name(), parents[span.Parent().SpanID().String()], len(span.Links()))
	}
	// Output:
	// send /queues/imports, part of "", links to 0
	// lock acquire /jobs/import-*, part of "process /queues/imports", links to 0
	// lock hold /jobs/import-*, part of "process /queues/imports", links to 1
	// settle /queues/imports, part of "process /queues/imports", links to 1
	// process /queues/imports, part of "", links to 1
}

// load stands for the work.
var load func(ctx context.Context, data []byte) error
