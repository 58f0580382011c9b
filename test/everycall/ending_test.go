package everycall_test

// Calls that end the context which they are given.

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/barrier"
	"github.com/seed-a3166700/turnstile/elect"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/queue/classic"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// ending is something with a context, and the call that ends it.
type ending struct {
	own context.Context //nolint:containedctx // of what is ended
	end func(context.Context) error
}

var endings = map[string]func(ctx context.Context, c *zk.Client) (ending, error){
	"lock.Hold.UnlockWait": func(ctx context.Context, c *zk.Client) (ending, error) {
		m, err := lock.NewMutex(c, path, lock.Config{})
		if err != nil {
			return ending{}, err
		}
		h, err := m.Lock(ctx)
		if err != nil {
			return ending{}, err
		}
		return ending{h.Context(), h.UnlockWait}, nil
	},
	"elect.Leadership.ResignWait": func(ctx context.Context, c *zk.Client) (ending, error) {
		e, err := elect.NewCandidate(c, path, "a", elect.Config{})
		if err != nil {
			return ending{}, err
		}
		l, err := e.Campaign(ctx)
		if err != nil {
			return ending{}, err
		}
		return ending{l.Context(), l.ResignWait}, nil
	},
	"barrier.Member.Leave": func(ctx context.Context, c *zk.Client) (ending, error) {
		d, err := barrier.NewDouble(c, path, 1, barrier.Config{})
		if err != nil {
			return ending{}, err
		}
		m, err := d.Enter(ctx)
		if err != nil {
			return ending{}, err
		}
		return ending{m.Context(), m.Leave}, nil
	},
	"barrier.Party.Leave": func(ctx context.Context, c *zk.Client) (ending, error) {
		r, err := barrier.NewRounds(c, path, barrier.RoundsConfig{Parties: 2})
		if err != nil {
			return ending{}, err
		}
		p, err := r.Join(ctx)
		if err != nil {
			return ending{}, err
		}
		return ending{p.Context(), p.Leave}, nil
	},
	"queue.Item.Done": item(func(ctx context.Context, it *queue.Item) error { return it.Done(ctx) }),
	"queue.Item.Fail": item(func(ctx context.Context, it *queue.Item) error {
		return it.Fail(ctx, errors.New("no"))
	}),
	"queue.Item.Return":          item(func(ctx context.Context, it *queue.Item) error { return it.Return(ctx, 0) }),
	"queue.Item.Reject":          item(func(ctx context.Context, it *queue.Item) error { return it.Reject(ctx, "no") }),
	"queue/classic.Item.Done":    classicItem((*classic.Item).Done),
	"queue/classic.Item.Requeue": classicItem((*classic.Item).Requeue),
	"queue/classic.Item.Release": classicItem((*classic.Item).Release),
}

// item returns what ends a queue's item.
func item(
	end func(context.Context, *queue.Item) error,
) func(ctx context.Context, c *zk.Client) (ending, error) {
	return func(ctx context.Context, c *zk.Client) (ending, error) {
		q, err := queue.New(c, path, queue.Config{})
		if err != nil {
			return ending{}, err
		}
		if _, err := q.Put(ctx, queue.Message{}); err != nil {
			return ending{}, err
		}
		it, err := q.Take(ctx)
		if err != nil {
			return ending{}, err
		}
		return ending{it.Context(), func(ctx context.Context) error { return end(ctx, it) }}, nil
	}
}

// classicItem returns what ends an item of another project's queue.
func classicItem(
	end func(*classic.Item, context.Context) error,
) func(ctx context.Context, c *zk.Client) (ending, error) {
	return func(ctx context.Context, c *zk.Client) (ending, error) {
		q, err := classic.NewCurator(c, path, classic.Config{LockPath: "/app/locks"})
		if err != nil {
			return ending{}, err
		}
		if err := q.Put(ctx, []byte("a")); err != nil {
			return ending{}, err
		}
		it, err := q.Take(ctx)
		if err != nil {
			return ending{}, err
		}
		return ending{it.Context(), func(ctx context.Context) error { return end(it, ctx) }}, nil
	}
}

// A call that ends what its context belongs to waits for the servers all the same, until the context's deadline.
func TestCallWaitsThatEndsItsOwnContext(t *testing.T) {
	t.Parallel()
	for name, take := range endings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, answered := range []bool{true, false} {
				inWorld(t, func(t *testing.T, w *world) {
					client := w.Client(t, timeout)
					e, err := take(t.Context(), client)
					if err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					held, release := context.WithCancel(t.Context())
					defer release()
					w.Control(func(r zktest.Request) zktest.Fault {
						if r.Op == zktest.OpPing {
							return zktest.Pass
						}
						return zktest.Until(held)
					})
					ctx, cancel := context.WithTimeout(e.own, 10*time.Second)
					defer cancel()
					done := make(chan error, 1)
					go func() { done <- e.end(ctx) }()
					synctest.Wait()
					select {
					case err := <-done:
						t.Fatalf("it did not wait for the server: %v", err)
					default:
					}
					if answered {
						w.Control(nil)
						release()
						if err := <-done; err != nil {
							t.Errorf("got %v, want success", err)
						}
						return
					}
					if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("got %v, want the deadline's end", err)
					}
				})
			}
		})
	}
}
