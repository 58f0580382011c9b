package zk

// The search for a server that also writes.

import (
	"context"
	"errors"
	"io"
	"time"
)

const (
	firstSeek = time.Second
	maxSeek   = time.Minute
	seekWait  = 5 * time.Second // for one server's answer
)

var errWritable = errors.New("zk: leaving a read-only server for one that also writes")

// seek looks for a server that also writes while the session is on one that does not, and gives the connection up for it. A session
// that a read-only server has made is not known to the others: it then ends with ErrExpired, and a real one follows.
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
		for i, srv := range c.cfg.servers { // the one in use as well: its name may have other addresses
			if c.writable(ctx, srv) {
				c.prefer(i)
				n.fail(errWritable)
				return
			}
		}
	}
}

// writable asks a server whether it writes, by the four-letter word that is there for it.
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

// prefer makes a server the next one to connect to.
func (c *Client) prefer(i int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn = i
}
