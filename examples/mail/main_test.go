package main

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/seed-a3166700/turnstile/zktest"
)

func TestMailThatFailsOnceIsSentAgainAndAllAreSent(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	if err := open(t.Context(), srv.Addr(), []string{"ada", "grace"}, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	calls := make(chan string, 10)
	failed := make(chan struct{}, 1)
	send := func(_ context.Context, to string) error {
		if to == "ada" {
			select {
			case failed <- struct{}{}:
				return errors.New("not now")
			default:
			}
		}
		calls <- to
		return nil
	}
	var sent []string
	go func() {
		defer cancel()
		for range 2 {
			sent = append(sent, <-calls)
		}
	}()
	if err := open(ctx, srv.Addr(), nil, send); err != nil {
		t.Fatal(err)
	}
	if slices.Sort(sent); !slices.Equal(sent, []string{"ada", "grace"}) {
		t.Errorf("sent to %q, want ada and grace", sent)
	}
}
