package main

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/seed-a3166700/turnstile/internal/measure"
)

const kindEtcd = "etcd"

// etcdClient is etcd's client. Every locker has a session (a lease) of its own: the Mutex is re-entrant within one.
type etcdClient struct {
	ctx    context.Context //nolint:containedctx // of the process
	client *clientv3.Client
}

func dialEtcd(addr string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{addr}, DialTimeout: 30 * time.Second, Logger: zap.NewNop()})
}

func openEtcd(ctx context.Context, p *plan) (connection, error) {
	client, err := dialEtcd(p.addr)
	if err != nil {
		return nil, err
	}
	return &etcdClient{ctx, client}, nil
}

func (e *etcdClient) locker(path string) (measure.Locker, error) {
	session, err := concurrency.NewSession(e.client, concurrency.WithTTL(30), concurrency.WithContext(e.ctx))
	if err != nil {
		return nil, err
	}
	return &etcdLocker{m: concurrency.NewMutex(session, path)}, nil
}

func (e *etcdClient) close() { _ = e.client.Close() } // leases end by themselves

type etcdLocker struct{ m *concurrency.Mutex }

func (l *etcdLocker) Lock(ctx context.Context) error   { return l.m.Lock(ctx) }
func (l *etcdLocker) Unlock(ctx context.Context) error { return l.m.Unlock(ctx) }
func (l *etcdLocker) Finish(context.Context) error     { return nil }

// etcdLine counts the contenders at a path.
func etcdLine(addr string) (func(ctx context.Context, path string) (int, error), func(), error) {
	client, err := dialEtcd(addr)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, path string) (int, error) {
		got, err := client.Get(ctx, path+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			return 0, errors.Join(errors.New("etcd: count the line"), err)
		}
		return int(got.Count), nil
	}, func() { _ = client.Close() }, nil
}
