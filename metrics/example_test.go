package metrics_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/metrics"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// A program's own hooks and the metrics are called about the same lock.
func ExampleNew() {
	ctx := context.Background()
	err := func() error {
		srv, err := zktest.Start() // your program connects to your ensemble
		if err != nil {
			return err
		}
		defer srv.Close()
		registry := prometheus.NewRegistry() // or none, and all is in prometheus.DefaultRegisterer
		m, err := metrics.New(metrics.Config{Registerer: registry})
		if err != nil {
			return err
		}
		client, err := zk.Open(ctx, zk.Config{Servers: srv.Addr(), Hooks: m.ZK()})
		if err != nil {
			return err
		}
		defer client.Close()

		own := lock.Hooks{Acquired: func(_ context.Context, e lock.Event) { fmt.Println("acquired", e.Path) }}
		mutex, err := lock.NewMutex(client, "/jobs/import-42", lock.Config{Hooks: own.And(m.Lock())})
		if err != nil {
			return err
		}
		hold, err := mutex.Lock(ctx)
		if err != nil {
			return err
		}
		defer hold.Unlock()

		scrape := httptest.NewRecorder() // in a program: http.Handle("/metrics", promhttp.Handler())
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).
			ServeHTTP(scrape, httptest.NewRequestWithContext(ctx, "GET", "/metrics", nil))
		for line := range strings.Lines(scrape.Body.String()) {
			if strings.HasPrefix(line, "turnstile_lock_held{") {
				fmt.Print(line)
			}
		}
		return nil
	}()
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// acquired /jobs/import-42
	// turnstile_lock_held{kind="exclusive",lock="/jobs/import-*"} 1
}
