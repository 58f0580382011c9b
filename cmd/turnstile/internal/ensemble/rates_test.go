package ensemble_test

import (
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zktest"
)

// A rate is of the last ten seconds; at the first look, and after a long time without one, there is none.
func TestRatesAreThoseOfTheLastSeconds(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		ctx, client := t.Context(), srv.Client(t, 20*time.Second)
		q, err := queue.New(client, "/q", queue.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close(ctx)
		var rates ensemble.Rates
		look := func() {
			t.Helper()
			s, err := queue.Summarize(ctx, client, "/q", 0)
			if err != nil {
				t.Fatal(err)
			}
			rates = rates.After(s, time.Now())
		}
		put := func(n int) {
			t.Helper()
			if _, err := q.PutBatch(ctx, make([]queue.Message, n)); err != nil {
				t.Fatal(err)
			}
		}
		check := func(in, out float64) {
			t.Helper()
			if !rates.Known || rates.In != in || rates.Out != out {
				t.Errorf("got %v, %v, %v, want %v and %v", rates.Known, rates.In, rates.Out, in, out)
			}
		}
		put(100)
		look()
		if rates.Known {
			t.Error("the first look tells a rate")
		}
		put(10)
		time.Sleep(2 * time.Second) // in a bubble
		look()
		check(5, 0)
		item, err := q.Take(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := item.Done(ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second) // in a bubble
		look()
		check(2.5, 0.25)
		time.Sleep(12 * time.Second) // in a bubble
		look()
		check(0, 0)
		time.Sleep(time.Hour) // in a bubble
		put(3600)
		look()
		if rates.Known {
			t.Errorf("after an hour without a look it tells a rate of %v", rates.In)
		}
	})
}

func TestNumbersAreShort(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{
		0: "0", 999_999: "999999", 1_234_567: "1234k", 99_999_999: "99999k", 100_000_000: "100M", 1 << 62: "99999M",
	} {
		if got := ensemble.Count(n); got != want || len(got) > 6 {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
	for n, want := range map[float64]string{
		0: "0", 0.04: "<0.1", 0.1: "0.1", 9.94: "9.9", 9.96: "10", 431.6: "432", 99_999: "99999", 1e5: "100k",
		1e300: "9999k",
	} {
		if got := ensemble.Rate(n); got != want || len(got) > 6 {
			t.Errorf("%v: got %q, want %q", n, got, want)
		}
	}
}
