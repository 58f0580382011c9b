package zk

// Connecting, reconnecting and closing.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

const (
	maxPingInterval = 10 * time.Second
	firstBackoff    = 20 * time.Millisecond
	minBackoff      = time.Millisecond // between connections that break early
	maxBackoff      = 2 * time.Second
	maxSpread       = 250 * time.Millisecond // over which the clients of a failed server connect to the others
)

// keep opens the session and keeps it connected until it ends. Only this goroutine connects a session that lives.
func (c *Client) keep(s *Session) {
	var n *conn
	wait := time.Duration(0)
	if c.backoff > minBackoff { // the session before ended after more than one connection that broke early
		wait = jitter(c.backoff)
	}
	var hurry <-chan struct{}
	opened := false
	for s.ctx.Err() == nil {
		if wait > 0 && !sleepUnless(s.ctx, hurry, s.bound(wait, 8)) {
			break
		}
		var err error
		if n, err = c.connect(s); err != nil {
			s.end(err)
			break
		}
		if !s.attach(n) {
			_, _ = c.rest(s, n)
			break
		}
		if !opened {
			opened = true
			c.opened(s)
		}
		c.connected(s, n)
		c.leaveUnlisted(n)
		err = s.oversee(n)
		if s.ctx.Err() == nil {
			c.setLastError(err)
			s.detach(n, err)
			level := slog.LevelWarn
			if errors.Is(err, errMoved) {
				level = slog.LevelInfo
			}
			c.log.Log(s.ctx, level, "disconnected", "server", n.server.String(), "session", s.hexID(), "err", err)
		}
		if hook := c.cfg.Hooks.Disconnected; hook != nil {
			hook(n.server.String(), err)
		}
		s.tellCertain()
		wait, hurry = c.rest(s, n)
		if s.ctx.Err() != nil {
			break
		}
		c.tell(Suspended)
		n = nil
	}
	c.publish(nil)
	s.tellCertain()
	c.tell(Ended)
	cause := context.Cause(s.ctx)
	if hook := c.cfg.Hooks.Ended; hook != nil && opened {
		hook(s.ID(), cause)
	}
	switch {
	case errors.Is(cause, ErrLost) && c.ctx.Err() == nil:
		c.setLastError(ErrNotConnected)
		c.wg.Go(func() { c.closeLost(s, n) })
	case errors.Is(cause, ErrClosed):
		if timeout := s.Timeout(); timeout > 0 && (n == nil || !n.closeSession(context.WithoutCancel(c.ctx))) {
			c.mu.Lock()
			c.left = fmt.Errorf("zk: no server has confirmed the end of %v: it may live for up to %v", s, timeout)
			c.mu.Unlock()
		}
	case n != nil:
		n.fail(cause)
		n.wg.Wait()
	}
}

// rest returns how long to wait after a connection has ended. The wait grows with every connection that breaks early,
// also from session to session: a server that grants one and hangs up must not be asked for the next ones at once. The
// wait is over when something is sent on hurry.
func (c *Client) rest(s *Session, n *conn) (wait time.Duration, hurry <-chan struct{}) {
	if s.now().Sub(n.started) > maxBackoff {
		c.backoff = 0
	}
	wait = jitter(c.backoff)
	if c.backoff == 0 {
		// An owner must learn quickly whether its session lives, also one that becomes it now: the last reply before
		// the disconnect may have been that to its request.
		select {
		case <-s.owning:
		default:
		}
		if hurry = s.owning; !s.owns() {
			wait = rand.N(min(n.timeout/32, maxSpread))
		}
	}
	c.backoff = min(max(2*c.backoff, minBackoff), maxBackoff)
	return wait, hurry
}

func (c *Client) connected(s *Session, n *conn) {
	c.setLastError(nil)
	c.log.Info("connected",
		"server", n.server.String(), "session", s.hexID(), "timeout", n.timeout, "readonly", n.readOnly)
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

// opened calls the Opened hook.
func (c *Client) opened(s *Session) {
	if hook := c.cfg.Hooks.Opened; hook != nil {
		hook(SessionOpened{ID: s.ID(), Requested: c.cfg.Timeout, Granted: s.Timeout()})
	}
}

// tellCertain calls the Certain hook if it has not been told yet what is so.
func (s *Session) tellCertain() {
	hook := s.client.cfg.Hooks.Certain
	if hook == nil {
		return
	}
	var until time.Time
	s.mu.Lock()
	if s.owned != nil {
		until = s.certain()
	}
	s.mu.Unlock()
	switch {
	case until.Equal(s.told):
		return
	case until.IsZero():
		hook(until)
	default:
		hook(s.client.clock.system(until))
	}
	s.told = until
}

// tell calls the State hook.
func (c *Client) tell(state State) {
	if hook := c.cfg.Hooks.State; hook != nil {
		hook(state)
	}
}

// oversee sends pings when the connection is idle, until the connection fails or the session ends, and returns why. A
// connection is silent after two thirds of the session's window: more than two pings fit in, so that a slow one does no
// harm, and a third is left to connect to another server. While something is owned, oversee pings more often, so that
// certificates count from a recent request, and sends proofs.
func (s *Session) oversee(n *conn) error {
	window := s.client.window(n.timeout)
	interval, silence, tick := min(window/4, maxPingInterval), window*2/3, n.timeout/16
	timer := time.NewTimer(time.Nanosecond) // never zero: golang/go#78156
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
		s.tellCertain()
		s.mu.Lock()
		now := s.now()
		quiet, idle := now.Sub(n.lastReply), now.Sub(n.lastSent)
		if quiet >= silence {
			s.mu.Unlock()
			return fmt.Errorf("zk: %w: none from %v for %v", ErrNoReply, n.server, quiet.Round(time.Millisecond))
		}
		limit, wait := interval, tick // the latest time at which a new ownership is noticed
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

// connect tries the servers in turn until one accepts the session. It returns an error only if the session has ended.
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
		case errors.Is(err, ErrLost):
			c.log.Warn("the server does not continue the session, which is thereby lost",
				"server", srv.String(), "session", s.hexID(), "err", err)
			return nil, err
		case errors.Is(err, ErrExpired), errors.Is(err, ErrAuthFailed):
			return nil, err
		}
		err = fmt.Errorf("zk: %v: %w", srv, err)
		c.setLastError(err)
		level := slog.LevelDebug
		if last && backoff == firstBackoff { // no server was reachable: warn once
			level = slog.LevelWarn
		}
		c.log.Log(s.ctx, level, "cannot connect; retrying", "server", srv.String(), "session", s.hexID(), "err", err)
		if !last {
			continue
		}
		if !sleep(s.ctx, jitter(s.bound(backoff, 8))) {
			return nil, context.Cause(s.ctx)
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// attempt connects to one server and does the handshake, within a part of the time that the session has left.
func (c *Client) attempt(ctx context.Context, s *Session, srv server) (*conn, error) {
	limit := c.cfg.Timeout / time.Duration(min(max(len(c.serverList()), 2), 4))
	ctx, cancel := context.WithTimeout(ctx, s.bound(limit, 3))
	defer cancel()
	nc, raw, err := c.dial(ctx, srv)
	if err != nil {
		return nil, err
	}
	n := newConn(s, srv, nc, raw)
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	err = c.handshake(ctx, s, n)
	if !stop() && err == nil {
		err = contextError(ctx)
	}
	if err != nil {
		if ctx.Err() != nil && !errors.Is(err, ErrExpired) && !errors.Is(err, ErrAuthFailed) {
			if errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) { // we have closed it, as ctx ended
				err = errors.New("no answer to the connect request")
			}
			err = fmt.Errorf("%w: %w", err, contextError(ctx))
		}
		return nil, closeAfter(raw, err)
	}
	return n, nil
}

// bound returns d or, if less, the session's remaining time divided by part. It returns at least a millisecond: ever
// smaller waits would never reach the session's end.
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

// closeLost closes a lost session at the server, so that its ephemeral nodes go early. It uses the connection n, if
// there is one, and then new ones, for as long as the server may keep the session. Before that it waits for the margin,
// because owners may use that time to stop their work, and another client must not acquire in between what they owned.
func (c *Client) closeLost(s *Session, n *conn) {
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
		if n != nil && n.closeSession(ctx) || ctx.Err() != nil {
			return
		}
		if !sleep(ctx, jitter(backoff)) {
			return
		}
		srv, _ := c.nextServer()
		var err error
		n, err = c.attempt(ctx, s, srv)
		if errors.Is(err, ErrExpired) || errors.Is(err, ErrLost) || errors.Is(err, ErrAuthFailed) {
			return // ErrLost: this server resumes no session
		}
		if err == nil {
			n.start()
		}
	}
}

// errGone ends a connection whose server has confirmed that the session is closed.
var errGone = errors.New("the session was closed at the server")

// closeSession sends closeSession for a session that has ended here, and reports whether the server has confirmed it. A
// connection that breaks without a reply confirms nothing, nor does a read-only server, which has no quorum.
func (n *conn) closeSession(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, min(n.timeout/4, maxCloseWait))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { n.fail(contextError(ctx)) })
	defer stop()
	s := n.sess
	s.mu.Lock()
	n.closeXid = s.takeXid()
	frame := wire.AppendRequest(nil, n.closeXid, wire.OpCloseSession, nil)
	s.mu.Unlock()
	if _, err := n.nc.Write(frame); err != nil {
		n.fail(err)
	}
	<-n.dead
	n.wg.Wait()
	return errors.Is(n.err, errGone) && !n.readOnly
}

// sleep waits for d, and returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool { return sleepUnless(ctx, nil, d) }

// sleepUnless is sleep, but returns true early if something is sent on hurry.
func sleepUnless(ctx context.Context, hurry <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(max(d, time.Nanosecond))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-hurry:
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
