package zk

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// asleep is a suspend clock that the test sets.
type asleep struct{ atomic.Int64 }

func (a *asleep) read() time.Duration { return time.Duration(a.Load()) }

// Promise: 2
func TestClockGoesOnWhileTheMachineIsSuspended(t *testing.T) {
	t.Parallel()
	var slept asleep
	slept.Store(int64(time.Hour)) // before the client was opened
	c := newClock(slept.read)
	before := c.now()
	slept.Add(int64(time.Hour))
	c.drift.Add(int64(time.Hour)) // which the wall clock would have moved
	if got := c.now().Sub(before); got < time.Hour || got > time.Hour+time.Minute {
		t.Errorf("%v have passed, want the hour for which the machine was suspended", got)
	}
	at := c.now()
	if got := time.Until(c.system(at)); got > 0 || got < -time.Minute {
		t.Errorf("now is in %v by the system's clock", got)
	}
}

// Setting the wall clock is not a suspension.
func TestClockIgnoresWallClockThatIsSet(t *testing.T) {
	t.Parallel()
	var slept asleep
	c := newClock(slept.read)
	before := c.now()
	c.drift.Add(int64(time.Hour))
	if got := c.now().Sub(before); got < 0 || got > time.Minute {
		t.Errorf("%v have passed", got)
	}
}

func TestSuspendClockCanBeRead(t *testing.T) {
	t.Parallel()
	read := newClock(suspended).suspend
	if read == nil {
		return // the system has no such clock, and sessions go by Go's
	}
	if a, b := read(), read(); a < -time.Second || b-a > time.Minute {
		t.Errorf("suspended for %v, then %v", a, b)
	}
}

// After a suspension an ownership is lost even if nothing calls its Err.
//
// Promise: 2
func TestSuspendOfTheMachineEndsOwnership(t *testing.T) {
	t.Parallel()
	set, err := Config{Servers: "a"}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	var slept asleep
	s := newSession(&Client{cfg: set, clock: newClock(slept.read), log: set.Logger})
	now := s.now()
	s.timeout, s.heard, s.expiry = time.Hour, now.Add(time.Hour), time.AfterFunc(time.Hour, s.checkDeadline)
	s.certainty.until = now.Add(time.Minute)
	told := make(lossTold, 1)
	own := s.NewOwnership(told)
	own.Begin()
	if err := own.Err(); err != nil {
		t.Fatal(err)
	}
	slept.Add(int64(2 * time.Minute))
	s.client.clock.drift.Add(int64(2 * time.Minute))
	if cause := <-told; cause != ErrUncertain { //nolint:errorlint // as it is
		t.Errorf("told %v", cause)
	}
	s.end(ErrClosed)
}

type lossTold chan error

func (lossTold) Nodes() []string                     { return nil }
func (lossTold) Gone(string)                         {}
func (l lossTold) Lost(cause error, _ time.Duration) { l <- cause }

// The machine is suspended while a server is about to resume the session. The reply comes too late, and no hook reports
// a connection.
func TestHooksAreNotToldOfAConnectionForASessionThatIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var slept asleep
		var clock *clock
		var told []string
		conns := make(chan net.Conn, 1)
		dials := 0
		cfg := Config{Servers: "a", Hooks: Hooks{
			State:        func(s State) { told = append(told, s.String()) },
			Connected:    func(string) { told = append(told, "to") },
			Disconnected: func(string, error) { told = append(told, "from") },
		}, Dial: func(context.Context, string, string) (net.Conn, error) {
			if dials++; dials > 2 {
				return nil, errors.New("no route")
			}
			near, far := net.Pipe()
			go func() {
				_, _ = wire.ReadFrame(far, 1<<20, nil)
				if dials == 2 {
					slept.Add(int64(time.Minute))
					clock.drift.Add(int64(time.Minute))
				}
				resp := wire.ConnectResponse{Timeout: 10_000, SessionID: 7, Password: make([]byte, wire.PasswordLen)}
				_, _ = far.Write(wire.EndFrame(resp.Append(wire.BeginFrame(nil)), 0))
				conns <- far
			}()
			return near, nil
		}}
		clock = newClock(slept.read)
		c, err := open(t.Context(), cfg, clock)
		if err != nil {
			t.Fatal(err)
		}
		s, err := c.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = (<-conns).Close()
		<-s.Context().Done()
		_ = c.Close()
		_ = (<-conns).Close()
		const want = "to connected from suspended ended"
		if !strings.HasPrefix(strings.Join(told, " "), want) || dials < 2 {
			t.Errorf("hooks were told %v, want %s", told, want)
		}
	})
}
