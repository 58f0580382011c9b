package zk

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// do sends a call and waits for its answer. On success the call is the caller's, to read and to free; on failure it is gone.
func (s *Session) do(ctx context.Context, c *call, body wire.Record) error {
	if hook := s.client.cfg.Hooks.Request; hook != nil {
		return s.doHooked(ctx, c, body, hook)
	}
	return s.roundTrip(ctx, c, body)
}

func (s *Session) doHooked(ctx context.Context, c *call, body wire.Record, hook func(context.Context, RequestDone)) error {
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
	err := contextError(ctx)
	if s.withdraw(c) {
		c.err, c.outcome = err, NotSent
		return c.discard()
	}
	left := &Error{Op: opName(c.op), Path: c.path, Err: err, Outcome: Unknown}
	if c.state.CompareAndSwap(callOpen, callLeft) {
		return left
	}
	<-c.done // the answer was faster
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

// refuse returns the error of a call that was not even tried.
func refuse(op wire.Op, path string, err error) error {
	return &Error{Op: opName(op), Path: path, Err: err, Outcome: NotSent}
}

// send queues a call, and writes it if it can do so at once.
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

// enqueue appends a call's frame to what is to be written. The caller holds s.mu.
func (s *Session) enqueue(c *call, body wire.Record) {
	start := len(s.out)
	c.xid = s.takeXid()
	s.out = wire.AppendRequest(s.out, c.xid, c.op, body)
	s.queued(c, len(s.out)-start)
}

// queued books a call whose frame of the given size was appended to s.out.
func (s *Session) queued(c *call, size int) {
	c.size = size
	s.calls.push(c)
	s.unsent++
	if c.watch != nil {
		s.watches.begin(c.watch)
	}
}

// takeXid returns the number of the next request: positive, and 1 again after the largest.
func (s *Session) takeXid() int32 {
	s.xid++
	if s.xid <= 0 {
		s.xid = 1
	}
	return s.xid
}

// withdraw takes a call out of the queue if it was not sent yet. The call is then the caller's.
func (s *Session) withdraw(c *call) bool {
	s.mu.Lock()
	end := len(s.out)
	for i := s.calls.len() - 1; i >= s.calls.len()-s.unsent; i-- {
		other := s.calls.at(i)
		start := end - other.size
		if other != c {
			end = start
			continue
		}
		s.out = append(s.out[:start], s.out[end:]...)
		s.calls.remove(i)
		s.unsent--
		if c.watch != nil {
			s.settle(c.watch, false, false)
		}
		s.flush(false)
		return true
	}
	s.mu.Unlock()
	return false
}

// lost returns the error of a call whose connection went before the answer came.
func (c *call) lost(why error) error {
	if c.size > wire.DefaultMaxFrame {
		return fmt.Errorf("%w: the request's %d bytes are more than servers accept by default (jute.maxbuffer): %w", ErrConnectionLost, c.size, why)
	}
	return fmt.Errorf("%w: %w", ErrConnectionLost, why)
}
