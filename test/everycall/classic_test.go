package everycall_test

// The calls of package queue/classic.

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/seed-a3166700/turnstile/queue/classic"
	"github.com/seed-a3166700/turnstile/zk"
)

var classicTypes = []reflect.Type{
	reflect.TypeFor[*classic.Simple](), reflect.TypeFor[*classic.Kazoo](), reflect.TypeFor[*classic.KazooLocking](),
	reflect.TypeFor[*classic.Curator](), reflect.TypeFor[*classic.CuratorPriority](),
	reflect.TypeFor[*classic.CuratorDelay](), reflect.TypeFor[*classic.CuratorID](), reflect.TypeFor[*classic.Item](),
}

// taker is what all kinds of queues but Simple can do.
type taker interface {
	Take(ctx context.Context) (*classic.Item, error)
	TryTake(ctx context.Context) (*classic.Item, error)
	Len(ctx context.Context) (int, error)
	Consume(ctx context.Context, f func(ctx context.Context, body []byte) error) error
}

type put = func(ctx context.Context, data []byte) error

// A classicKind opens a queue of a kind. Ways are the other ways to put an item.
type classicKind struct {
	name string
	open func(client *zk.Client, path string, acl []zk.ACL) (q taker, ways map[string]put, err error)
}

var classicKinds = []classicKind{
	{"Kazoo", func(client *zk.Client, path string, acl []zk.ACL) (taker, map[string]put, error) {
		q, err := classic.NewKazoo(client, path, classic.Config{ACL: acl})
		return q, map[string]put{
			"Put": func(ctx context.Context, data []byte) error { return q.Put(ctx, data, 1) },
		}, err
	}},
	{"KazooLocking", func(client *zk.Client, path string, acl []zk.ACL) (taker, map[string]put, error) {
		q, err := classic.NewKazooLocking(client, path, classic.Config{ACL: acl})
		return q, map[string]put{
			"Put":    func(ctx context.Context, data []byte) error { return q.Put(ctx, data, 1) },
			"PutAll": func(ctx context.Context, data []byte) error { return q.PutAll(ctx, [][]byte{data}, 1) },
		}, err
	}},
	{"Curator", func(client *zk.Client, path string, acl []zk.ACL) (taker, map[string]put, error) {
		q, err := classic.NewCurator(client, path, classic.Config{ACL: acl, LockPath: "/app/locks"})
		return q, map[string]put{
			"Put":      func(ctx context.Context, data []byte) error { return q.Put(ctx, data) },
			"PutMulti": func(ctx context.Context, data []byte) error { return q.PutMulti(ctx, data, data) },
		}, err
	}},
	{"CuratorPriority", func(client *zk.Client, path string, acl []zk.ACL) (taker, map[string]put, error) {
		q, err := classic.NewCuratorPriority(client, path, classic.Config{ACL: acl})
		return q, map[string]put{
			"Put":      func(ctx context.Context, data []byte) error { return q.Put(ctx, 1, data) },
			"PutMulti": func(ctx context.Context, data []byte) error { return q.PutMulti(ctx, 1, data, data) },
		}, err
	}},
	{"CuratorDelay", func(client *zk.Client, path string, acl []zk.ACL) (taker, map[string]put, error) {
		q, err := classic.NewCuratorDelay(client, path, classic.Config{ACL: acl})
		return q, map[string]put{
			"Put":      func(ctx context.Context, data []byte) error { return q.Put(ctx, time.Now(), data) },
			"PutMulti": func(ctx context.Context, data []byte) error { return q.PutMulti(ctx, time.Now(), data, data) },
		}, err
	}},
	{"CuratorID", func(client *zk.Client, path string, acl []zk.ACL) (taker, map[string]put, error) {
		q, err := classic.NewCuratorID(client, path, classic.Config{ACL: acl})
		return q, map[string]put{
			"Put": func(ctx context.Context, data []byte) error { return q.Put(ctx, "id", data) },
			"Remove": func(ctx context.Context, data []byte) error {
				if err := q.Put(ctx, "other", data); err != nil {
					return err
				}
				if err := q.Put(ctx, "id", data); err != nil {
					return err
				}
				return wantOne(q.Remove(ctx, "id"))
			},
		}, err
	}},
}

// left returns a check of how many items a queue has.
func (k classicKind) left(want int) func(*world) error {
	return func(w *world) error {
		q, _, err := k.open(w.Client(w.t, timeout), path, nil)
		if err != nil {
			return err
		}
		got, err := q.Len(w.t.Context())
		if err == nil && got != want {
			err = fmt.Errorf("got %d items, want %d", got, want)
		}
		return err
	}
}

// on returns a call of a queue that has one item.
func (k classicKind) on(f func(ctx context.Context, q taker) error) func(context.Context, args) error {
	return func(ctx context.Context, a args) error {
		q, ways, err := k.open(a.client, a.path, a.acl)
		if err != nil {
			return err
		}
		if err := ways["Put"](ctx, a.data); err != nil {
			return err
		}
		return f(ctx, q)
	}
}

func classicCalls() (calls []call) {
	for _, k := range classicKinds {
		_, ways, err := k.open(new(zk.Client), path, nil)
		if err != nil {
			panic(err)
		}
		for way := range ways {
			calls = append(calls, call{
				name: "classic." + k.name + "." + way, takesData: true, done: k.left(1),
				do: func(ctx context.Context, a args) error {
					_, ways, err := k.open(a.client, a.path, a.acl)
					if err != nil {
						return err
					}
					return ways[way](ctx, a.data)
				},
			})
		}
		add := func(method string, left int, f func(ctx context.Context, q taker) error) {
			calls = append(calls, call{name: "classic." + k.name + "." + method, do: k.on(f), done: k.left(left)})
		}
		finish := func(ctx context.Context, item *classic.Item, err error) error {
			if err != nil {
				return err
			}
			return item.Done(ctx)
		}
		add("Take", 0, func(ctx context.Context, q taker) error {
			item, err := q.Take(ctx)
			return finish(ctx, item, err)
		})
		add("TryTake", 0, func(ctx context.Context, q taker) error {
			item, err := q.TryTake(ctx)
			return finish(ctx, item, err)
		})
		add("Len", 1, func(ctx context.Context, q taker) error { return wantOne(q.Len(ctx)) })
		add("Consume", 0, func(ctx context.Context, q taker) error {
			ctx, stop := context.WithCancel(ctx)
			defer stop()
			return q.Consume(ctx, func(context.Context, []byte) error {
				stop()
				return nil
			})
		})
	}
	curator := classicKinds[2]
	item := func(method string, left int, f func(ctx context.Context, item *classic.Item) error) {
		calls = append(calls, call{
			name: "classic.Item." + method, done: curator.left(left),
			do: curator.on(func(ctx context.Context, q taker) error {
				item, err := q.Take(ctx)
				if err != nil {
					return err
				}
				return f(ctx, item)
			}),
		})
	}
	item("Done", 0, func(ctx context.Context, item *classic.Item) error { return item.Done(ctx) })
	item("Requeue", 1, func(ctx context.Context, item *classic.Item) error { return item.Requeue(ctx) })
	item("Release", 1, func(ctx context.Context, item *classic.Item) error { return item.Release(ctx) })
	item("Held", 1, func(ctx context.Context, item *classic.Item) error {
		held, err := item.Held(ctx)
		if err == nil && !held {
			err = errors.New("it is not held")
		}
		return errors.Join(err, item.Release(ctx))
	})
	calls = append(calls, call{name: "classic.Kazoo.Get", done: classicKinds[0].left(0), do: classicKinds[0].on(
		func(ctx context.Context, q taker) error { return found(q.(*classic.Kazoo).Get(ctx)) },
	)})
	return append(calls, simpleCalls()...)
}

func found(_ []byte, ok bool, err error) error {
	if err == nil && !ok {
		return errors.New("no item")
	}
	return err
}

func simpleCalls() (calls []call) {
	add := func(method string, f func(ctx context.Context, q *classic.Simple) error) {
		calls = append(calls, call{name: "classic.Simple." + method, do: func(ctx context.Context, a args) error {
			q, err := classic.NewSimple(a.client, a.path, classic.Config{ACL: a.acl})
			if err != nil {
				return err
			}
			if err := q.Offer(ctx, a.data); err != nil {
				return err
			}
			return f(ctx, q)
		}, takesData: true})
	}
	add("Offer", func(context.Context, *classic.Simple) error { return nil })
	add("Peek", func(ctx context.Context, q *classic.Simple) error { return found(q.Peek(ctx)) })
	add("Poll", func(ctx context.Context, q *classic.Simple) error { return found(q.Poll(ctx)) })
	add("PollFor", func(ctx context.Context, q *classic.Simple) error { return found(q.PollFor(ctx, time.Hour)) })
	add("Element", func(ctx context.Context, q *classic.Simple) error {
		_, err := q.Element(ctx)
		return err
	})
	add("Remove", func(ctx context.Context, q *classic.Simple) error {
		_, err := q.Remove(ctx)
		return err
	})
	add("Take", func(ctx context.Context, q *classic.Simple) error {
		_, err := q.Take(ctx)
		return err
	})
	return calls
}
