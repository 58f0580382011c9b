package classic_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/queue/classic"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

const (
	path    = "/queues/mail"
	locks   = "/queues/mail-locks"
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

// A queue is what all kinds can do.
type queue struct {
	put  func(ctx context.Context, body string) error
	take func(ctx context.Context, wait bool) (*taken, error)
}

type taken struct {
	body string
	item *classic.Item // nil for Simple
}

func (x *taken) done(ctx context.Context) error {
	if x.item == nil {
		return nil
	}
	return x.item.Done(ctx)
}

type kind struct {
	name  string
	locks bool   // whether items are locked, not removed, when they are taken
	dir   string // of the items
	open  func(client *zk.Client) (queue, error)
}

type taker interface {
	Take(ctx context.Context) (*classic.Item, error)
	TryTake(ctx context.Context) (*classic.Item, error)
}

func of(q taker, put func(ctx context.Context, body []byte) error) queue {
	return queue{
		put: func(ctx context.Context, body string) error { return put(ctx, []byte(body)) },
		take: func(ctx context.Context, wait bool) (*taken, error) {
			take := q.TryTake
			if wait {
				take = q.Take
			}
			item, err := take(ctx)
			if err != nil {
				return nil, err
			}
			return &taken{string(item.Body()), item}, nil
		},
	}
}

func openSimple(client *zk.Client) (queue, error) {
	q, err := classic.NewSimple(client, path, classic.Config{})
	return queue{
		put: func(ctx context.Context, body string) error { return q.Offer(ctx, []byte(body)) },
		take: func(ctx context.Context, wait bool) (*taken, error) {
			take := q.Remove
			if wait {
				take = q.Take
			}
			body, err := take(ctx)
			return &taken{body: string(body)}, err
		},
	}, err
}

// kinds is every kind of queue, each with and without locks where that is a choice.
func kinds() []kind {
	all := []kind{
		{name: "Simple", dir: path, open: openSimple},
		{name: "Kazoo", dir: path, open: func(c *zk.Client) (queue, error) {
			q, err := classic.NewKazoo(c, path, classic.Config{})
			return of(q, func(ctx context.Context, body []byte) error {
				return q.Put(ctx, body, classic.DefaultPriority)
			}), err
		}},
		{name: "KazooLocking", locks: true, dir: path + "/entries", open: func(c *zk.Client) (queue, error) {
			q, err := classic.NewKazooLocking(c, path, classic.Config{})
			return of(q, func(ctx context.Context, body []byte) error {
				return q.Put(ctx, body, classic.DefaultPriority)
			}), err
		}},
	}
	for _, lockPath := range []string{"", locks} {
		cfg, suffix := classic.Config{LockPath: lockPath}, ""
		if lockPath != "" {
			suffix = " with locks"
		}
		for name, open := range map[string]func(*zk.Client) (queue, error){
			"Curator": func(c *zk.Client) (queue, error) {
				q, err := classic.NewCurator(c, path, cfg)
				return of(q, q.Put), err
			},
			"CuratorPriority": func(c *zk.Client) (queue, error) {
				q, err := classic.NewCuratorPriority(c, path, cfg)
				return of(q, func(ctx context.Context, body []byte) error { return q.Put(ctx, 5, body) }), err
			},
			"CuratorDelay": func(c *zk.Client) (queue, error) {
				q, err := classic.NewCuratorDelay(c, path, cfg)
				return of(q, func(ctx context.Context, body []byte) error {
					return q.Put(ctx, time.Unix(1, 0), body)
				}), err
			},
			"CuratorID": func(c *zk.Client) (queue, error) {
				q, err := classic.NewCuratorID(c, path, cfg)
				return of(q, func(ctx context.Context, body []byte) error { return q.Put(ctx, "id", body) }), err
			},
		} {
			all = append(all, kind{name + suffix, lockPath != "", path, open})
		}
	}
	slices.SortFunc(all, func(a, b kind) int { return slices.Compare([]string{a.name}, []string{b.name}) })
	return all
}

// onAll runs a test for every kind of queue, each in a world of its own.
func onAll(t *testing.T, test func(t *testing.T, w *world, k kind)) {
	t.Helper()
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) { test(t, w, k) })
		})
	}
}

func (w *world) queue(k kind) queue {
	w.t.Helper()
	return w.queueOf(k, w.Client(w.t, timeout))
}

func (w *world) queueOf(k kind, client *zk.Client) queue {
	w.t.Helper()
	q, err := k.open(client)
	if err != nil {
		w.t.Fatal(err)
	}
	return q
}

// clientOf returns a client with a configuration of its own. It is closed when the test ends.
func (w *world) clientOf(cfg zk.Config) *zk.Client {
	w.t.Helper()
	client, err := zk.Open(w.t.Context(), cfg)
	must(w.t, err)
	w.t.Cleanup(func() { _ = client.Close() })
	return client
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func fill(t *testing.T, q queue, n int) []string {
	t.Helper()
	bodies := make([]string, n)
	for i := range bodies {
		bodies[i] = fmt.Sprintf("body %d", i)
		must(t, q.put(t.Context(), bodies[i]))
	}
	return bodies
}

// drain takes and ends what there is.
func drain(t *testing.T, q queue) []string {
	t.Helper()
	var bodies []string
	for {
		x, err := q.take(t.Context(), false)
		if errors.Is(err, classic.ErrEmpty) {
			return bodies
		}
		must(t, err)
		bodies = append(bodies, x.body)
		must(t, x.done(t.Context()))
	}
}

func wantBodies(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// names lists a directory; nothing if it does not exist.
func (w *world) names(dir string) []string {
	w.t.Helper()
	names, _, err := w.Session(w.t, timeout).Children(w.t.Context(), dir)
	if err != nil && !errors.Is(err, zk.NoNode) {
		w.t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// lockDir is where a kind's locks lie.
func (k kind) lockDir() string {
	if k.dir != path {
		return path + "/taken"
	}
	return locks
}
