package barrier_test

// A server, and time, for one test.

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/barrier"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

const (
	path    = "/app/barrier"
	timeout = 20 * time.Second
)

// world is a server, and time, that belong to one test: nothing here takes real time, and what waits is known to wait.
type world struct {
	*zktest.Server
	t *testing.T
}

func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		test(t, &world{srv, t})
	}, zktest.SessionTimeouts(time.Second, time.Minute))
}

// children returns the names of a node's children, sorted; nothing if there is no such node.
func (w *world) children(path string) []string {
	w.t.Helper()
	sess := w.Session(w.t, timeout)
	if err := sess.Sync(w.t.Context(), path); err != nil {
		w.t.Fatal(err)
	}
	names, _, err := sess.Children(w.t.Context(), path)
	if err != nil && !isNoNode(err) {
		w.t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

func (w *world) wantChildren(path string, want ...string) {
	w.t.Helper()
	if got := w.children(path); !slices.Equal(got, want) {
		w.t.Errorf("got children %q of %s, want %q", got, path, want)
	}
}

func session(t *testing.T, client *zk.Client) *zk.Session {
	t.Helper()
	sess, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return sess
}

// create creates a persistent node and its parents.
func (w *world) create(paths ...string) {
	w.t.Helper()
	sess := w.Session(w.t, timeout)
	for _, path := range paths {
		if _, err := sess.Create(w.t.Context(), path, nil, zk.Persistent); err != nil {
			w.t.Fatal(err)
		}
	}
}

// task is a call in the background.
type task[T any] struct {
	done  chan struct{}
	value T
	err   error
}

func background[T any](f func() (T, error)) *task[T] {
	k := &task[T]{done: make(chan struct{})}
	go func() {
		defer close(k.done)
		k.value, k.err = f()
	}()
	return k
}

func (k *task[T]) over() bool {
	synctest.Wait()
	select {
	case <-k.done:
		return true
	default:
		return false
	}
}

func (k *task[T]) wantOver(t *testing.T) T {
	t.Helper()
	if !k.over() {
		t.Fatal("still waits")
	}
	if k.err != nil {
		t.Fatal(k.err)
	}
	return k.value
}

func (k *task[T]) wantWaiting(t *testing.T) {
	t.Helper()
	if k.over() {
		t.Fatalf("does not wait: %v", k.err)
	}
}

// double returns a double barrier with a client of its own.
func (w *world) double(parties int) *barrier.Double {
	w.t.Helper()
	return newDouble(w.t, w.Client(w.t, timeout), parties)
}

func newDouble(t *testing.T, client *zk.Client, parties int) *barrier.Double {
	t.Helper()
	d, err := barrier.NewDouble(client, path, parties, barrier.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func enter(ctx context.Context, d *barrier.Double) *task[*barrier.Member] {
	return background(func() (*barrier.Member, error) { return d.Enter(ctx) })
}

func leave(ctx context.Context, m *barrier.Member) *task[struct{}] {
	return background(func() (struct{}, error) { return struct{}{}, m.Leave(ctx) })
}

// enterAll lets all parties enter, and returns their memberships.
func enterAll(t *testing.T, doubles ...*barrier.Double) []*barrier.Member {
	t.Helper()
	var tasks []*task[*barrier.Member]
	for _, d := range doubles {
		tasks = append(tasks, enter(t.Context(), d))
	}
	var list []*barrier.Member
	for _, k := range tasks {
		list = append(list, k.wantOver(t))
	}
	return list
}

func leaveAll(t *testing.T, list ...*barrier.Member) {
	t.Helper()
	var tasks []*task[struct{}]
	for _, m := range list {
		tasks = append(tasks, leave(t.Context(), m))
	}
	for _, k := range tasks {
		k.wantOver(t)
	}
}
