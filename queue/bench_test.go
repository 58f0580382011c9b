package queue_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
)

// benchQueue returns a queue on an Apache ZooKeeper of the benchmark's own, whose disk is a real one.
func benchQueue(b *testing.B) *queue.Queue {
	b.Helper()
	server := peer.ZooKeeper(b, peer.Options{Fast: true, Heap: "512m", Tick: 2 * time.Second})
	client, err := zk.Open(b.Context(), zk.Config{Servers: server.Addr(0)})
	if err != nil {
		b.Fatal(err)
	}
	q, err := queue.New(client, root, queue.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := q.Close(context.Background()); err != nil {
			b.Error(err)
		}
		if err := client.Close(); err != nil {
			b.Error(err)
		}
	})
	// A Java server answers its first tens of thousands of requests at a third of its speed.
	const warm = 30_000
	fill(b, q, warm)
	consume16(b, q, warm)
	return q
}

func fill(b *testing.B, q *queue.Queue, n int) {
	b.Helper()
	messages := make([]queue.Message, n)
	for i := range messages {
		messages[i].Body = make([]byte, 100)
	}
	if _, err := q.PutBatch(b.Context(), messages); err != nil {
		b.Fatal(err)
	}
}

// perSecond reports items a second.
func perSecond(b *testing.B, items int) {
	b.Helper()
	b.ReportMetric(float64(items)/b.Elapsed().Seconds(), "items/s")
}

func BenchmarkPut(b *testing.B) {
	q := benchQueue(b)
	body := make([]byte, 100)
	for b.Loop() {
		if _, err := q.Put(b.Context(), queue.Message{Body: body}); err != nil {
			b.Fatal(err)
		}
	}
	perSecond(b, b.N)
}

func BenchmarkPutBatch(b *testing.B) {
	q := benchQueue(b)
	const items = 10_000
	for b.Loop() {
		fill(b, q, items)
	}
	perSecond(b, items*b.N)
}

// One consumer takes an item and acknowledges it, one after the other, while the queue keeps its depth.
func BenchmarkTakeDone(b *testing.B) {
	for _, depth := range []int{100, 1_000, 10_000, 100_000} {
		b.Run(strconv.Itoa(depth), func(b *testing.B) {
			q := benchQueue(b)
			fill(b, q, depth)
			left := depth
			for b.Loop() {
				if left == depth/2 {
					b.StopTimer()
					fill(b, q, depth-left)
					left = depth
					b.StartTimer()
				}
				left--
				item, err := q.Take(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				if err := item.Done(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			perSecond(b, b.N)
		})
	}
}

func BenchmarkTakeDone16InFlight(b *testing.B) {
	for _, depth := range []int{100, 1_000, 10_000, 100_000} {
		b.Run(strconv.Itoa(depth), func(b *testing.B) {
			q := benchQueue(b)
			fill(b, q, depth)
			const items = 20_000
			for b.Loop() {
				work(b, q, items, depth)
			}
			perSecond(b, items*b.N)
		})
	}
}

// One consumer takes a hundred items at once and acknowledges them at once.
func BenchmarkTakeBatchDoneAll(b *testing.B) {
	q := benchQueue(b)
	const items, batch = 20_000, 100
	for b.Loop() {
		b.StopTimer()
		fill(b, q, items)
		b.StartTimer()
		for left := items; left > 0; {
			list, err := q.TakeBatch(b.Context(), batch)
			if err == nil {
				err = q.DoneAll(b.Context(), list)
			}
			if err != nil {
				b.Fatal(err)
			}
			left -= len(list)
		}
	}
	perSecond(b, items*b.N)
}

// work lets 16 workers finish n items of a queue that is refilled from below half of its depth.
func work(b *testing.B, q *queue.Queue, n, depth int) {
	b.Helper()
	for n > 0 {
		part := min(n, depth/2)
		consume16(b, q, part)
		n -= part
		b.StopTimer()
		fill(b, q, part)
		b.StartTimer()
	}
}

// consume16 lets 16 workers finish n items.
func consume16(b *testing.B, q *queue.Queue, n int) {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				item, err := q.Take(b.Context())
				if err == nil {
					err = item.Done(context.Background())
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}
