package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// Some sessions hold all locks of a crowd and others wait, so that no two wait for each other.
const (
	crowdHolders = 10
	crowdWaiters = 90
)

// A crowd is locks that are held, with those that wait for them.
type crowd struct {
	clients []*zk.Client
	holders []*zk.Session
	waiters []*zk.Session
}

// newCrowd makes the nodes of so many locks below root, each with a holder and so many waiters. They have the names and
// the data that Mutexes give them.
func newCrowd(ctx context.Context, addr, root string, locks, waiters int) (c *crowd, err error) {
	c = new(crowd)
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	for i := range crowdHolders + crowdWaiters {
		client, sess, err := connect(ctx, addr)
		if err != nil {
			return nil, err
		}
		c.clients = append(c.clients, client)
		if i < crowdHolders {
			c.holders = append(c.holders, sess)
		} else {
			c.waiters = append(c.waiters, sess)
		}
	}
	if err := c.directories(ctx, root, locks); err != nil {
		return nil, err
	}
	return c, c.stand(ctx, root, locks, waiters)
}

func (c *crowd) close() {
	var group sync.WaitGroup
	for _, client := range c.clients {
		group.Go(func() { _ = client.Close() }) // a session that it cannot end, ends by itself
	}
	group.Wait()
}

func crowdPath(root string, i int) string { return fmt.Sprintf("%s/job-%05d", root, i) }

// directories makes the locks' nodes.
func (c *crowd) directories(ctx context.Context, root string, locks int) error {
	if _, err := c.holders[0].Create(ctx, root, nil, zk.Persistent); err != nil {
		return err
	}
	return inParts(ctx, c.holders[0], locks, func(b *zk.Batch, i int) *zk.Future[zk.Created] {
		return b.Create(crowdPath(root, i), nil, zk.Persistent)
	})
}

// stand lets the holders and then the waiters stand in line.
func (c *crowd) stand(ctx context.Context, root string, locks, waiters int) error {
	err := together(ctx, len(c.holders), func(ctx context.Context, n int) error {
		own := share(locks, n, len(c.holders))
		return inParts(ctx, c.holders[n], own, func(b *zk.Batch, i int) *zk.Future[zk.Created] {
			return contend(b, crowdPath(root, n+i*len(c.holders)), n)
		})
	})
	if err != nil {
		return err
	}
	return together(ctx, len(c.waiters), func(ctx context.Context, n int) error {
		own := share(locks*waiters, n, len(c.waiters))
		return inParts(ctx, c.waiters[n], own, func(b *zk.Batch, i int) *zk.Future[zk.Created] {
			return contend(b, crowdPath(root, (n+i*len(c.waiters))/waiters), crowdHolders+n)
		})
	})
}

// share is how many of all numbers the n-th of so many parties has, if it has n and each parties-th after that.
func share(all, n, parties int) int { return (all - n + parties - 1) / parties }

// contend makes the node of a contender.
func contend(b *zk.Batch, path string, n int) *zk.Future[zk.Created] {
	data, _ := json.Marshal(lock.Owner{ // has no field that cannot be written
		Host: fmt.Sprintf("worker-%02d.example.com", n), PID: 1000 + n, Program: "report-builder", Since: time.Now(),
	})
	return b.Create(path+"/_c_"+attempt.NewGUID()+"-lock-", data, zk.EphemeralSequential)
}

// inParts makes n nodes, a part at a time: a server that had all of them to do at once would answer no session in time.
func inParts(ctx context.Context, sess *zk.Session, n int, create func(*zk.Batch, int) *zk.Future[zk.Created]) error {
	const part = 100
	for from := 0; from < n; from += part {
		b := sess.Batch()
		var made []*zk.Future[zk.Created]
		for i := from; i < min(n, from+part); i++ {
			made = append(made, create(b, i))
		}
		b.Send()
		for _, f := range made {
			if _, err := f.Get(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}
