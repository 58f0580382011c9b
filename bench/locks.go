package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	gozk "github.com/go-zookeeper/zk"

	"github.com/seed-a3166700/turnstile/lock"
)

// ourLocks locks and unlocks a mutex of its own in each worker, all with one client. An unlock is under way when the next
// lock is asked for, as it is in a program; the round ends when the last one is done.
func ourLocks(addr string) func(context.Context, int) (runner, error) {
	return func(ctx context.Context, workers int) (runner, error) {
		client, sess, err := connect(ctx, addr)
		if err != nil {
			return runner{}, err
		}
		root, err := makeRoot(ctx, sess, "locks")
		if err != nil {
			return runner{}, err
		}
		mutexes := make([]*lock.Mutex, workers)
		for i := range mutexes {
			if mutexes[i], err = lock.NewMutex(client, fmt.Sprintf("%s/%03d", root, i), lock.Config{}); err != nil {
				return runner{}, err
			}
		}
		return runner{
			cycle: func(ctx context.Context, worker int) error {
				hold, err := mutexes[worker].Lock(ctx)
				if err != nil {
					return err
				}
				return hold.Unlock(ctx)
			},
			drain: func(ctx context.Context, worker int) error {
				hold, err := mutexes[worker].Lock(ctx)
				if err != nil {
					return err
				}
				return hold.UnlockWait(ctx)
			},
			close: func() { _ = client.Close() },
		}, nil
	}
}

// theirLocks does the same with go-zookeeper's Lock.
func theirLocks(addr string) func(context.Context, int) (runner, error) {
	return func(ctx context.Context, workers int) (runner, error) {
		conn, events, err := gozk.Connect([]string{addr}, 10*time.Second, gozk.WithLogInfo(false))
		if err != nil {
			return runner{}, err
		}
		if err := awaitSession(ctx, events); err != nil {
			conn.Close()
			return runner{}, err
		}
		root, err := conn.Create("/bench-locks-", nil, gozk.FlagSequence, gozk.WorldACL(gozk.PermAll))
		if err != nil {
			conn.Close()
			return runner{}, err
		}
		locks := make([]*gozk.Lock, workers)
		for i := range locks {
			locks[i] = gozk.NewLock(conn, fmt.Sprintf("%s/%03d", root, i), gozk.WorldACL(gozk.PermAll))
		}
		return runner{
			cycle: func(_ context.Context, worker int) error {
				if err := locks[worker].Lock(); err != nil {
					return err
				}
				return locks[worker].Unlock()
			},
			close: conn.Close,
		}, nil
	}
}

func awaitSession(ctx context.Context, events <-chan gozk.Event) error {
	limit := time.After(30 * time.Second)
	for {
		select {
		case e := <-events:
			if e.State == gozk.StateHasSession {
				return nil
			}
		case <-limit:
			return errors.New("go-zookeeper: no session")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
