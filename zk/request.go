package zk

// Sending a request and waiting for its reply.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// do sends a call and waits for its reply. On success the caller owns the call, and frees it. On failure do frees it.
func (s *Session) do(ctx context.Context, c *call, body wire.Record) error {
	if hook := s.client.cfg.Hooks.Request; hook != nil {
		return s.doHooked(ctx, c, body, hook)
	}
	return s.roundTrip(ctx, c, body)
}

func (s *Session) doHooked(
	ctx context.Context, c *call, body wire.Record, hook func(context.Context, RequestDone),
) error {
	done := RequestDone{Op: opName(c.op), Path: c.path}
	start := time.Now()
	done.Err = s.roundTrip(ctx, c, body)
	done.Took = time.Since(start)
	hook(ctx, done)
	return done.Err
}

func (s *Session) roundTrip(ctx context.Context, c *call, body wire.Record) error {
	if ctx.Err() != nil {
		c.err, c.outcome = contextError(ctx), NotSent
		return c.discard()
	}
	s.send(c, body)
	select {
	case <-c.done:
		return c.discardFailed()
	case <-ctx.Done():
	}
	left := &Error{Op: opName(c.op), Path: c.path, Err: contextError(ctx)}
	if left.Outcome = s.cancelCall(c); left.Outcome == NotSent || c.state.CompareAndSwap(callOpen, callLeft) {
		return left
	}
	<-c.done // the reply came first
	return c.discardFailed()
}

func (c *call) discardFailed() error {
	err := c.failure()
	if err != nil {
		c.free()
	}
	return err
}

func (c *call) discard() error {
	err := c.failure()
	c.free()
	return err
}

// refuse returns the error of a call that was not sent.
func refuse(op wire.Op, path string, err error) error {
	return &Error{Op: opName(op), Path: path, Err: err, Outcome: NotSent}
}

// send queues a call, and writes it at once if it can.
func (s *Session) send(c *call, body wire.Record) {
	s.mu.Lock()
	if s.cause != nil {
		s.mu.Unlock()
		c.err, c.outcome = s.cause, NotSent
		c.finish()
		return
	}
	s.enqueue(c, body)
	s.flush(true)
}

// enqueue appends a call's frame to the output. The caller holds s.mu.
func (s *Session) enqueue(c *call, body wire.Record) {
	start := len(s.out)
	c.xid = s.takeXid()
	s.out = wire.AppendRequest(s.out, c.xid, c.op, body)
	s.queued(c, len(s.out)-start)
}

// queued records a call whose frame of the given size was appended to s.out.
func (s *Session) queued(c *call, size int) {
	c.size, c.waits = size, true
	s.calls.push(c)
	s.unsent++
	if c.watch != nil {
		s.watches.begin(c.watch)
	}
}

// takeXid returns the xid of the next request. It is positive, and 1 follows the largest.
func (s *Session) takeXid() int32 {
	s.xid++
	if s.xid <= 0 {
		s.xid = 1
	}
	return s.xid
}

// cancelCall cancels c if it was not sent. It then returns NotSent, and the session owns c. The frame stays in the
// output until half of the queued calls are canceled, so that callers who leave together after an outage cost one pass,
// not one each.
func (s *Session) cancelCall(c *call) Outcome {
	s.mu.Lock()
	if !c.waits || !c.state.CompareAndSwap(callOpen, callLeft) {
		s.mu.Unlock()
		return Unknown
	}
	c.waits = false
	s.canceled++
	if c.watch != nil {
		s.watchAnswered(c.watch, false, false)
	}
	if 2*s.canceled >= s.unsent {
		s.sweep()
	}
	s.flush(false)
	return NotSent
}

// sweep removes the canceled calls and their frames from the queue. The caller holds s.mu.
func (s *Session) sweep() {
	if s.canceled == 0 {
		return
	}
	sent, frames, out := s.calls.len()-s.unsent, s.out, s.out[:0]
	s.calls.filter(sent, func(c *call) bool {
		frame := frames[:c.size]
		frames = frames[c.size:]
		if c.waits {
			out = append(out, frame...) // to the left of its old position, in the same buffer
			return true
		}
		c.free()
		return false
	})
	s.out, s.unsent, s.canceled = out, s.calls.len()-sent, 0
	s.noteDrained()
}

// noteDrained wakes drain and leave if no call is pending, or none that was sent on a connection that is left. The
// caller holds s.mu.
func (s *Session) noteDrained() {
	pending := s.calls.len()
	if s.conn != nil && s.conn.leaving {
		pending -= s.unsent
	}
	if s.drained != nil && pending == 0 {
		close(s.drained)
		s.drained = nil
	}
}

var errTooLarge = errors.New("request larger than servers accept by default (jute.maxbuffer)")

// lost returns the error of a call whose connection broke before the reply came.
func (c *call) lost(why error) error {
	if c.size > wire.DefaultMaxFrame {
		return fmt.Errorf("%w: %w: %d bytes, limit %d: %w",
			ErrConnectionLost, errTooLarge, c.size, wire.DefaultMaxFrame, why)
	}
	return fmt.Errorf("%w: %w", ErrConnectionLost, why)
}
