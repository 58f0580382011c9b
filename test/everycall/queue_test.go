package everycall_test

// The calls of package queue.

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
)

var queueTypes = []reflect.Type{reflect.TypeFor[*queue.Queue](), reflect.TypeFor[*queue.Item]()}

// everySecond is a schedule.
type everySecond struct{}

func (everySecond) Next(t time.Time) time.Time { return t.Truncate(time.Second).Add(time.Second) }

// onQueue returns a call of a queue, which it closes.
func onQueue(f func(ctx context.Context, q *queue.Queue, data []byte) error) func(context.Context, args) error {
	return func(ctx context.Context, a args) error {
		q, err := queue.New(a.client, a.path, queue.Config{ACL: a.acl, MaxAttempts: 3})
		if err != nil {
			return err
		}
		return errors.Join(f(ctx, q, a.data), q.Close(ctx))
	}
}

// onFilled returns a call of a queue that has one item.
func onFilled(f func(ctx context.Context, q *queue.Queue, id string) error) func(context.Context, args) error {
	return onQueue(func(ctx context.Context, q *queue.Queue, data []byte) error {
		id, err := q.Put(ctx, queue.Message{Body: data})
		if err != nil {
			return err
		}
		return f(ctx, q, id)
	})
}

// onItem returns a call of an item that was taken.
func onItem(f func(ctx context.Context, q *queue.Queue, item *queue.Item) error) func(context.Context, args) error {
	return onFilled(func(ctx context.Context, q *queue.Queue, _ string) error {
		item, err := q.Take(ctx)
		if err != nil {
			return err
		}
		return f(ctx, q, item)
	})
}

// onDead returns a call of a queue that has one dead letter.
func onDead(f func(ctx context.Context, q *queue.Queue) error) func(context.Context, args) error {
	return onItem(func(ctx context.Context, q *queue.Queue, item *queue.Item) error {
		if err := item.Reject(ctx, "bad"); err != nil {
			return err
		}
		return f(ctx, q)
	})
}

// wantQueue returns a check of what is in the queue.
func wantQueue(want queue.Counts) func(*world) error {
	return func(w *world) error {
		q, err := queue.New(w.Client(w.t, timeout), path, queue.Config{})
		if err != nil {
			return err
		}
		got, err := q.Len(w.t.Context())
		if err == nil && got != want {
			err = fmt.Errorf("got %+v in the queue, want %+v", got, want)
		}
		return err
	}
}

func wantOne[T comparable](got T, err error) error {
	if err == nil && fmt.Sprint(got) != "1" {
		return fmt.Errorf("it counts %v, want 1", got)
	}
	return err
}

var queueCalls = []call{
	{name: "queue.Queue.Put", takesData: true, do: onQueue(
		func(ctx context.Context, q *queue.Queue, data []byte) error {
			_, err := q.Put(ctx, queue.Message{Body: data})
			return err
		},
	), done: wantQueue(queue.Counts{Ready: 1})},
	{name: "queue.Queue.Put in a group", do: onQueue(func(ctx context.Context, q *queue.Queue, data []byte) error {
		_, err := q.Put(ctx, queue.Message{Body: data, Group: "g"})
		return err
	}), done: wantQueue(queue.Counts{Ready: 1})},
	{name: "queue.Queue.Put with a delay", do: onQueue(func(ctx context.Context, q *queue.Queue, data []byte) error {
		_, err := q.Put(ctx, queue.Message{Body: data, Delay: time.Hour})
		return err
	}), done: wantQueue(queue.Counts{Delayed: 1})},
	{name: "queue.Queue.PutBatch", takesData: true, do: onQueue(
		func(ctx context.Context, q *queue.Queue, data []byte) error {
			_, err := q.PutBatch(ctx, slices.Repeat([]queue.Message{{Body: data}}, 3))
			return err
		},
	), done: wantQueue(queue.Counts{Ready: 3})},
	{name: "queue.Queue.PutOnce", takesData: true, do: onQueue(
		func(ctx context.Context, q *queue.Queue, data []byte) error {
			_, added, err := q.PutOnce(ctx, "key", queue.Message{Body: data})
			if err == nil && !added {
				err = errors.New("it says that it has added nothing")
			}
			return err
		},
	), done: wantQueue(queue.Counts{Ready: 1})},
	{name: "queue.Queue.Take", do: onItem(func(ctx context.Context, _ *queue.Queue, item *queue.Item) error {
		return item.Done(ctx)
	}), done: wantQueue(queue.Counts{})},
	{name: "queue.Queue.TryTake", do: onFilled(func(ctx context.Context, q *queue.Queue, _ string) error {
		item, err := q.TryTake(ctx)
		if err != nil {
			return err
		}
		return item.Done(ctx)
	}), done: wantQueue(queue.Counts{})},
	{name: "queue.Queue.TakeBatch", do: onFilled(func(ctx context.Context, q *queue.Queue, _ string) error {
		items, err := q.TakeBatch(ctx, 5)
		if err != nil {
			return err
		}
		return items[0].Done(ctx)
	}), done: wantQueue(queue.Counts{})},
	{name: "queue.Queue.Consume", do: onFilled(func(ctx context.Context, q *queue.Queue, _ string) error {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		return q.Consume(ctx, 2, func(context.Context, *queue.Item) error {
			stop()
			return nil
		})
	}), done: wantQueue(queue.Counts{})},
	{name: "queue.Queue.DoneAll", do: onItem(func(ctx context.Context, q *queue.Queue, item *queue.Item) error {
		return q.DoneAll(ctx, []*queue.Item{item})
	}), done: wantQueue(queue.Counts{})},
	{name: "queue.Queue.Len", do: onQueue(func(ctx context.Context, q *queue.Queue, _ []byte) error {
		_, err := q.Len(ctx)
		return err
	})},
	{name: "queue.Queue.Consumers", do: onQueue(func(ctx context.Context, q *queue.Queue, _ []byte) error {
		_, err := q.Consumers(ctx)
		return err
	})},
	{name: "queue.ItemsOf", do: func(ctx context.Context, a args) error {
		return onFilled(func(ctx context.Context, _ *queue.Queue, _ string) error {
			for _, err := range queue.ItemsOf(ctx, a.client, a.path, queue.Ready) {
				return err
			}
			return nil
		})(ctx, a)
	}, done: wantQueue(queue.Counts{Ready: 1})},
	{name: "queue.ItemOf", do: func(ctx context.Context, a args) error {
		return onFilled(func(ctx context.Context, _ *queue.Queue, id string) error {
			_, err := queue.ItemOf(ctx, a.client, a.path, id)
			return err
		})(ctx, a)
	}, done: wantQueue(queue.Counts{Ready: 1})},
	{name: "queue.Summarize", do: func(ctx context.Context, a args) error {
		return onFilled(func(ctx context.Context, _ *queue.Queue, _ string) error {
			_, err := queue.Summarize(ctx, a.client, a.path, 1)
			return err
		})(ctx, a)
	}, done: wantQueue(queue.Counts{Ready: 1})},
	{name: "queue.Queue.AwaitEmpty", do: onItem(func(ctx context.Context, q *queue.Queue, item *queue.Item) error {
		empty := make(chan error, 1)
		go func() { empty <- q.AwaitEmpty(ctx) }()
		synctest.Wait()
		return errors.Join(item.Done(ctx), <-empty)
	}), done: wantQueue(queue.Counts{})},
	{name: "queue.Queue.Items", do: onFilled(func(ctx context.Context, q *queue.Queue, _ string) error {
		for _, err := range q.Items(ctx, queue.Ready) {
			return err
		}
		return errors.New("no item")
	})},
	{name: "queue.Queue.Item", do: onFilled(func(ctx context.Context, q *queue.Queue, id string) error {
		_, err := q.Item(ctx, id)
		return err
	})},
	{name: "queue.Queue.Peek", do: onFilled(func(ctx context.Context, q *queue.Queue, _ string) error {
		_, err := q.Peek(ctx)
		return err
	})},
	{name: "queue.Queue.Age", do: onFilled(func(ctx context.Context, q *queue.Queue, _ string) error {
		_, err := q.Age(ctx)
		return err
	})},
	{name: "queue.Queue.Remove", do: onFilled(func(ctx context.Context, q *queue.Queue, id string) error {
		return q.Remove(ctx, id)
	}), done: wantQueue(queue.Counts{})},
	{name: "queue.Queue.Purge", do: onFilled(func(ctx context.Context, q *queue.Queue, _ string) error {
		return wantOne(q.Purge(ctx))
	}), done: wantQueue(queue.Counts{})},
	{name: "queue.Queue.DeadLetters", do: onDead(func(ctx context.Context, q *queue.Queue) error {
		for _, err := range q.DeadLetters(ctx) {
			return err
		}
		return errors.New("no dead letter")
	})},
	{name: "queue.Queue.Requeue", do: onDead(func(ctx context.Context, q *queue.Queue) error {
		return wantOne(q.Requeue(ctx))
	}), done: wantQueue(queue.Counts{Ready: 1})},
	{name: "queue.Queue.PurgeDead", do: onDead(func(ctx context.Context, q *queue.Queue) error {
		return wantOne(q.PurgeDead(ctx))
	}), done: wantQueue(queue.Counts{})},
	{name: "queue.Queue.Pause", do: onQueue(func(ctx context.Context, q *queue.Queue, _ []byte) error {
		return q.Pause(ctx, "why")
	})},
	{name: "queue.Queue.Resume", do: onQueue(func(ctx context.Context, q *queue.Queue, _ []byte) error {
		return errors.Join(q.Pause(ctx, "why"), q.Resume(ctx))
	})},
	{name: "queue.Queue.Paused", do: onQueue(func(ctx context.Context, q *queue.Queue, _ []byte) error {
		_, err := q.Paused(ctx)
		return err
	})},
	{name: "queue.Queue.SetRate", do: onQueue(func(ctx context.Context, q *queue.Queue, _ []byte) error {
		return q.SetRate(ctx, queue.Rate{Items: 5, Per: time.Second})
	})},
	{name: "queue.Queue.Rate", do: onQueue(func(ctx context.Context, q *queue.Queue, _ []byte) error {
		_, err := q.Rate(ctx)
		return err
	})},
	{name: "queue.Queue.Repeat", do: onQueue(func(ctx context.Context, q *queue.Queue, _ []byte) error {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		err := q.Repeat(ctx, queue.Periodic{
			Name: "tick", Schedule: everySecond{},
			Message: func(time.Time) queue.Message { return queue.Message{} },
			Put:     func(time.Time, string) { stop() },
		})
		time.Sleep(time.Second) // it leaves the line in the background
		return err
	})},
	{name: "queue.Queue.Close", do: onItem(func(ctx context.Context, q *queue.Queue, item *queue.Item) error {
		return errors.Join(q.Close(ctx), item.Done(ctx))
	}), done: wantQueue(queue.Counts{})},
	{name: "queue.Item.Done", do: onItem(func(ctx context.Context, _ *queue.Queue, item *queue.Item) error {
		return item.Done(ctx, zk.CreateOp("/app/with", nil, zk.Persistent))
	}), done: wantQueue(queue.Counts{})},
	{name: "queue.Item.Fail", do: onItem(func(ctx context.Context, _ *queue.Queue, item *queue.Item) error {
		return item.Fail(ctx, &queue.RetryError{Err: errors.New("later"), After: time.Hour})
	}), done: wantQueue(queue.Counts{Delayed: 1})},
	{name: "queue.Item.Return", do: onItem(func(ctx context.Context, _ *queue.Queue, item *queue.Item) error {
		return item.Return(ctx, 0)
	}), done: wantQueue(queue.Counts{Ready: 1})},
	{name: "queue.Item.Reject", do: onItem(func(ctx context.Context, _ *queue.Queue, item *queue.Item) error {
		return item.Reject(ctx, "bad")
	}), done: wantQueue(queue.Counts{Dead: 1})},
}
