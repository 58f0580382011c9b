package zk

// The client, which opens one session after another.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// maxCloseWait bounds how long Close waits for the server.
const maxCloseWait = 3 * time.Second

// A Client keeps one live session at a time, and opens a new one when that has ended. All methods may be called from any goroutine.
type Client struct {
	cfg    settings
	clock  *clock
	log    *slog.Logger
	ctx    context.Context //nolint:containedctx // the client's life: ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup
	calls  sync.Pool // of *call; the client's own, because a channel made in a synctest bubble must stay in it

	mu      sync.Mutex // guards what follows
	closed  bool
	final   error         // why there will be no further session
	current *Session      // the one that is being opened, or lives
	live    *Session      // current, once a server has granted it, until it has ended
	changed chan struct{} // closed when live or final change
	lastErr error         // why there is no connection
	left    error         // that a session was not closed at the server
	turn    int           // which server is next
}

// Open checks cfg and begins to connect in the background. It does not wait for a server, and fails only for a bad cfg or a ctx
// that has ended; Session waits. The client lives until Close, whatever becomes of ctx.
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
	c := &Client{cfg: set, clock: clock, log: set.Logger, changed: make(chan struct{}), lastErr: ErrNotConnected}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	c.wg.Go(c.run)
	return c, nil
}

// Session returns the live session. While there is none it waits, until ctx ends (then the error wraps ctx's cause,
// and ErrNotConnected with the reason if there is no connection) or the client is done for: ErrClosed or
// ErrAuthFailed.
func (c *Client) Session(ctx context.Context) (*Session, error) {
	for {
		c.mu.Lock()
		live, final, changed := c.live, c.final, c.changed
		c.mu.Unlock()
		switch {
		case final != nil:
			return nil, final
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

// LastError returns why there is no connection right now, nil if there is one.
func (c *Client) LastError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lastErr
}

// Close waits for the answers to what was asked before, ends the session, whose context ends with ErrClosed, closes it at the server, if
// all that can be done within a few seconds, stops everything and waits for it. Holders are told first: once the server has been asked, it may give to others what the session held.
// It returns an error if there was a session that the server may keep until its timeout. Closing again waits as well and returns nil.
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
	if !first {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left
}

// finish says that there will be no further session.
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

// run keeps one session after the other, until the client is closed or refused for good.
func (c *Client) run() {
	for {
		s := c.begin()
		if s == nil {
			return
		}
		c.keep(s)
		cause := context.Cause(s.ctx)
		c.log.Info("session ended", "session", s.ID(), "err", cause)
		if errors.Is(cause, ErrClosed) || errors.Is(cause, ErrAuthFailed) {
			c.finish(cause)
			return
		}
	}
}

// begin returns a session that is to be opened, nil if the client was closed.
func (c *Client) begin() *Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.current = newSession(c)
	return c.current
}

// publish makes s the live session, or, if nil, says that there is none.
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

// nextServer returns the server whose turn it is, and whether it is the last of a round.
func (c *Client) nextServer() (s server, last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.turn % len(c.cfg.servers)
	c.turn = i + 1
	return c.cfg.servers[i], c.turn == len(c.cfg.servers)
}

// window is how long a session with the given timeout lives after the last request that gets an answer.
func (c *Client) window(timeout time.Duration) time.Duration {
	if c.cfg.Margin > 0 {
		return timeout - c.cfg.Margin
	}
	return timeout - timeout/4
}
