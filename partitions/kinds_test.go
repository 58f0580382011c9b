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

// A kind is something that can be held: what the holder acquires, what another one acquires that excludes it, and what the holder acquires
// when all is over.
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
	ctx     context.Context //nolint:containedctx // that of the hold
	session *zk.Session
	leave   func(ctx context.Context) error // returns when the server knows
	late    func(ctx context.Context) error // leaves after ctx has ended; leave if nil
}

// An acquire waits until it has acquired what is at the path.
type acquire func(ctx context.Context, client *zk.Client, path string) (held, error)

// acquires has the words of kind.
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
		return taken(ctx, client, path, true, (*queue.Item).Done)
	},
	"take+done": func(ctx context.Context, client *zk.Client, path string) (held, error) {
		return taken(ctx, client, path, false, (*queue.Item).Done)
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

func returned(item *queue.Item, ctx context.Context) error { //nolint:revive // as the method expression
	return item.Return(ctx, 0)
}

// taken claims the one item of a queue, after it has put it there or another one has.
func taken(ctx context.Context, client *zk.Client, path string, put bool, leave func(*queue.Item, context.Context) error) (held, error) {
	q, err := queue.New(client, path, queue.Config{Prefetch: -1})
	if err != nil {
		return held{}, err
	}
	if put {
		if _, err := q.Put(ctx, []byte("item"), queue.PutOptions{}); err != nil {
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
			if err := leave(item, ctx); err != nil {
				return fmt.Errorf("%w (%w)", err, errors.Join(context.Cause(item.Context())))
			}
			return q.Close(ctx)
		},
		// A handler that cannot go on gives its item back.
		late: func(ctx context.Context) error { return errors.Join(returned(item, ctx), q.Close(ctx)) },
	}, nil
}
