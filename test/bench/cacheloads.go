package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed-a3166700/turnstile/internal/measure"
	"github.com/seed-a3166700/turnstile/zk"
)

// The trees that are loaded. CuratorCache 5.4.0 stops early with more than 65,535 requests in flight (CURATOR-690), so
// there are two: it can load each of them whole.
const (
	cachedTrees  = 2
	cachedDirs   = 500 // of each tree
	cachedNodes  = 100 // of each directory, itself included
	cachedData   = 16  // bytes of each node that is no directory
	cachedTotal  = cachedTrees * (cachedDirs*cachedNodes + 1)
	loadFaster   = 3
	loadSmaller  = 2
	cacheClients = 2
	ourCache     = "Turnstile cache.Tree"
	withData     = "data kept"
)

// cacheLoads lists what is measured of caches.
func cacheLoads() []load {
	ours := func(server string) contender {
		return contender{name: ourCache, kind: kindTurnstileCache, server: server, role: subjectRole, config: withData}
	}
	curator := func(server string) contender {
		return contender{name: "Curator CuratorCache", kind: kindCuratorCache, server: server, config: withData}
	}
	kazoo := func(server string) contender {
		return contender{name: "kazoo TreeCache", kind: kindKazooCache, server: server, config: withData}
	}
	return []load{
		{
			key: "cache-load", title: fmt.Sprintf("loading %s nodes in two trees", number(cachedTotal)),
			measure: loadCaches, rounds: fewRounds, clients: cacheClients, locks: cachedTrees,
			contenders: []contender{ours(onZooKeeper), curator(onZooKeeper), ours(onHosted), curator(onHosted)},
		},
		{
			key: "cache-latency", title: "from the beginning of a write until a cache tells of the change: p50",
			measure: latencies, order: "follow", rounds: fewRounds, clients: cacheClients, lockers: 1,
			contenders: []contender{
				ours(onZooKeeper), curator(onZooKeeper), kazoo(onZooKeeper),
				ours(onHosted), curator(onHosted), kazoo(onHosted),
			},
		},
	}
}

// loadCaches measures how long a load takes, and how much memory a node then needs. Each round is a new process, which
// has loaded the trees once before.
func loadCaches(ctx context.Context, b *bench, l *load) ([]row, error) {
	defer b.servers.end() // there is much on them
	there, absent := b.available(l)
	loads, sizes := make([]row, len(there)), make([]row, len(there))
	root := b.root(l)
	filled := make(map[string]bool)
	for i, c := range there {
		loads[i] = row{load: l.title, contender: c, unit: "ms", lessIsMore: true}
		sizes[i] = row{
			load:      fmt.Sprintf("memory of a node in the cache, with %d bytes of data", cachedData),
			contender: c, unit: "bytes", lessIsMore: true,
		}
		if c.kind == kindCuratorCache {
			loads[i].contender.required, sizes[i].contender.required = loadFaster, loadSmaller
		}
		if !filled[c.server] {
			filled[c.server] = true
			if err := b.fillTrees(ctx, c.server, root); err != nil {
				return nil, fmt.Errorf("%s: %w", c.server, err)
			}
		}
	}
	for range b.rounds(l) {
		for i, c := range there {
			took, size, err := b.loadOnce(ctx, l, c, root)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.title(), err)
			}
			fmt.Fprintf(b.log, "  %-60s %12s ms, %s bytes a node\n", c.title(), number(took), number(size))
			loads[i].figures = append(loads[i].figures, took)
			sizes[i].figures = append(sizes[i].figures, size)
		}
	}
	judge(loads, limit{})
	judge(sizes, limit{})
	return slices.Concat(loads, absent, sizes), nil
}

// loadOnce returns how many milliseconds a load takes, and how many bytes each node needs.
func (b *bench) loadOnce(ctx context.Context, l *load, c contender, root string) (took, size float64, err error) {
	t, err := b.teamAt(ctx, l, c, root)
	if err != nil {
		return 0, 0, err
	}
	defer t.workers.Close()
	w := t.workers[0]
	order := func(text string) (first, second float64) {
		if err != nil {
			return 0, 0
		}
		var a measure.Answer
		if a, err = w.Order(text); err != nil {
			return 0, 0
		}
		if len(a.Figures) > 1 {
			return float64(a.Figures[0]), float64(a.Figures[1])
		}
		return 0, 0
	}
	order("load")
	order("unload")
	before, _ := order("memory")
	nodes, nanos := order("load")
	after, _ := order("memory")
	if err == nil && nodes != cachedTotal {
		err = fmt.Errorf("the cache has %v nodes, want %d", nodes, cachedTotal)
	}
	return nanos / 1e6, (after - before) / cachedTotal, err
}

// fillTrees creates the trees.
func (b *bench) fillTrees(ctx context.Context, server, root string) error {
	backend, err := b.servers.get(ctx, server)
	if err != nil {
		return err
	}
	client, sess, err := connect(ctx, backend.addr)
	if err != nil {
		return err
	}
	defer client.Close()
	p := &plan{root: root, locks: cachedTrees}
	if _, err := sess.Create(ctx, root, nil, zk.Persistent); err != nil {
		return err
	}
	for i := range cachedTrees {
		if _, err := sess.Create(ctx, p.path(i), nil, zk.Persistent); err != nil {
			return err
		}
		for d := range cachedDirs {
			if _, err := sess.Multi(ctx, directory(fmt.Sprintf("%s/directory-%04d", p.path(i), d))...); err != nil {
				return err
			}
		}
	}
	return nil
}

// directory returns the operations that make a directory.
func directory(path string) []zk.Op {
	ops := []zk.Op{zk.CreateOp(path, nil, zk.Persistent)}
	for n := range cachedNodes - 1 {
		data := fmt.Appendf(nil, "%0*d", cachedData, n)
		ops = append(ops, zk.CreateOp(fmt.Sprintf("%s/node-%010d", path, n), data, zk.Persistent))
	}
	return ops
}
