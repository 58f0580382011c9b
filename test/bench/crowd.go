package main

import (
	"context"
	"encoding/json"
	"errors"
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
	return c.inBatches(ctx, c.holders[:1], func(b *zk.Batch, _ int) (all []*zk.Future[zk.Created]) {
		for i := range locks {
			all = append(all, b.Create(crowdPath(root, i), nil, zk.Persistent))
		}
		return all
	})
}

// stand lets the holders and then the waiters stand in line.
func (c *crowd) stand(ctx context.Context, root string, locks, waiters int) error {
	err := c.inBatches(ctx, c.holders, func(b *zk.Batch, n int) (all []*zk.Future[zk.Created]) {
		for i := n; i < locks; i += len(c.holders) {
			all = append(all, contend(b, crowdPath(root, i), n))
		}
		return all
	})
	if err != nil {
		return err
	}
	return c.inBatches(ctx, c.waiters, func(b *zk.Batch, n int) (all []*zk.Future[zk.Created]) {
		for i := n; i < locks*waiters; i += len(c.waiters) {
			all = append(all, contend(b, crowdPath(root, i/waiters), crowdHolders+n))
		}
		return all
	})
}

// contend makes the node of a contender.
func contend(b *zk.Batch, path string, n int) *zk.Future[zk.Created] {
	data, _ := json.Marshal(lock.Owner{ // has no field that cannot be written
		Host: fmt.Sprintf("worker-%02d.example.com", n), PID: 1000 + n, Program: "report-builder", Since: time.Now(),
	})
	return b.Create(path+"/_c_"+attempt.NewGUID()+"-lock-", data, zk.EphemeralSequential)
}

// inBatches lets each session make what make asks it to.
func (c *crowd) inBatches(ctx context.Context, sessions []*zk.Session,
	ask func(b *zk.Batch, n int) []*zk.Future[zk.Created],
) error {
	return together(ctx, len(sessions), func(ctx context.Context, n int) error {
		b := sessions[n].Batch()
		made := ask(b, n)
		b.Send()
		var errs []error
		for _, f := range made {
			_, err := f.Get(ctx)
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}
