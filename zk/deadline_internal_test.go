package zk

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

func TestNoRequestLeavesAfterTheDeadlineEvenIfNoTimerRan(t *testing.T) {
	t.Parallel() // what a process finds that was stopped for a while: everything as it was, but the time
	set, err := Config{Servers: "a"}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s := newSession(&Client{cfg: set, clock: newClock(nil), log: set.Logger})
	near, far := net.Pipe()
	wrote := make(chan []byte, 1)
	go func() {
		b, _ := io.ReadAll(far)
		wrote <- b
	}()
	n := newConn(s, server{}, near, near)
	n.direct = true
	s.conn, s.state, s.timeout, s.heard = n, Connected, 10*time.Second, time.Now().Add(-time.Minute)
	s.expiry = time.AfterFunc(time.Hour, s.checkDeadline)
	_, err = s.Create(t.Context(), "/a", nil, Ephemeral)
	if !errors.Is(err, ErrLost) || OutcomeOf(err) != NotSent {
		t.Errorf("got %v (%v), want ErrLost, not sent", err, OutcomeOf(err))
	}
	n.fail(ErrLost)
	if b := <-wrote; len(b) > 0 {
		t.Errorf("wrote %d bytes after the deadline", len(b))
	}
	if cause := context.Cause(s.Context()); !errors.Is(cause, ErrLost) {
		t.Errorf("cause %v, want ErrLost", cause)
	}
}

func TestContextOfASessionLooksAtTheClockItself(t *testing.T) {
	t.Parallel()
	set, err := Config{Servers: "a"}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s := newSession(&Client{cfg: set, clock: newClock(nil), log: set.Logger})
	s.timeout, s.heard = 10*time.Second, time.Now()
	s.expiry = time.AfterFunc(time.Hour, s.checkDeadline)
	child, cancel := context.WithCancel(s.Context())
	defer cancel()
	if err := s.Context().Err(); err != nil {
		t.Fatalf("a live session's context: %v", err)
	}
	s.mu.Lock()
	s.heard = time.Now().Add(-time.Minute)
	s.mu.Unlock()
	if s.Context().Err() == nil || !errors.Is(context.Cause(child), ErrLost) {
		t.Errorf("after the deadline: %v, child's cause %v; want ErrLost", s.Context().Err(), context.Cause(child))
	}
}
