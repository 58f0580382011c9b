package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const kindRedisList = "redis-list"

// redisList is the reliable queue of Redis' documentation: an item is moved to a second list when it is taken, and
// removed from there when it is done.
type redisList struct {
	client       *redis.Client
	ready, taken string
}

func openRedisList(ctx context.Context, p *plan) (tasks, error) {
	client, err := dialRedis(ctx, p.addr)
	if err != nil {
		return nil, err
	}
	return &redisList{client, p.root, p.root + "/taken"}, nil
}

func (r *redisList) put(ctx context.Context, bodies [][]byte) error {
	values := make([]any, len(bodies))
	for i, b := range bodies {
		values[i] = b
	}
	return r.client.RPush(ctx, r.ready, values...).Err()
}

func (r *redisList) take(ctx context.Context) (func(context.Context) error, error) {
	const forever = time.Duration(0)
	item, err := r.client.BLMove(ctx, r.ready, r.taken, "LEFT", "RIGHT", forever).Result()
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		removed, err := r.client.LRem(ctx, r.taken, 1, item).Result()
		if err == nil && removed != 1 {
			err = fmt.Errorf("redis: %d of the taken item are there, want one", removed)
		}
		return err
	}, nil
}

func (r *redisList) close() { _ = r.client.Close() }

// redisMemory returns the bytes that the server uses.
func redisMemory(ctx context.Context, addr string) (float64, error) {
	client, err := dialRedis(ctx, addr)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	text, err := client.Info(ctx, "memory").Result()
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "used_memory:"); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("redis: INFO tells no used_memory: %q", text)
}
