package interop_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/queue/classic"
	"github.com/seed-a3166700/turnstile/zk"
)

// bench is the environment of a kind's test.
type bench struct {
	*testing.T
	kind   classicKind
	client *zk.Client
	peer   *queuePeer
}

func (b *bench) ours(test string) classicQueue {
	b.Helper()
	q, err := b.kind.open(b.client, b.kind.path(test), b.kind.locks(test))
	if err != nil {
		b.Fatal(err)
	}
	return q
}

// TestClassicQueuesBesideTheirOriginals puts and takes the items of one queue with ours and with the original.
//
// Promise: 7
func TestClassicQueuesBesideTheirOriginals(t *testing.T) {
	t.Parallel()
	onEachKind(t, func(b *bench) {
		b.theyPutAndWeTake()
		b.wePutAndTheyTake()
		b.allTakeEachOnce()
	})
}

// onEachKind runs f for each kind of queue on each host.
func onEachKind(t *testing.T, f func(b *bench)) {
	t.Helper()
	needJava(t)
	peer.Need(t, python, kazooDir)
	onEach(t, options{}, func(t *testing.T, h *host) {
		t.Helper()
		client := classicClient(t, h, queueSession)
		java, kazoo := javaQueues(t, h, queueSession), kazooQueues(t, h, queueSession)
		for _, k := range classicKinds() {
			t.Run(k.String(), func(t *testing.T) {
				b := &bench{T: t, kind: k, client: client, peer: java}
				if !k.java {
					b.peer = kazoo
				}
				f(b)
			})
		}
	})
}

func classicClient(t *testing.T, h *host, session time.Duration) *zk.Client {
	t.Helper()
	client, err := zk.Open(t.Context(), zk.Config{Servers: h.addr, Timeout: session})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() }) // its server may be gone
	return client
}

func (b *bench) theyPutAndWeTake() {
	b.Helper()
	const n = 20
	name, ours := b.kind.tell(b.T, b.peer, "theirs", ""), b.ours("theirs")
	for i := range n {
		b.peer.order(b.T, "put %s %s item%d", name, b.kind.arg(i), i)
	}
	var got []string
	for range n {
		body, done, err := ours.take(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if err := done(b.Context()); err != nil {
			b.Fatal(err)
		}
		got = append(got, body)
	}
	if want := b.kind.ordered(n); !slices.Equal(got, want) {
		b.Errorf("got %q from our queue, want %q", got, want)
	}
	if b.kind.poll {
		if answer := b.peer.order(b.T, "poll %s", name); answer != "none" {
			b.Errorf("got %q from the peer at the end, want none", answer)
		}
	}
}

func (b *bench) wePutAndTheyTake() {
	b.Helper()
	const n = 20
	ours := b.ours("ours")
	for i := range n {
		if err := ours.put(b.Context(), b.kind.arg(i), fmt.Sprintf("item%d", i)); err != nil {
			b.Fatal(err)
		}
	}
	name := b.kind.tell(b.T, b.peer, "ours", "")
	b.peer.order(b.T, "consume %s", name)
	var got []string
	for range n {
		got = append(got, b.peer.next(b.T, name))
	}
	b.peer.order(b.T, "stop %s", name)
	if want := b.kind.ordered(n); !slices.Equal(got, want) {
		b.Errorf("got %q from the peer, want %q", got, want)
	}
}

// allTakeEachOnce has two consumers and a producer of either side on one queue.
func (b *bench) allTakeEachOnce() {
	b.Helper()
	const each = 60
	ours := b.ours("both")
	// ZooKeeper's own queues race for the creation of the directory, and fail.
	if err := ours.put(b.Context(), b.kind.arg(0), "first"); err != nil {
		b.Fatal(err)
	}
	names := []string{b.kind.tell(b.T, b.peer, "both", "-1"), b.kind.tell(b.T, b.peer, "both", "-2")}
	got := make(chan string, 4*each)
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for range 2 {
		wg.Go(func() {
			for {
				body, done, err := ours.take(ctx)
				if err != nil {
					b.unlessOver(ctx, err)
					return
				}
				if err := done(context.WithoutCancel(ctx)); err != nil {
					b.Error(err)
				}
				got <- "we " + body
			}
		})
	}
	for _, name := range names {
		b.peer.order(b.T, "consume %s", name)
		wg.Go(func() {
			for {
				select {
				case body := <-b.peer.items(name):
					got <- "they " + body
				case <-ctx.Done():
					return
				}
			}
		})
	}
	wg.Go(func() {
		for i := range each {
			if err := ours.put(ctx, b.kind.arg(i), fmt.Sprintf("ours%d", i)); err != nil {
				b.unlessOver(ctx, err)
				return
			}
		}
	})
	for i := range each {
		b.peer.order(b.T, "put %s %s theirs%d", names[0], b.kind.arg(i), i)
	}
	seen, by := map[string]int{}, map[string]int{}
	for range 2*each + 1 {
		select {
		case line := <-got:
			who, body, _ := strings.Cut(line, " ")
			seen[body]++
			by[who]++
		case <-b.peer.ended:
			b.Fatalf("the peer's process has ended; got %d of %d items", len(seen), 2*each+1)
		case <-time.After(queuePatience):
			b.Fatalf("got %d of %d items", len(seen), 2*each+1)
		}
	}
	for _, name := range names {
		b.peer.order(b.T, "stop %s", name)
	}
	cancel()
	wg.Wait()
	for _, name := range names {
		for len(b.peer.items(name)) > 0 {
			got <- "they " + <-b.peer.items(name)
		}
	}
	close(got)
	for line := range got {
		_, body, _ := strings.Cut(line, " ")
		seen[body]++
	}
	for body, times := range seen {
		if times != 1 {
			b.Errorf("got %s %d times, want once", body, times)
		}
	}
	b.Logf("taken by %v", by)
}

// unlessOver reports an error of one of the test's goroutines, unless the end of the test is the reason.
func (b *bench) unlessOver(ctx context.Context, err error) {
	b.Helper()
	if ctx.Err() == nil {
		b.Error(err)
	}
}

// TestElementsOfOneNodeAreReadByCuratorAndUs puts several bodies in one node.
//
// Promise: 7
func TestElementsOfOneNodeAreReadByCuratorAndUs(t *testing.T) {
	t.Parallel()
	onEachKind(t, func(b *bench) {
		if !b.kind.java || slices.Contains([]string{"simple", "zookeeper", "id"}, b.kind.name) {
			return // one body in each node
		}
		ours, name := b.ours("multi"), b.kind.tell(b.T, b.peer, "multi", "")
		b.peer.order(b.T, "put %s %s one two three", name, b.kind.arg(0))
		body, done, err := ours.take(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if body != "one two three" {
			b.Errorf("got %q from our queue", body)
		}
		if err := done(b.Context()); err != nil {
			b.Fatal(err)
		}
		if err := ours.put(b.Context(), b.kind.arg(0), "four", "five"); err != nil {
			b.Fatal(err)
		}
		b.peer.order(b.T, "consume %s", name)
		for _, want := range []string{"four", "five"} {
			if got := b.peer.next(b.T, name); got != want {
				b.Errorf("got %q from the peer, want %q", got, want)
			}
		}
	})
}

// TestRemovalByIDCountsTheSameHereAndThere removes items of the other side by their ids.
//
// Promise: 7
func TestRemovalByIDCountsTheSameHereAndThere(t *testing.T) {
	t.Parallel()
	needJava(t)
	onEach(t, options{}, func(t *testing.T, h *host) {
		t.Helper()
		q, err := classic.NewCuratorID(classicClient(t, h, queueSession), "/ids", classic.Config{})
		if err != nil {
			t.Fatal(err)
		}
		java := javaQueues(t, h, queueSession)
		java.order(t, "open ids id /ids -")
		for i := range 6 {
			java.order(t, "put ids a/%d body%d", i%2, i)
			if err := q.Put(t.Context(), fmt.Sprintf("b|%d", i%2), fmt.Appendf(nil, "body%d", i)); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := q.Remove(t.Context(), "a/1"); n != 3 || err != nil {
			t.Errorf("got %d, %v removed by us, want 3", n, err)
		}
		t.Logf("Curator, asked for b|0, which it stores as b_0: %s", java.order(t, "remove ids b|0"))
		if answer := java.order(t, "remove ids b_1"); answer != "removed 3" {
			t.Errorf("got %q from Curator, want removed 3", answer)
		}
		left, err := q.Remove(t.Context(), "b|0")
		if err != nil || left != 3 {
			t.Errorf("got %d, %v of the others removed by us, want 3", left, err)
		}
		if n, err := q.Len(t.Context()); n != 3 || err != nil {
			t.Errorf("got %d, %v items left, want 3", n, err)
		}
	})
}
