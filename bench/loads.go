package main

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// loads lists what is measured, on the servers that run.
func loads(s *servers) []load {
	zookeeper, ours := s.zookeeper.Addr(0), s.ours.addr
	var all []load
	for _, n := range []int{1, 16, 256} {
		all = append(all, load{
			key:     fmt.Sprintf("server-%d", n),
			title:   fmt.Sprintf("durable create + delete, one client (ours), %d in flight", n),
			workers: n,
			target:  2,
			contenders: []contender{
				{"turnstile serve", nodes(ours)},
				{"ZooKeeper 3.8.0", nodes(zookeeper)},
			},
		})
	}
	for _, l := range []struct {
		key, title string
		workers    int
		target     float64
	}{
		{"lock-1", "one client, one free lock, lock + unlock", 1, 2},
		{"lock-16", "one client, 16 goroutines, 16 locks", 16, 1.8},
	} {
		all = append(all, load{
			key: l.key, title: l.title, workers: l.workers, target: l.target,
			contenders: []contender{
				{"Turnstile on ZooKeeper 3.8.0", ourLocks(zookeeper)},
				{"go-zookeeper on ZooKeeper 3.8.0", theirLocks(zookeeper)},
				{"Turnstile on turnstile serve", ourLocks(ours)},
			},
		})
	}
	return all
}

// nodes creates and deletes a node of its own in each worker, all in one session of our client.
func nodes(addr string) func(context.Context, int) (runner, error) {
	return func(ctx context.Context, workers int) (runner, error) {
		client, sess, err := connect(ctx, addr)
		if err != nil {
			return runner{}, err
		}
		root, err := makeRoot(ctx, sess, "nodes")
		if err != nil {
			return runner{}, err
		}
		paths := make([]string, workers)
		for i := range paths {
			paths[i] = fmt.Sprintf("%s/%03d", root, i)
		}
		data := make([]byte, 100)
		return runner{
			cycle: func(ctx context.Context, worker int) error {
				if _, err := sess.Create(ctx, paths[worker], data, zk.Persistent); err != nil {
					return err
				}
				return sess.Delete(ctx, paths[worker], -1)
			},
			close: func() { _ = client.Close() },
		}, nil
	}
}

func connect(ctx context.Context, addr string) (*zk.Client, *zk.Session, error) {
	client, err := zk.Open(ctx, zk.Config{Servers: addr, Timeout: 10 * time.Second})
	if err != nil {
		return nil, nil, err
	}
	wait, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	sess, err := client.Session(wait)
	if err != nil {
		return nil, nil, err
	}
	return client, sess, nil
}

// makeRoot creates a node under which one contender of one load works.
func makeRoot(ctx context.Context, sess *zk.Session, name string) (string, error) {
	created, err := sess.Create(ctx, "/bench-"+name+"-", nil, zk.PersistentSequential)
	return created.Path, err
}
