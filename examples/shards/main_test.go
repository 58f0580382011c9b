package main

import (
	"context"
	"errors"
	"testing"

	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

func TestShardsAreServed(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	client, err := zk.Open(t.Context(), zk.Config{Servers: srv.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	done, served := errors.New("done"), make(chan string, 2)
	go func() {
		if a, b := <-served, <-served; a == b {
			t.Errorf("%s is served twice", a)
		}
		cancel(done)
	}()
	err = share(ctx, client, "host", []string{"a", "b"}, func(ctx context.Context, shard string, _ zk.Token) error {
		served <- shard
		<-ctx.Done()
		return nil
	})
	if err != nil {
		t.Errorf("got %v, want nil", err)
	}
}
