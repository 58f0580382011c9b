//go:build unix

package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// goZooKeeper has the connections of go-zookeeper, by name.
type goZooKeeper struct {
	conns map[string]*zkConn
}

func newGoZooKeeper() *goZooKeeper { return &goZooKeeper{conns: make(map[string]*zkConn)} }

// A zkConn is a connection and those who listen to its events.
type zkConn struct {
	conn *zk.Conn

	mu     sync.Mutex // guards listen
	listen []func(zk.Event)
}

type silent struct{}

func (silent) Printf(string, ...any) {}

func (g *goZooKeeper) open(_ context.Context, name string, servers []string, timeout time.Duration) (holder, error) {
	if c := g.conns[name]; c != nil {
		return &zkHolder{c: c}, nil
	}
	conn, events, err := zk.Connect(servers, timeout, zk.WithLogger(silent{}))
	if err != nil {
		return nil, err
	}
	c := &zkConn{conn: conn}
	g.conns[name] = c
	go func() {
		for e := range events {
			c.mu.Lock()
			for _, f := range c.listen {
				f(e)
			}
			c.mu.Unlock()
		}
	}()
	return &zkHolder{c: c}, nil
}

type zkHolder struct {
	c *zkConn
	l *zk.Lock
}

func (h *zkHolder) lock(ctx context.Context, path string, told, lost func(string)) error {
	h.l = zk.NewLock(h.c.conn, path, zk.WorldACL(zk.PermAll))
	for {
		err := h.l.Lock()
		if err == nil {
			break
		}
		// A contender that loses its connection tries again; its node of before goes with the session.
		retry := errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrSessionExpired)
		if !retry && !errors.Is(err, zk.ErrNoServer) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	h.c.listen = append(h.c.listen, func(e zk.Event) {
		switch e.State {
		case zk.StateDisconnected:
			told(e.State.String())
		case zk.StateExpired:
			told(e.State.String())
			lost(e.State.String())
		default:
		}
	})
	return nil
}

func (h *zkHolder) unlock(context.Context) error { return h.l.Unlock() }
