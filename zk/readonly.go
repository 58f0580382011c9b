package zk

// The search for a server that also writes.

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"
)

const (
	firstSeek = time.Second
	maxSeek   = time.Minute
	seekWait  = 5 * time.Second // for one server's answer
)

var errWritable = fmt.Errorf("%w: it was read-only, and another one also writes", ErrMoved)

// seek looks for a server that also writes, while the session is connected to a read-only one, and then closes the
// connection. The other servers do not know a session that a read-only server created: it ends with ErrExpired, and
// another one follows.
func (n *conn) seek() {
	c := n.sess.client
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	n.wg.Go(func() {
		select {
		case <-n.dead:
			cancel()
		case <-ctx.Done():
		}
	})
	for wait := firstSeek; sleep(ctx, jitter(wait)); wait = min(2*wait, maxSeek) {
		for _, srv := range c.serverList() { // including the current one, whose name may have other addresses
			if c.writable(ctx, srv) {
				c.prefer(srv)
				n.fail(errWritable)
				return
			}
		}
	}
}

// writable asks a server whether it writes, with the four-letter word isro.
func (c *Client) writable(ctx context.Context, srv server) bool {
	ctx, cancel := context.WithTimeout(ctx, seekWait)
	defer cancel()
	nc, raw, err := c.dial(ctx, srv)
	if err != nil {
		return false
	}
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()
	defer raw.Close()
	if _, err := nc.Write([]byte("isro")); err != nil {
		return false
	}
	answer, err := io.ReadAll(io.LimitReader(nc, 2))
	return err == nil && string(answer) == "rw"
}

// prefer makes srv the next server to try.
func (c *Client) prefer(srv server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn = max(0, slices.Index(c.servers, srv))
}
