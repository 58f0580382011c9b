package main

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/seed-a3166700/turnstile/zktest"
)

func TestEverythingOfThePageRuns(t *testing.T) {
	t.Parallel()
	var done atomic.Int32
	work := func(ctx context.Context) error {
		done.Add(1)
		return ctx.Err()
	}
	if err := all(t.Context(), zktest.Run(t).Addr(), work); err != nil {
		t.Error(err)
	}
	if got, want := done.Load(), int32(14); got != want { // a function that was refused returns nil without it
		t.Errorf("%d functions did their work, want %d", got, want)
	}
}
