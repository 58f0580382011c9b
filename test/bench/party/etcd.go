//go:build unix

package main

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

// etcd has etcd's clients by name. Every contender has a session (a lease) of its own: the Mutex is re-entrant in one.
type etcd struct {
	clients map[string]*clientv3.Client
}

func newEtcd() *etcd { return &etcd{clients: make(map[string]*clientv3.Client)} }

func (e *etcd) open(_ context.Context, name string, servers []string, timeout time.Duration) (holder, error) {
	if c := e.clients[name]; c != nil {
		return &etcdHolder{client: c, timeout: timeout}, nil
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: servers, DialTimeout: 30 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	e.clients[name] = c
	return &etcdHolder{client: c, timeout: timeout}, nil
}

type etcdHolder struct {
	client  *clientv3.Client
	timeout time.Duration
	m       *concurrency.Mutex
}

func (h *etcdHolder) lock(ctx context.Context, path string, told, lost func(string)) error {
	ttl := int((h.timeout + time.Second - 1) / time.Second) // whole seconds
	session, err := concurrency.NewSession(h.client, concurrency.WithTTL(ttl), concurrency.WithContext(ctx))
	if err != nil {
		return err
	}
	h.m = concurrency.NewMutex(session, path)
	if err := h.m.Lock(ctx); err != nil {
		return err
	}
	go func() {
		<-session.Done()
		told("session done")
		lost("session done")
	}()
	return nil
}

func (h *etcdHolder) unlock(ctx context.Context) error { return h.m.Unlock(ctx) }
