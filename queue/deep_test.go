package queue_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/server"
	"github.com/seed-a3166700/turnstile/zk"
)

const (
	// itemsEnv says how many items TestDeepQueueSurvivesKills puts.
	itemsEnv = "TURNSTILE_ITEMS"
	// serveEnv makes the test binary a server in the directory that it holds, to be killed.
	serveEnv = "TURNSTILE_TEST_SERVE"

	// smallPacket is the largest request that the deep queue's server accepts, and the largest reply that its client
	// does: a list of a few tens of thousands of names is more.
	smallPacket = 256 << 10
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(serveEnv); dir != "" {
		cfg := server.Config{Listen: []string{"unix:" + dir + "/sock"}, Data: dir + "/data", MaxFrame: smallPacket}
		s, err := server.Start(context.Background(), cfg)
		peer.Serving(err)
		<-s.Done()
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// mortal is a server in a process of its own, with its state on disk.
type mortal struct {
	t   *testing.T
	dir string
	cmd *exec.Cmd
}

func newMortal(t *testing.T) *mortal {
	t.Helper()
	dir, err := os.MkdirTemp("", "tq") //nolint:usetesting // the test's own directory has too long a name for a socket
	if err != nil {
		t.Fatal(err)
	}
	m := &mortal{t: t, dir: dir}
	t.Cleanup(func() {
		m.kill()
		_ = os.RemoveAll(dir)
	})
	m.start()
	return m
}

func (m *mortal) start() {
	m.t.Helper()
	m.cmd = peer.Rerun(m.t, serveEnv+"="+m.dir)
}

// kill ends the server as kill -9 does.
func (m *mortal) kill() {
	if m.cmd == nil {
		return
	}
	_ = m.cmd.Process.Kill()
	_ = m.cmd.Wait() // it says that it was killed
	m.cmd = nil
}

// A queue far deeper than any list that fits into a packet is put, taken and acknowledged, and its server is killed
// in the middle of both: every item that was acknowledged is there, none comes back after it is done, and no request
// or reply exceeds a packet a quarter of the usual size.
//
// The speed at each depth is in the log.
//
// Promise: 7
func TestDeepQueueSurvivesKills(t *testing.T) {
	t.Parallel()
	const batch = 5000
	n := soak.Pick(10_000, 100_000)
	if text := os.Getenv(itemsEnv); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < batch {
			t.Fatalf("%s is %q, want a number of items, %d at least", itemsEnv, text, batch)
		}
	}
	srv := newMortal(t)
	cfg := zk.Config{Servers: "unix:" + srv.dir + "/sock", Timeout: 40 * time.Second, MaxFrame: smallPacket}
	client, err := zk.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() }) // the server may be gone
	var count atomic.Int64
	half := make(chan struct{}, 1)
	passed := func(items int) {
		if c := count.Add(int64(items)); c >= int64(n/2) && c-int64(items) < int64(n/2) {
			half <- struct{}{}
		}
	}
	q, err := queue.New(client, root, queue.Config{MaxPacket: smallPacket, Hooks: queue.Hooks{
		Put:  func(_ context.Context, _ string, items int) { passed(items) },
		Done: func(context.Context, *queue.Item) { passed(1) },
	}})
	if err != nil {
		t.Fatal(err)
	}
	// halfway kills the server while f is in the middle of it, and starts it again.
	halfway := func(f func()) {
		t.Helper()
		count.Store(0)
		finished := make(chan struct{})
		go func() {
			defer close(finished)
			f()
		}()
		select {
		case <-half:
			srv.kill()
			srv.start()
		case <-finished:
			t.Fatal("did not get half way")
		}
		<-finished
	}

	start := time.Now()
	halfway(func() {
		for i := 0; i < n; i += batch {
			messages := make([]queue.Message, min(batch, n-i))
			for k := range messages {
				messages[k].Body = fmt.Appendf(nil, "%0100d", i+k)
			}
			if _, err := q.PutBatch(t.Context(), messages); err != nil {
				t.Errorf("put of the items from %d on: %v", i, err)
				return
			}
		}
	})
	took := time.Since(start).Round(time.Millisecond)
	t.Logf("%d items put in %v, with a kill half way: %.0f/s", n, took, perSec(n, start))
	wantLen(t, q, queue.Counts{Ready: n})

	d := drain{t: t, q: q, seen: make([]int, n), finished: make([]bool, n)}
	d.one(n / 60)
	halfway(func() { d.crowd(n - n/30) })
	d.one(n - d.taken)
	wantEmpty(t, q)
	wantLen(t, q, queue.Counts{})
	for i, finished := range d.finished {
		if !finished {
			t.Fatalf("item %d of %d was not finished; it was delivered %d times", i, n, d.seen[i])
		}
	}
	if err := q.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func perSec(n int, start time.Time) float64 { return float64(n) / time.Since(start).Seconds() }

// drain takes items and judges what it gets.
type drain struct {
	t *testing.T
	q *queue.Queue

	mu       sync.Mutex // guards what follows
	seen     []int      // how often each was delivered
	finished []bool
	taken    int // how many were finished
}

func (d *drain) delivered(item *queue.Item) int {
	i, err := strconv.Atoi(string(item.Body()))
	if err != nil || i < 0 || i >= len(d.seen) {
		d.t.Errorf("got item %q", item.Body())
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.finished[i] {
		d.t.Errorf("item %d was delivered again after Done", i)
	}
	d.seen[i]++
	return i
}

func (d *drain) done(i int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.finished[i] = true
	d.taken++
}

// one takes n items and acknowledges them, one after the other, in their order.
func (d *drain) one(n int) {
	d.t.Helper()
	start, last := time.Now(), -1
	for range n {
		item := take(d.t, d.q)
		i := d.delivered(item)
		if i <= last {
			d.t.Errorf("item %d came after %d", i, last)
		}
		last = i
		done(d.t, item)
		d.done(i)
	}
	d.t.Logf("one consumer: %.0f/s at depth %d", perSec(n, start), len(d.seen)-d.taken)
}

// crowd takes n items with 16 workers.
func (d *drain) crowd(n int) {
	ctx, stop := context.WithCancel(d.t.Context())
	defer stop()
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	start := time.Now()
	for range 16 {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				item, err := d.q.Take(ctx)
				if err != nil {
					d.t.Errorf("take: %v", err)
					return
				}
				i := d.delivered(item)
				err = item.Done(ctx)
				switch {
				case errors.Is(err, queue.ErrClaimLost): // its session has ended: it comes again
					left.Add(1)
				case err != nil:
					d.t.Errorf("done: %v", err)
				default:
					d.done(i)
				}
			}
		})
	}
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		d.watch(ctx, n)
	}()
	wg.Wait()
	stop()
	<-watching
	d.t.Logf("16 workers, with a kill half way: %.0f/s", perSec(n, start))
}

// watch logs the pace of a crowd.
func (d *drain) watch(ctx context.Context, n int) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	start, step := time.Now(), n/20
	d.mu.Lock()
	at := d.taken
	d.mu.Unlock()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		d.mu.Lock()
		now := d.taken
		d.mu.Unlock()
		if now-at >= step {
			d.t.Logf("16 workers: %.0f/s at depth %d", perSec(now-at, start), len(d.seen)-now)
			at, start = now, time.Now()
		}
	}
}
