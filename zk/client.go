package zk

// The client, which opens one session after another.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// maxCloseWait bounds how long Close waits for the server.
const maxCloseWait = 3 * time.Second

// A Client keeps one live session at a time, and opens a new one when that has ended. Its methods may be called from
// several goroutines at once.
//
// The requests that are methods of Client (Get, Set, Create and so on) are for callers who do not care which session
// sends them. Each waits for a live session as long as its ctx lasts, and is sent once. If the connection or the
// session ends before the reply, a write fails with outcome Unknown, as it does on a Session, and a read is sent again.
// A later session may read an older state than an earlier one has: Sync prevents that.
type Client struct {
	cfg      settings
	clock    *clock
	log      *slog.Logger
	ctx      context.Context //nolint:containedctx // the client's life: ends with Close
	cancel   context.CancelFunc
	wg       sync.WaitGroup
	backoff  time.Duration // the next wait after a connection that breaks early; only run uses it
	suspect  atomic.Int32  // the operation at which servers that resume no session close connections; 0 if none
	closings int           // how many in a row, without an answer to it; only run uses it
	single   atomic.Bool   // the servers are too old for MultiRead
	reports  reports
	calls    sync.Pool // of *call; per client, because a channel made in a synctest bubble must stay in it

	mu      sync.Mutex // guards what follows; a session's mu may be taken while it is held, not the other way round
	closed  bool
	final   error         // why there will be no further session
	current *Session      // being opened, or live
	live    *Session      // current from when a server has granted it until it ends
	changed chan struct{} // closed when live or final change
	lastErr error         // why there is no connection
	left    error         // set if no server has confirmed the end of the last session
	servers []server      // never empty; replaced as a whole
	turn    int           // the index of the next server
}

// Open checks cfg and begins to connect in the background. It returns an error only if cfg is invalid or ctx has ended;
// it does not wait for a server, as Session does. The client lives until Close, even if ctx ends before.
func Open(ctx context.Context, cfg Config) (*Client, error) {
	return open(ctx, cfg, newClock(suspended))
}

func open(ctx context.Context, cfg Config, clock *clock) (*Client, error) {
	set, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, contextError(ctx)
	}
	c := &Client{
		cfg: set, clock: clock, log: set.Logger, changed: make(chan struct{}), lastErr: ErrNotConnected,
		servers: set.servers,
	}
	c.reports.hooks, c.reports.ctx = &c.cfg.Hooks, context.WithoutCancel(ctx)
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	c.wg.Go(c.run)
	return c, nil
}

// Session returns the live session, and waits for one if necessary. If ctx ends first, the error wraps ctx's cause, and
// ErrNotConnected with the reason if there is no connection. After the client's end it returns ErrClosed,
// ErrAuthFailed or ErrUnsupported.
func (c *Client) Session(ctx context.Context) (*Session, error) {
	for {
		c.mu.Lock()
		live, final, changed := c.live, c.final, c.changed
		c.mu.Unlock()
		switch {
		case final != nil:
			return nil, fmt.Errorf("zk: no session: %w", final)
		case live != nil && live.ctx.Err() == nil:
			return live, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if lastErr := c.LastError(); lastErr != nil {
				if !errors.Is(lastErr, ErrNotConnected) {
					lastErr = fmt.Errorf("%w: %w", ErrNotConnected, lastErr)
				}
				return nil, fmt.Errorf("zk: no session: %w (%w)", contextError(ctx), lastErr)
			}
			return nil, fmt.Errorf("zk: no session: %w", contextError(ctx))
		}
	}
}

// LastError returns why there is no connection now, or nil if there is one.
func (c *Client) LastError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lastErr
}

// Close waits for pending replies, ends the session with ErrClosed, closes it at the server, and stops the client. It
// takes a few seconds at most, and returns an error if the server may keep the session until its timeout. The session's
// context ends before the server is asked, because the server may then grant to others what the session owned. A second
// Close waits for the first and returns nil.
func (c *Client) Close() error {
	c.mu.Lock()
	first, s := !c.closed, c.current
	c.closed = true
	c.mu.Unlock()
	if first {
		if s != nil {
			s.drain(min(s.Timeout()/4, maxCloseWait))
			s.end(ErrClosed)
		}
		c.finish(ErrClosed)
	}
	c.wg.Wait()
	c.reports.wait()
	if !first {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left
}

// finish ends the client: there will be no further session.
func (c *Client) finish(cause error) {
	c.mu.Lock()
	if c.final == nil {
		c.final = cause
		c.lastErr = cause
		close(c.changed)
		c.changed = make(chan struct{})
	}
	c.mu.Unlock()
	c.cancel()
}

// run keeps one session after another, until the client is closed or its credentials are refused.
func (c *Client) run() {
	for {
		s := c.begin()
		if s == nil {
			return
		}
		c.keep(s)
		cause := context.Cause(s.ctx)
		c.log.Info("session ended", "session", s.hexID(), "err", cause)
		if errors.Is(cause, ErrClosed) || errors.Is(cause, ErrAuthFailed) || errors.Is(cause, ErrUnsupported) {
			c.finish(cause)
			return
		}
	}
}

// Logger returns Config.Logger, or one that discards everything: for what recipes have to say.
func (c *Client) Logger() *slog.Logger { return c.log }

// begin returns a session to open, or nil if the client was closed.
func (c *Client) begin() *Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.current = newSession(c)
	return c.current
}

// publish makes s, which may be nil, the live session.
func (c *Client) publish(s *Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live != s {
		c.live = s
		close(c.changed)
		c.changed = make(chan struct{})
	}
}

func (c *Client) setLastError(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.final == nil {
		c.lastErr = err
	}
}

// nextServer returns the next server to try, and whether it is the last of a round.
func (c *Client) nextServer() (s server, last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.turn % len(c.servers)
	c.turn = i + 1
	return c.servers[i], c.turn == len(c.servers)
}

// serverList returns the servers as they are now.
func (c *Client) serverList() []server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.servers
}

// window returns how long a session with the given timeout lives after sending the last request that is answered.
func (c *Client) window(timeout time.Duration) time.Duration {
	if c.cfg.Margin > 0 {
		return timeout - c.cfg.Margin
	}
	return timeout - timeout/4
}
