package zk

// Connecting, reconnecting and closing.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

const (
	maxPingInterval = 10 * time.Second
	firstBackoff    = 20 * time.Millisecond
	maxBackoff      = 2 * time.Second
	maxSpread       = 250 * time.Millisecond // over which the clients of a server that fails come to the others
)

// keep opens the session and keeps it connected until it has ended. It is the only goroutine that connects.
func (c *Client) keep(s *Session) {
	var n *conn
	var backoff time.Duration // grows with every connection that does not last
	for s.ctx.Err() == nil {
		var err error
		if n, err = c.connect(s); err != nil {
			s.end(err)
			break
		}
		if !s.attach(n) {
			break
		}
		c.connected(s, n)
		err = s.oversee(n)
		if s.ctx.Err() == nil {
			c.setLastError(err)
			s.detach(n, err)
			c.log.Warn("disconnected", "server", n.server.String(), "session", s.ID(), "err", err)
		}
		if hook := c.cfg.Hooks.Disconnected; hook != nil {
			hook(n.server.String(), err)
		}
		if s.ctx.Err() != nil {
			break
		}
		c.tell(Suspended)
		if s.now().Sub(n.started) > maxBackoff {
			backoff = 0
		}
		wait := jitter(backoff)
		if backoff == 0 && !s.owns() { // an owner must hear soon what has become of its session
			wait = rand.N(min(n.timeout/32, maxSpread))
		}
		if n = nil; wait > 0 && !sleep(s.ctx, s.bound(wait, 8)) {
			break
		}
		backoff = min(max(2*backoff, time.Millisecond), maxBackoff)
	}
	c.publish(nil)
	c.tell(Ended)
	cause := context.Cause(s.ctx)
	switch {
	case errors.Is(cause, ErrLost) && c.ctx.Err() == nil:
		c.setLastError(ErrNotConnected)
		c.wg.Go(func() { c.bury(s, n) })
	case errors.Is(cause, ErrClosed):
		if timeout := s.Timeout(); timeout > 0 && (n == nil || !n.farewell(context.WithoutCancel(c.ctx))) {
			c.mu.Lock()
			c.left = fmt.Errorf("zk: no server has confirmed that %v is closed: it may go on for up to %v", s, timeout)
			c.mu.Unlock()
		}
	case n != nil:
		n.fail(cause)
		n.wg.Wait()
	}
}

func (c *Client) connected(s *Session, n *conn) {
	c.setLastError(nil)
	c.log.Info("connected", "server", n.server.String(), "session", s.ID(), "timeout", n.timeout, "readonly", n.readOnly)
	state := Connected
	if n.readOnly {
		state = ConnectedReadOnly
	}
	if hook := c.cfg.Hooks.Connected; hook != nil {
		hook(n.server.String())
	}
	c.tell(state)
	c.publish(s)
}

// tell calls the hook for states.
func (c *Client) tell(state State) {
	if hook := c.cfg.Hooks.State; hook != nil {
		hook(state)
	}
}

// oversee pings when nothing else is sent, until the connection fails (then it returns why) or the session ends. Three pings fit
// into the session's window before the connection counts as silent, so one that is lost ends nothing; and a silent connection is given
// up when there is a third of the window left to go on with another server. While something is owned it pings more often, so that
// certificates find a recent request to be credited with, and has the session proved.
func (s *Session) oversee(n *conn) error {
	window := s.client.window(n.timeout)
	interval, silence, tick := min(window/4, maxPingInterval), window*2/3, n.timeout/16
	timer := time.NewTimer(time.Nanosecond) // never zero: see golang/go#78156 in docs/bugs.md
	defer timer.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return context.Cause(s.ctx)
		case <-n.dead:
			return n.err
		case <-timer.C:
		}
		if err := s.prove(n); err != nil {
			return err
		}
		s.mu.Lock()
		now := s.now()
		quiet, idle := now.Sub(n.lastReply), now.Sub(n.lastSent)
		if quiet >= silence {
			s.mu.Unlock()
			return fmt.Errorf("zk: no answer from %v for %v", n.server, quiet.Round(time.Millisecond))
		}
		limit, wait := interval, tick // which is how soon a new ownership is noticed
		if s.owned != nil {
			limit = tick
			wait = min(wait, s.proofDue(n, now))
		}
		if idle >= limit {
			n.pingDue = true
			idle = 0
		}
		timer.Reset(max(time.Millisecond, min(limit-idle, silence-quiet, wait)))
		s.flush(false)
	}
}

// connect tries the servers in turn until one has accepted the session. It returns an error only when the session is over.
func (c *Client) connect(s *Session) (*conn, error) {
	backoff := firstBackoff
	for {
		srv, last := c.nextServer()
		n, err := c.attempt(s.ctx, s, srv)
		switch {
		case err == nil:
			return n, nil
		case s.ctx.Err() != nil:
			return nil, context.Cause(s.ctx)
		case errors.Is(err, ErrExpired), errors.Is(err, ErrAuthFailed):
			return nil, err
		}
		err = fmt.Errorf("zk: %v: %w", srv, err)
		c.setLastError(err)
		level := slog.LevelDebug
		if last && backoff == firstBackoff { // no server has answered: said once, and then it is what it is
			level = slog.LevelWarn
		}
		c.log.Log(s.ctx, level, "cannot connect", "server", srv.String(), "session", s.ID(), "err", err)
		if !last {
			continue
		}
		if !sleep(s.ctx, jitter(s.bound(backoff, 8))) {
			return nil, context.Cause(s.ctx)
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// attempt connects to one server and shakes hands, within a part of what the session has left.
func (c *Client) attempt(ctx context.Context, s *Session, srv server) (*conn, error) {
	limit := c.cfg.Timeout / time.Duration(min(max(len(c.cfg.servers), 2), 4))
	ctx, cancel := context.WithTimeout(ctx, s.bound(limit, 3))
	defer cancel()
	nc, raw, err := c.dial(ctx, srv)
	if err != nil {
		return nil, err
	}
	n := newConn(s, srv, nc, raw)
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	err = c.handshake(s, n)
	if !stop() && err == nil {
		err = contextError(ctx)
	}
	if err != nil {
		if ctx.Err() != nil && !errors.Is(err, ErrExpired) && !errors.Is(err, ErrAuthFailed) {
			err = fmt.Errorf("%w: %w", contextError(ctx), err)
		}
		return nil, closeAfter(raw, err)
	}
	return n, nil
}

// bound returns d, or a part of what the session has left if that is less, but at least a millisecond: parts of parts never come to
// the end of it, and whoever waits for them does not let time pass.
func (s *Session) bound(d time.Duration, part int) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id == 0 || s.cause != nil {
		return d
	}
	until := s.deadline()
	if s.owned != nil {
		until = earlier(until, s.certain())
	}
	return min(d, max(until.Sub(s.now())/time.Duration(part), time.Millisecond))
}

// bury closes a session at the server that was lost here, so that its ephemeral nodes go early: on the connection that it still has,
// or else on a new one, for as long as the server may keep the session. Before, it waits for as long as the margin: that is the time
// which those who hold something by the session have to stop what they do, and which nobody may take from them.
func (c *Client) bury(s *Session, n *conn) {
	timeout := s.Timeout()
	ctx, cancel := context.WithTimeout(c.ctx, timeout)
	defer cancel()
	if !sleep(ctx, timeout-c.window(timeout)) {
		if n != nil {
			n.fail(ErrClosed)
			n.wg.Wait()
		}
		return
	}
	for backoff := firstBackoff; ; backoff = min(2*backoff, maxBackoff) {
		if n != nil && n.farewell(ctx) || ctx.Err() != nil {
			return
		}
		if !sleep(ctx, jitter(backoff)) {
			return
		}
		srv, _ := c.nextServer()
		var err error
		n, err = c.attempt(ctx, s, srv)
		if errors.Is(err, ErrExpired) || errors.Is(err, ErrAuthFailed) {
			return
		}
		if err == nil {
			n.start()
		}
	}
}

// errGone is why a connection has ended whose server has answered that the session is closed.
var errGone = errors.New("zk: the session is closed at the server")

// farewell sends closeSession on a connection of a session that has ended here, and reports whether the server has
// answered that it is closed. A server that hangs up without an answer may never have seen the request, and no quorum
// hears of what a read-only one closes.
func (n *conn) farewell(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, min(n.timeout/4, maxCloseWait))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { n.fail(contextError(ctx)) })
	defer stop()
	s := n.sess
	s.mu.Lock()
	n.goodbye = s.takeXid()
	frame := wire.AppendRequest(nil, n.goodbye, wire.OpCloseSession, nil)
	s.mu.Unlock()
	if _, err := n.nc.Write(frame); err != nil {
		n.fail(err)
	}
	<-n.dead
	n.wg.Wait()
	return errors.Is(n.err, errGone) && !n.readOnly
}

// sleep waits, and reports whether ctx outlived it.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(max(d, time.Nanosecond))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// jitter returns a random duration between half of d and d.
func jitter(d time.Duration) time.Duration {
	if d < 2 {
		return 0
	}
	return d/2 + rand.N(d/2)
}
