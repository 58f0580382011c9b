package queue_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

const root = "/queues/mail"

// world is a server, and time, that belong to one test: nothing here takes real time, and what waits is known to wait.
type world struct {
	*zktest.Server
	t *testing.T
}

func inWorld(t *testing.T, test func(t *testing.T, w *world), opts ...zktest.Option) {
	t.Helper()
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		test(t, &world{srv, t})
	}, append([]zktest.Option{zktest.SessionTimeouts(time.Second, time.Minute)}, opts...)...)
}

// queue returns a queue of its own client, which is another process as far as the server knows.
func (w *world) queue(cfg queue.Config) *queue.Queue {
	w.t.Helper()
	q, err := queue.New(w.Client(w.t, 20*time.Second), root, cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = q.Close(ctx) // a test may have closed the client
	})
	return q
}

// queueWithSmallFrames returns a queue whose client accepts no reply of more than 64 KiB.
func (w *world) queueWithSmallFrames() *queue.Queue {
	w.t.Helper()
	cfg := w.Config(20 * time.Second)
	cfg.MaxFrame = 64 << 10
	client, err := zk.Open(w.t.Context(), cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = client.Close() })
	q, err := queue.New(client, root, queue.Config{})
	if err != nil {
		w.t.Fatal(err)
	}
	return q
}

// queueAndSession returns a queue of its own client, with the client's session. It is not closed.
func (w *world) queueAndSession() (*queue.Queue, *zk.Session) {
	w.t.Helper()
	client := w.Client(w.t, 20*time.Second)
	q, err := queue.New(client, root, queue.Config{})
	if err != nil {
		w.t.Fatal(err)
	}
	sess, err := client.Session(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return q, sess
}

// oneIn returns a fault for one request in n on average, of all clients. It is not every n-th: n may be the number of
// requests in an attempt to build the queue's nodes, and then each attempt would fail at the same request.
func oneIn(n int, fault zktest.Fault) func(zktest.Request) zktest.Fault {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(1, uint64(n)))
	return func(zktest.Request) zktest.Fault {
		mu.Lock()
		defer mu.Unlock()
		if random.IntN(n) == 0 {
			return fault
		}
		return zktest.Pass
	}
}

// login returns a client that has logged in, and its session.
func (w *world) login(t *testing.T) (*zk.Client, *zk.Session) {
	t.Helper()
	client := w.Client(t, 20*time.Second)
	sess, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := sess.AddAuth(t.Context(), zk.Digest("u", "p")); err != nil {
		t.Fatal(err)
	}
	return client, sess
}

// pass lets time pass in the bubble.
func pass(d time.Duration) { time.Sleep(d) }

// put puts m with the given body, and returns the item's id.
func put(t *testing.T, q *queue.Queue, body string, m queue.Message) string {
	t.Helper()
	m.Body = []byte(body)
	id, err := q.Put(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func putAll(t *testing.T, q *queue.Queue, from, to int) {
	t.Helper()
	var messages []queue.Message
	for i := from; i < to; i++ {
		messages = append(messages, queue.Message{Body: fmt.Appendf(nil, "%d", i)})
	}
	ids, err := q.PutBatch(t.Context(), messages)
	if err != nil || len(ids) != to-from {
		t.Fatalf("got %d ids, %v", len(ids), err)
	}
}

func take(t *testing.T, q *queue.Queue) *queue.Item {
	t.Helper()
	item, err := q.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return item
}

// takeAll takes and finishes whatever is ready, and calls look with each item.
func takeAll(t *testing.T, q *queue.Queue, look func(*queue.Item)) {
	t.Helper()
	for {
		item, err := q.TryTake(t.Context())
		if errors.Is(err, queue.ErrEmpty) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		look(item)
		done(t, item)
	}
}

// doneInOrder takes and finishes the items of putAll from one number up to another, and wants them in this order.
func doneInOrder(t *testing.T, q *queue.Queue, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		item := take(t, q)
		wantBody(t, item, strconv.Itoa(i))
		done(t, item)
	}
}

// takeInto is take for a goroutine of its own.
func takeInto(t *testing.T, q *queue.Queue, got chan<- *queue.Item) {
	item, err := q.Take(t.Context())
	if err != nil {
		t.Error(err)
	}
	got <- item
}

func wantBody(t *testing.T, item *queue.Item, want string) {
	t.Helper()
	if got := string(item.Body()); got != want {
		t.Fatalf("got item %q, want %q", got, want)
	}
}

func done(t *testing.T, item *queue.Item) {
	t.Helper()
	if err := item.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func wantEmpty(t *testing.T, q *queue.Queue) {
	t.Helper()
	item, err := q.TryTake(t.Context())
	if !errors.Is(err, queue.ErrEmpty) {
		t.Fatalf("got %v, %v, want ErrEmpty", item, err)
	}
}

func wantLen(t *testing.T, q *queue.Queue, want queue.Counts) {
	t.Helper()
	got, err := q.Len(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Fatalf("got %+v, want %+v", got, want)
	}
}
