package cache_test

// How long a load takes, and how much memory a node needs.

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/seed-a3166700/turnstile/cache"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// fill creates a tree of n nodes below root, a hundred in each directory, with data of 16 bytes.
func fill(tb testing.TB, sess *zk.Session, root string, n int) {
	tb.Helper()
	if _, err := sess.Create(tb.Context(), root, nil, zk.Persistent); err != nil {
		tb.Fatal(err)
	}
	var flight []*zk.Future[[]zk.Result]
	for i := 0; i < n; {
		dir := fmt.Sprintf("%s/dir%05d", root, i/100)
		ops := []zk.Op{zk.CreateOp(dir, nil, zk.Persistent)}
		for range 100 {
			path := fmt.Sprintf("%s/node%08d", dir, i)
			ops = append(ops, zk.CreateOp(path, []byte("sixteen bytes..."), zk.Persistent))
			i++
		}
		b := sess.Batch()
		flight = append(flight, b.Multi(ops...))
		b.Send()
		if len(flight) > 32 {
			if _, err := flight[0].Get(tb.Context()); err != nil {
				tb.Fatal(err)
			}
			flight = flight[1:]
		}
	}
	for _, f := range flight {
		if _, err := f.Get(tb.Context()); err != nil {
			tb.Fatal(err)
		}
	}
}

// nodes returns how many nodes the benchmarks load: NODES, or 100,000.
func nodes() int {
	if n, err := strconv.Atoi(os.Getenv("NODES")); err == nil {
		return n
	}
	return 100_000
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkLoad(b *testing.B) {
	n := nodes()
	srv := zktest.Run(b)
	fill(b, srv.Session(b, timeout), "/t", n)
	client := srv.Client(b, timeout)
	if _, err := client.Session(b.Context()); err != nil {
		b.Fatal(err)
	}
	before := heap()
	for b.Loop() {
		tree, err := cache.OpenTree(client, "/t", cache.Config{})
		if err != nil {
			b.Fatal(err)
		}
		if err := tree.WaitSynced(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if got := tree.View().Len(); got != n+n/100+1 {
			b.Fatalf("got %d nodes", got)
		}
		b.ReportMetric(float64(heap()-before)/float64(n), "B/node")
		tree.Close()
		b.StartTimer()
	}
}

func BenchmarkGet(b *testing.B) {
	srv := zktest.Run(b)
	fill(b, srv.Session(b, timeout), "/t", nodes())
	tree, err := cache.OpenTree(srv.Client(b, timeout), "/t", cache.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer tree.Close()
	if err := tree.WaitSynced(b.Context()); err != nil {
		b.Fatal(err)
	}
	i := 0
	for b.Loop() {
		i = (i + 7919) % nodes()
		if _, ok := tree.Get(fmt.Sprintf("/t/dir%05d/node%08d", i/100, i)); !ok {
			b.Fatal(i)
		}
	}
}
