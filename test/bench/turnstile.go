package main

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-a3166700/turnstile/internal/measure"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

const (
	kindTurnstile = "turnstile"
	kindNodes     = "nodes"
)

func connect(ctx context.Context, addr string) (*zk.Client, *zk.Session, error) {
	return connectWith(ctx, addr, zk.Hooks{})
}

func connectWith(ctx context.Context, addr string, hooks zk.Hooks) (*zk.Client, *zk.Session, error) {
	client, err := zk.Open(ctx, zk.Config{Servers: addr, Timeout: 30 * time.Second, Hooks: hooks})
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

// ours is our client, with one Mutex for each path, as a program has it.
type ours struct {
	client  *zk.Client
	cfg     lock.Config
	mutexes map[string]*lock.Mutex
}

func openTurnstile(ctx context.Context, p *plan) (connection, error) {
	seen, err := p.observers()
	if err != nil {
		return nil, err
	}
	client, _, err := connectWith(ctx, p.addr, seen.zk)
	if err != nil {
		return nil, err
	}
	cfg := lock.Config{Retain: p.retain, Hooks: seen.lock}
	o := &ours{client: client, cfg: cfg, mutexes: make(map[string]*lock.Mutex)}
	if p.strict {
		o.cfg.Handoff = lock.StrictFIFO
	}
	return o, nil
}

func (o *ours) locker(path string) (measure.Locker, error) {
	m := o.mutexes[path]
	if m == nil {
		var err error
		if m, err = lock.NewMutex(o.client, path, o.cfg); err != nil {
			return nil, err
		}
		o.mutexes[path] = m
	}
	return measure.NewMutex(m), nil
}

func (o *ours) close() { _ = o.client.Close() } // the session ends by itself if it cannot be closed

// nodes creates and deletes a node for each locker, all in one session of our client.
type nodes struct {
	client *zk.Client
	sess   *zk.Session
	made   int
	root   string
}

func openNodes(ctx context.Context, p *plan) (connection, error) {
	seen, err := p.observers()
	if err != nil {
		return nil, err
	}
	client, sess, err := connectWith(ctx, p.addr, seen.zk)
	if err != nil {
		return nil, err
	}
	if _, err := sess.Create(ctx, p.root, nil, zk.Persistent); err != nil {
		return nil, err
	}
	return &nodes{client: client, sess: sess, root: p.root}, nil
}

func (n *nodes) locker(string) (measure.Locker, error) {
	n.made++
	return &nodeLocker{n.sess, fmt.Sprintf("%s/%03d", n.root, n.made)}, nil
}

func (n *nodes) close() { _ = n.client.Close() }

type nodeLocker struct {
	sess *zk.Session
	path string
}

var nodeData = make([]byte, 100)

func (l *nodeLocker) Lock(ctx context.Context) error {
	_, err := l.sess.Create(ctx, l.path, nodeData, zk.Persistent)
	return err
}

func (l *nodeLocker) Unlock(ctx context.Context) error { return l.sess.Delete(ctx, l.path, -1) }
func (l *nodeLocker) Finish(context.Context) error     { return nil }
