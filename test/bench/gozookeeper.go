package main

import (
	"context"
	"errors"
	"time"

	gozk "github.com/go-zookeeper/zk"

	"github.com/seed-a3166700/turnstile/internal/measure"
)

const kindGoZooKeeper = "go-zookeeper"

// theirs is go-zookeeper's connection.
type theirs struct{ conn *gozk.Conn }

func openGoZooKeeper(ctx context.Context, p *plan) (connection, error) {
	conn, events, err := gozk.Connect([]string{p.addr}, 30*time.Second, gozk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	if err := awaitSession(ctx, events); err != nil {
		conn.Close()
		return nil, err
	}
	return &theirs{conn}, nil
}

func (t *theirs) locker(path string) (measure.Locker, error) {
	return &theirLocker{gozk.NewLock(t.conn, path, gozk.WorldACL(gozk.PermAll))}, nil
}

func (t *theirs) close() { t.conn.Close() }

type theirLocker struct{ l *gozk.Lock }

func (l *theirLocker) Lock(context.Context) error   { return l.l.Lock() }
func (l *theirLocker) Unlock(context.Context) error { return l.l.Unlock() }
func (l *theirLocker) Finish(context.Context) error { return nil }

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
