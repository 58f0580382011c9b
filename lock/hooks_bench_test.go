package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zktest"
)

// What hooks cost an acquisition in memory, which is the fastest there is.
func BenchmarkHooks(b *testing.B) {
	all := lock.Hooks{
		Enqueued: func(context.Context, lock.Event) {},
		Acquired: func(context.Context, lock.Event) {},
		Failed:   func(context.Context, lock.Event) {},
		Released: func(lock.Event) {},
		Lost:     func(lock.Event) {},
	}
	for name, hooks := range map[string]lock.Hooks{"none": {}, "all": all} {
		cfg := lock.Config{Retain: time.Minute, Hooks: hooks}
		m, err := lock.NewMutex(zktest.Run(b).Client(b, 10*time.Second), path, cfg)
		if err != nil {
			b.Fatal(err)
		}
		cycle := func() {
			h, err := m.Lock(b.Context())
			if err != nil {
				b.Error(err)
				return
			}
			_ = h.Unlock()
		}
		b.Run("retained/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				cycle()
			}
		})
		b.Run("handoff/"+name, func(b *testing.B) {
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
