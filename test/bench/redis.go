package main

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/seed-a3166700/turnstile/internal/measure"
)

const (
	kindRedsync   = "redsync"
	kindRedislock = "redislock"
)

// redisTTL is when a lock on Redis expires. Neither library renews it, so it is longer than any load holds a lock.
const redisTTL = time.Minute

// redislockPause is how long redislock waits between two tries: its README's example.
const redislockPause = 100 * time.Millisecond

func dialRedis(ctx context.Context, addr string) (*redis.Client, error) {
	client := redis.NewClient(&redis.Options{Addr: addr})
	return client, client.Ping(ctx).Err()
}

type redsyncClient struct {
	client *redis.Client
	locks  *redsync.Redsync
}

func openRedsync(ctx context.Context, p *plan) (connection, error) {
	client, err := dialRedis(ctx, p.addr)
	if err != nil {
		return nil, err
	}
	return &redsyncClient{client, redsync.New(goredis.NewPool(client))}, nil
}

func (r *redsyncClient) locker(path string) (measure.Locker, error) {
	return &redsyncLocker{r.locks.NewMutex(path, redsync.WithExpiry(redisTTL), redsync.WithTries(math.MaxInt))}, nil
}

func (r *redsyncClient) close() { _ = r.client.Close() }

type redsyncLocker struct{ m *redsync.Mutex }

func (l *redsyncLocker) Lock(ctx context.Context) error { return l.m.LockContext(ctx) }

func (l *redsyncLocker) Unlock(ctx context.Context) error {
	switch ok, err := l.m.UnlockContext(ctx); {
	case err != nil:
		return err
	case !ok:
		return errors.New("redsync: the lock was lost")
	}
	return nil
}

func (l *redsyncLocker) Finish(context.Context) error { return nil }

type redislockClient struct {
	client *redis.Client
	locks  *redislock.Client
}

func openRedislock(ctx context.Context, p *plan) (connection, error) {
	client, err := dialRedis(ctx, p.addr)
	if err != nil {
		return nil, err
	}
	return &redislockClient{client, redislock.New(client)}, nil
}

func (r *redislockClient) locker(path string) (measure.Locker, error) {
	options := &redislock.Options{RetryStrategy: redislock.LinearBackoff(redislockPause)}
	return &redislockLocker{locks: r.locks, path: path, options: options}, nil
}

func (r *redislockClient) close() { _ = r.client.Close() }

type redislockLocker struct {
	locks   *redislock.Client
	path    string
	options *redislock.Options
	held    *redislock.Lock
}

func (l *redislockLocker) Lock(ctx context.Context) (err error) {
	l.held, err = l.locks.Obtain(ctx, l.path, redisTTL, l.options)
	return err
}

func (l *redislockLocker) Unlock(ctx context.Context) error { return l.held.Release(ctx) }
func (l *redislockLocker) Finish(context.Context) error     { return nil }
