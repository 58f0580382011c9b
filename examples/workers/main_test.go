package main

import (
	"context"
	"errors"
	"testing"

	"github.com/seed-a3166700/turnstile/member"
	"github.com/seed-a3166700/turnstile/zktest"
)

func TestWorkersSeeEachOther(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 2)
	for _, id := range []string{"a", "b"} {
		client := srv.Client(t, 0)
		go func() {
			ended <- announce(ctx, client, id, "10.0.0.1:8080", func(members []member.Member) {
				if len(members) == 2 {
					cancel()
				}
			})
		}()
	}
	for range 2 {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}
