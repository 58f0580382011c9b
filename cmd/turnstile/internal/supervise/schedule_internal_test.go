package supervise

import (
	"testing"
	"time"
)

// Promise: 2
func TestCommandIsKilledWithinTheMargin(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		timeout, grace time.Duration
		mode           OnLost
		term, kill     time.Duration // after the session's certainty ends
	}{
		{10 * time.Second, time.Second, Term, -750 * time.Millisecond, 250 * time.Millisecond},
		{10 * time.Second, time.Second, "", -750 * time.Millisecond, 250 * time.Millisecond},
		{10 * time.Second, time.Hour, Term, -875 * time.Millisecond, 375 * time.Millisecond},
		{10 * time.Second, 0, Term, -250 * time.Millisecond, -250 * time.Millisecond},
		{10 * time.Second, time.Second, Kill, -250 * time.Millisecond, -250 * time.Millisecond},
		{10 * time.Second, time.Second, Ignore, -250 * time.Millisecond, -250 * time.Millisecond},
		{4 * time.Second, 2 * time.Second, Term, -350 * time.Millisecond, 150 * time.Millisecond},
	} {
		s, certain := newSchedule(&Command{Grace: test.grace, OnLost: test.mode}, test.timeout), time.Now()
		if got := s.term(certain).Sub(certain); got != test.term {
			t.Errorf("%+v: SIGTERM after %v", test, got)
		}
		if got := s.kill(certain).Sub(certain); got != test.kill {
			t.Errorf("%+v: SIGKILL after %v", test, got)
		}
	}
}
