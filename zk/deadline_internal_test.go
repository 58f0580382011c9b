package zk

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// Promise: 2
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

// Promise: 2
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

// After a pause of the process, replies may be handled before any timer runs. While the session was uncertain another
// session may have acquired what it owned.
//
// Promise: 2
func TestCertaintyThatRanOutIsNoticedBeforeItIsRenewed(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		any   bool // answer counts
		renew func(s *Session, n *conn)
	}{
		"by a write": {false, func(s *Session, n *conn) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.answered(n, s.now())
			s.travelled(n, &call{op: wire.OpSetData, sent: s.now()})
		}},
		"by an answer, where that counts": {true, func(s *Session, n *conn) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.answered(n, s.now())
		}},
		"by a connection, where that counts": {true, func(s *Session, n *conn) {
			n.timeout, n.started = 10*time.Second, s.now()
			s.attach(n)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set, err := Config{Servers: "a", NoCertificates: row.any}.withDefaults()
			if err != nil {
				t.Fatal(err)
			}
			s := newSession(&Client{cfg: set, clock: newClock(nil), log: set.Logger})
			near, far := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, far) }()
			n := newConn(s, server{}, near, near)
			now := time.Now()
			s.conn, s.state, s.timeout, s.heard, s.verified = n, Connected, 10*time.Second, now, now
			s.expiry = time.AfterFunc(time.Hour, s.checkDeadline)
			s.certainty.connected(now, 10*time.Second, 2500*time.Millisecond, true)
			told := make(lossTold, 1)
			own := s.NewOwnership(told)
			own.Begin()
			s.mu.Lock()
			s.doubt.Stop()
			s.verified, s.certainty.until = now.Add(-time.Minute), now.Add(-time.Minute)
			s.mu.Unlock()
			row.renew(s, n)
			if !s.Certain().After(now) {
				t.Error("the session is not certain again")
			}
			if err := own.Err(); !errors.Is(err, ErrUncertain) {
				t.Errorf("ended with %v, want ErrUncertain", err)
			}
			if cause := <-told; !errors.Is(cause, ErrUncertain) {
				t.Errorf("told %v, want ErrUncertain", cause)
			}
			s.end(ErrClosed)
			n.fail(ErrClosed)
			n.wg.Wait()
			_ = far.Close()
		})
	}
}

// The owner learns of the end once, from the session's context.
//
// Promise: 2
func TestOwnerIsNotToldOfUncertaintyByASessionThatIsLost(t *testing.T) {
	t.Parallel()
	set, err := Config{Servers: "a"}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s := newSession(&Client{cfg: set, clock: newClock(nil), log: set.Logger})
	now := time.Now()
	s.timeout, s.heard = 10*time.Second, now
	s.expiry = time.AfterFunc(time.Hour, s.checkDeadline)
	s.certainty.connected(now, 10*time.Second, 2500*time.Millisecond, true)
	told := make(lossTold, 1)
	own := s.NewOwnership(told)
	own.Begin()
	s.mu.Lock()
	s.doubt.Stop()
	s.heard, s.certainty.until = now.Add(-time.Minute), now.Add(-time.Minute)
	s.checkCertainty(s.now())
	listed := own.listed
	s.mu.Unlock()
	if err := own.Err(); !listed || !errors.Is(err, ErrLost) {
		t.Errorf("ended with %v, by uncertainty before: %v; want ErrLost alone", err, !listed)
	}
}

// Promise: 2
func TestAnswersMoveTheDeadlineForwardsAloneAndNotAfterIt(t *testing.T) {
	t.Parallel()
	set, err := Config{Servers: "a", NoCertificates: true}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		heard, sent     time.Duration // before now
		readOnly        bool
		deadline, certn time.Duration // which of the two counts, before now
	}{
		"a newer request":                {5 * time.Hour, time.Hour, false, time.Hour, time.Hour},
		"an older request":               {time.Hour, 5 * time.Hour, false, time.Hour, time.Hour},
		"of a read-only server":          {5 * time.Hour, time.Hour, true, time.Hour, 5 * time.Hour},
		"an answer after the deadline":   {10 * time.Hour, time.Hour, false, 10 * time.Hour, time.Hour},
		"an answer just at the deadline": {450 * time.Minute, time.Hour, false, 450 * time.Minute, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Now()
			s := newSession(&Client{cfg: set, clock: newClock(nil), log: set.Logger})
			s.timeout, s.heard, s.verified = 10*time.Hour, now.Add(-row.heard), now.Add(-row.heard)
			s.mu.Lock()
			s.answered(&conn{readOnly: row.readOnly}, now.Add(-row.sent))
			heard, verified := s.heard, s.verified
			s.mu.Unlock()
			if got := now.Sub(heard); got != row.deadline {
				t.Errorf("the deadline counts from %v ago, want %v", got, row.deadline)
			}
			if got := now.Sub(verified); got != row.certn {
				t.Errorf("certainty counts from %v ago, want %v", got, row.certn)
			}
		})
	}
}

// With several pings pending, a reply belongs to the oldest.
func TestAnswersOfPingsMoveTheDeadlineOneByOne(t *testing.T) {
	t.Parallel()
	set, err := Config{Servers: "a"}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	s := newSession(&Client{cfg: set, clock: newClock(nil), log: set.Logger})
	s.timeout, s.heard = 10*time.Hour, now.Add(-5*time.Hour)
	n := &conn{sess: s}
	for ago := 3 * time.Hour; ago > 0; ago -= time.Hour {
		n.pings = append(n.pings, now.Add(-ago))
	}
	for ago := 3 * time.Hour; ago > 0; ago -= time.Hour {
		if err := n.pong(); err != nil {
			t.Fatal(err)
		}
		if got := now.Sub(s.heard); got != ago {
			t.Errorf("the deadline counts from %v ago, want %v", got, ago)
		}
	}
	if err := n.pong(); !errors.Is(err, ErrProtocol) {
		t.Errorf("one more: got %v, want ErrProtocol", err)
	}
}
