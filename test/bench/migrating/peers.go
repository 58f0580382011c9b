// Package migrating has the Go code of other projects that docs/migrating-others.md shows or mentions, so that it is
// compiled.
package migrating

// What a program does with go-zookeeper, etcd's concurrency package and redsync.

import (
	"context"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-zookeeper/zk"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// GoZooKeeper locks with go-zookeeper.
func GoZooKeeper(servers []string, work func()) error {
	conn, events, err := zk.Connect(servers, 10*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	go watch(events) // the only news of an expired session
	l := zk.NewLock(conn, "/locks/report", zk.WorldACL(zk.PermAll))
	if err := l.Lock(); err != nil { // no context, no limit
		return err
	}
	work() // goes on after a loss
	return l.Unlock()
}

func watch(events <-chan zk.Event) {
	for range events {
		continue
	}
}

// Etcd locks with etcd's concurrency package.
func Etcd(ctx context.Context, client *clientv3.Client, work func()) error {
	session, err := concurrency.NewSession(client, concurrency.WithTTL(10))
	if err != nil {
		return err
	}
	defer session.Close()
	m := concurrency.NewMutex(session, "/locks/report")
	if err := m.Lock(ctx); err != nil {
		return err
	}
	work() // has to watch session.Done itself
	return m.Unlock(ctx)
}

// EtcdElection leads with etcd's concurrency package.
func EtcdElection(ctx context.Context, session *concurrency.Session, work func()) error {
	e := concurrency.NewElection(session, "/app/leader")
	if err := e.Campaign(ctx, "host-1"); err != nil {
		return err
	}
	work()
	return e.Resign(ctx)
}

// Redsync locks with redsync.
func Redsync(ctx context.Context, rs *redsync.Redsync, work func()) error {
	m := rs.NewMutex("report", redsync.WithExpiry(10*time.Second))
	if err := m.LockContext(ctx); err != nil {
		return err
	}
	work() // within ten seconds, or with calls of ExtendContext
	_, err := m.UnlockContext(ctx)
	return err
}
