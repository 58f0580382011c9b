package otel_test

import (
	"context"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/otel"
	"github.com/seed-a3166700/turnstile/zktest"
)

// What spans cost an acquisition in memory, which is the fastest there is: without hooks, in a program that has no
// tracing, with spans that are not sampled, and with spans that are recorded and dropped. A hand-off makes 6, 12, 16
// and 40 allocations.
func BenchmarkLock(b *testing.B) {
	recorded := sdk.NewTracerProvider(sdk.WithSampler(sdk.AlwaysSample()), sdk.WithSpanProcessor(sink{}))
	hooks := func(cfg otel.Config) lock.Hooks { return otel.New(cfg).Lock() }
	for _, row := range []struct {
		name  string
		hooks lock.Hooks
	}{
		{"none", lock.Hooks{}},
		{"noop", hooks(otel.Config{TracerProvider: noop.NewTracerProvider()})},
		{"unsampled", hooks(otel.Config{TracerProvider: sdk.NewTracerProvider(sdk.WithSampler(sdk.NeverSample()))})},
		{"recorded", hooks(otel.Config{TracerProvider: recorded})},
	} {
		client := zktest.Run(b).Client(b, 10*time.Second)
		mutex, err := lock.NewMutex(client, "/locks/hot", lock.Config{Retain: time.Minute, Hooks: row.hooks})
		if err != nil {
			b.Fatal(err)
		}
		cycle := func() {
			h, err := mutex.Lock(b.Context())
			if err != nil {
				b.Error(err)
				return
			}
			_ = h.Unlock()
		}
		b.Run("retained/"+row.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				cycle()
			}
		})
		b.Run("handoff/"+row.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(32)
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					cycle()
				}
			})
		})
	}
}

// A sink drops the spans that were recorded.
type sink struct{ sdk.SpanProcessor }

func (sink) OnStart(context.Context, sdk.ReadWriteSpan) {}
func (sink) OnEnd(sdk.ReadOnlySpan)                     {}
func (sink) Shutdown(context.Context) error             { return nil }
func (sink) ForceFlush(context.Context) error           { return nil }
