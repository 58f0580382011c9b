//go:build unix

package partitions_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-a3166700/turnstile/elect"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
)

// A kind is something to hold: what the holder acquires, what the contender acquires that excludes it, and what the
// holder acquires at the end.
type kind struct{ name, holder, other, again string }

var kinds = []kind{
	{"mutex", "mutex", "mutex", "mutex"},
	{"writer", "writer", "reader", "writer"},
	{"reader", "reader", "writer", "reader"},
	{"semaphore", "semaphore", "semaphore", "semaphore"},
	{"set", "set", "set", "set"},
	{"election", "election", "election", "election"},
	{"queue", "put+take+return", "take+done", "put+take+done"},
}

// A held is what was acquired.
type held struct {
	ctx     context.Context //nolint:containedctx // of the hold
	session *zk.Session
	leave   func(ctx context.Context) error // returns when the server has released it
	late    func(ctx context.Context) error // leaves after ctx has ended; nil if leave does
}

// An acquire waits until it has acquired what is at the path.
type acquire func(ctx context.Context, client *zk.Client, path string) (held, error)

// acquires has an acquire for each name in kinds.
var acquires = map[string]acquire{
	"mutex": func(ctx context.Context, client *zk.Client, path string) (held, error) {
		m, err := lock.NewMutex(client, path, lock.Config{})
		return locked(ctx, m, err)
	},
	"writer": func(ctx context.Context, client *zk.Client, path string) (held, error) {
		m, err := lock.NewRWMutex(client, path, lock.RWConfig{})
		return locked(ctx, m, err)
	},
	"reader": func(ctx context.Context, client *zk.Client, path string) (held, error) {
		m, err := lock.NewRWMutex(client, path, lock.RWConfig{})
		if err != nil {
			return held{}, err
		}
		return holding(m.RLock(ctx))
	},
	"semaphore": func(ctx context.Context, client *zk.Client, path string) (held, error) {
		s, err := lock.NewSemaphore(client, path, lock.AgreedLimit(1), lock.SemaphoreConfig{})
		if err != nil {
			return held{}, err
		}
		return holding(s.Acquire(ctx, 1))
	},
	"set": func(ctx context.Context, client *zk.Client, path string) (held, error) {
		s, err := lock.NewSet(client, []string{path + "/one", path + "/two"}, lock.SetConfig{})
		return locked(ctx, s, err)
	},
	"election": func(ctx context.Context, client *zk.Client, path string) (held, error) {
		c, err := elect.NewCandidate(client, path, "candidate", elect.Config{})
		if err != nil {
			return held{}, err
		}
		l, err := c.Campaign(ctx)
		if err != nil {
			return held{}, err
		}
		return held{ctx: l.Context(), session: l.Session(), leave: l.ResignWait}, nil
	},
	"put+take+return": func(ctx context.Context, client *zk.Client, path string) (held, error) {
		return taken(ctx, client, path, true, returned)
	},
	"put+take+done": func(ctx context.Context, client *zk.Client, path string) (held, error) {
		return taken(ctx, client, path, true, done)
	},
	"take+done": func(ctx context.Context, client *zk.Client, path string) (held, error) {
		return taken(ctx, client, path, false, done)
	},
}

type locker interface {
	Lock(ctx context.Context) (*lock.Hold, error)
}

func locked(ctx context.Context, l locker, err error) (held, error) {
	if err != nil {
		return held{}, err
	}
	return holding(l.Lock(ctx))
}

func holding(h *lock.Hold, err error) (held, error) {
	if err != nil {
		return held{}, err
	}
	return held{ctx: h.Context(), session: h.Session(), leave: h.UnlockWait}, nil
}

func done(ctx context.Context, item *queue.Item) error { return item.Done(ctx) }

func returned(ctx context.Context, item *queue.Item) error { return item.Return(ctx, 0) }

// taken claims the one item of a queue after putting it, or after another client has.
func taken(
	ctx context.Context, client *zk.Client, path string, put bool, leave func(context.Context, *queue.Item) error,
) (held, error) {
	q, err := queue.New(client, path, queue.Config{Prefetch: -1})
	if err != nil {
		return held{}, err
	}
	if put {
		if _, err := q.Put(ctx, queue.Message{Body: []byte("item")}); err != nil {
			return held{}, err
		}
	}
	item, err := q.Take(ctx)
	if err != nil {
		return held{}, err
	}
	return held{
		ctx: item.Context(), session: item.Session(),
		leave: func(ctx context.Context) error {
			if err := leave(ctx, item); err != nil {
				return fmt.Errorf("%w (%w)", err, errors.Join(context.Cause(item.Context())))
			}
			return q.Close(ctx)
		},
		// A handler that cannot continue gives its item back.
		late: func(ctx context.Context) error { return errors.Join(returned(ctx, item), q.Close(ctx)) },
	}, nil
}
