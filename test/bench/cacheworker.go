package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/seed-a3166700/turnstile/cache"
	"github.com/seed-a3166700/turnstile/internal/measure"
	"github.com/seed-a3166700/turnstile/zk"
)

// The contenders with caches. Workers know them by these names.
const (
	kindTurnstileCache = "turnstile-cache"
	kindCuratorCache   = "CuratorCache"
	kindKazooCache     = "kazooCache"
)

// A cacheWorker is the worker of our caches. Its first connection has the caches, and its last one changes nodes.
type cacheWorker struct {
	plan    *plan
	client  *zk.Client
	writer  *zk.Session
	writers *zk.Client
	trees   []*cache.Tree
}

func newCacheWorker(ctx context.Context, p *plan) (*cacheWorker, error) {
	client, _, err := connect(ctx, p.addr)
	if err != nil {
		return nil, err
	}
	writers, writer, err := connect(ctx, p.addr)
	if err != nil {
		return nil, err
	}
	return &cacheWorker{plan: p, client: client, writers: writers, writer: writer}, nil
}

func (w *cacheWorker) close() {
	w.unload()
	_ = w.client.Close()
	_ = w.writers.Close()
}

func (w *cacheWorker) obey(ctx context.Context, order string, n measure.Numbers) (measure.Answer, error) {
	switch order {
	case "load":
		return w.load(ctx)
	case "unload":
		w.unload()
		return measure.Answer{}, nil
	case "follow":
		return w.follow(ctx, n.Millis(0))
	case "memory":
		return memory(), nil
	default:
		return measure.Answer{}, fmt.Errorf("unknown order %q", order)
	}
}

// load makes a cache of each tree, and answers how many nodes they have when all are complete, and how long it took.
func (w *cacheWorker) load(ctx context.Context) (measure.Answer, error) {
	start := time.Now()
	for i := range w.plan.locks {
		tree, err := cache.OpenTree(w.client, w.plan.path(i), cache.Config{})
		if err != nil {
			return measure.Answer{}, err
		}
		w.trees = append(w.trees, tree)
	}
	nodes := 0
	for _, tree := range w.trees {
		if err := tree.WaitSynced(ctx); err != nil {
			return measure.Answer{}, err
		}
		nodes += tree.View().Len()
	}
	return since(start, int64(nodes)), nil
}

func (w *cacheWorker) unload() {
	for _, tree := range w.trees {
		tree.Close()
	}
	w.trees = nil
}

// follow changes a node, again and again until d is over, and each time waits until the cache has told of it.
func (w *cacheWorker) follow(ctx context.Context, d time.Duration) (measure.Answer, error) {
	node := w.plan.path(0)
	if err := w.create(ctx, w.plan.root, node); err != nil {
		return measure.Answer{}, err
	}
	tree, err := cache.OpenTree(w.client, node, cache.Config{})
	if err != nil {
		return measure.Answer{}, err
	}
	defer tree.Close()
	if err := tree.WaitSynced(ctx); err != nil {
		return measure.Answer{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen := make(chan int64, 1)
	go func() { // ends with ctx
		defer close(seen)
		for c, err := range tree.Changes(ctx) {
			if err != nil {
				return
			}
			if c.Kind == cache.Changed {
				seen <- time.Now().UnixNano()
			}
		}
	}()
	var cycles []measure.Cycle
	start := time.Now()
	for i := 0; time.Since(start) < d; i++ {
		began := time.Now().UnixNano()
		if _, err := w.writer.Set(ctx, node, []byte(strconv.Itoa(i)), -1); err != nil {
			return measure.Answer{}, err
		}
		at, ok := <-seen
		if !ok {
			return measure.Answer{}, errors.New("the cache has ended")
		}
		cycles = append(cycles, measure.Cycle{Began: began, Locked: at, Unlocked: at})
	}
	a := since(start, int64(len(cycles)))
	a.Cycles = cycles
	return a, nil
}

func (w *cacheWorker) create(ctx context.Context, paths ...string) error {
	for _, path := range paths {
		_, err := w.writer.Create(ctx, path, nil, zk.Persistent)
		if err != nil && !errors.Is(err, zk.NodeExists) {
			return err
		}
	}
	return nil
}
