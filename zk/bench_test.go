package zk_test

import (
	"context"
	"testing"
	"time"

	zookeeper "github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/zk"
)

// BenchmarkRequests measures the client against a ZooKeeper in another process, so that the allocations counted are the
// client's.
func BenchmarkRequests(b *testing.B) {
	ctx := context.Background()
	servers := zookeeper.ZooKeeper(b, zookeeper.Options{}).ConnectString()
	c, err := zk.Open(ctx, zk.Config{Servers: servers, Timeout: 30 * time.Second})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	s, err := c.Session(ctx)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("exists", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := s.Exists(ctx, "/zookeeper"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("set", func(b *testing.B) {
		if _, err := s.Create(ctx, "/set", nil, zk.Persistent); err != nil && zk.OutcomeOf(err) != zk.Refused {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Set(ctx, "/set", nil, -1); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("cycle", func(b *testing.B) { // what a free lock costs: the next create leaves with the delete before it
		if _, err := s.Create(ctx, "/cycle", nil, zk.Persistent); err != nil && zk.OutcomeOf(err) != zk.Refused {
			b.Fatal(err)
		}
		b.ReportAllocs()
		batch := s.Batch()
		for b.Loop() {
			created := batch.Create("/cycle/_c_0123456789-lock-", nil, zk.EphemeralSequential)
			children := batch.Children("/cycle")
			batch.Send()
			node, err := created.Get(ctx)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := children.Get(ctx); err != nil {
				b.Fatal(err)
			}
			batch.Delete(node.Path, -1)
			batch.Send()
		}
	})
	b.Run("exists-256", func(b *testing.B) {
		b.ReportAllocs()
		b.SetParallelism(128)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, _, err := s.Exists(ctx, "/zookeeper"); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
}
