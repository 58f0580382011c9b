package main

import (
	"context"
	"errors"
	"sync"
	"time"
)

// A crowd is one holder and n waiters of one lock, each of them once.
type crowd struct {
	n    int
	held chan struct{} // one value from each who has got the lock
	pass chan struct{} // lets the holder unlock; closed when everybody may
	done sync.WaitGroup

	mu  sync.Mutex // guards err
	err error
}

func newCrowd(n int) *crowd {
	return &crowd{n: n, held: make(chan struct{}, n+1), pass: make(chan struct{})}
}

// stand lets the first take the lock, and then starts all others. Whether they stand in line by then only the server can tell.
func (c *crowd) stand(ctx context.Context, g *gang) error {
	for i := range c.n + 1 {
		l, err := g.locker(i, g.plan.path(0))
		if err != nil {
			return err
		}
		c.done.Go(func() { c.wait(ctx, l) })
		if i == 0 {
			<-c.held
			if err := c.failed(); err != nil {
				return err
			}
		}
	}
	return nil
}

// wait has the lock once. It keeps its own part of the stack small: what a waiter costs shall be the contender's doing.
func (c *crowd) wait(ctx context.Context, l locker) {
	err := l.lock(ctx)
	c.had(ctx, l, err)
}

// had keeps the lock until it may pass.
//
//go:noinline
func (c *crowd) had(ctx context.Context, l locker, err error) {
	c.held <- struct{}{}
	if err == nil {
		<-c.pass
		err = errors.Join(l.unlock(ctx), l.settle(ctx))
	}
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.err = errors.Join(c.err, err)
	}
}

func (c *crowd) failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// step passes the lock to the next, who keeps it.
func (c *crowd) step() (time.Duration, error) {
	start := time.Now()
	c.pass <- struct{}{}
	<-c.held
	return time.Since(start), c.failed()
}

// drain lets everybody have it.
func (c *crowd) drain() (time.Duration, error) {
	start := time.Now()
	close(c.pass)
	c.done.Wait()
	return time.Since(start), c.failed()
}
