package queue_test

import (
	"errors"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
)

func TestErrorsNameTheFieldAndItsValue(t *testing.T) {
	t.Parallel()
	client, err := zk.Open(t.Context(), zk.Config{Servers: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for want, cfg := range map[string]queue.Config{
		"queue: Linger must not be negative: -1s; zero is 1s":                  {Linger: -time.Second},
		"queue: KeepKeys must not be negative: -1m0s; zero is 24h0m0s":         {KeepKeys: -time.Minute},
		"queue: Backoff.First must not be negative: -2s; zero is 1s":           {Backoff: queue.Backoff{First: -2e9}},
		"queue: Backoff.Max must not be less than Backoff.First: 500ms and 1s": {Backoff: queue.Backoff{Max: 5e8}},
		"queue: MaxDead must not be negative: -1; zero is no bound":            {MaxDead: -1},
		"queue: KeepDead must not be negative: -1ns; zero is no bound":         {KeepDead: -1},
	} {
		if _, err := queue.New(client, "/q", cfg); !errors.Is(err, zk.BadArguments) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
