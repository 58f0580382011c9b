package cli

import (
	"testing"
	"time"
)

func TestCommandIsKilledWithinTheMargin(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		timeout, grace time.Duration
		mode           string
		term, kill     time.Duration // after the session's certainty ends
	}{
		{10 * time.Second, time.Second, onLostTerm, -750 * time.Millisecond, 250 * time.Millisecond},
		{10 * time.Second, time.Hour, onLostTerm, -875 * time.Millisecond, 375 * time.Millisecond},
		{10 * time.Second, 0, onLostTerm, -250 * time.Millisecond, -250 * time.Millisecond},
		{10 * time.Second, time.Second, onLostKill, -250 * time.Millisecond, -250 * time.Millisecond},
		{4 * time.Second, 2 * time.Second, onLostTerm, -350 * time.Millisecond, 150 * time.Millisecond},
	} {
		l := &runner{grace: duration(test.grace), onLost: choice{value: test.mode}}
		s, certain := l.schedule(test.timeout), time.Now()
		if got := s.term(certain).Sub(certain); got != test.term {
			t.Errorf("%+v: SIGTERM after %v", test, got)
		}
		if got := s.kill(certain).Sub(certain); got != test.kill {
			t.Errorf("%+v: SIGKILL after %v", test, got)
		}
	}
}

func TestDurationsAreGosOrSeconds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"1": time.Second, "0": 0, "0.5": time.Second / 2, ".25": time.Second / 4, "1.5e1": 15 * time.Second,
		"90s": 90 * time.Second, "1m30s": 90 * time.Second, "250ms": time.Second / 4,
	} {
		var d duration
		if err := d.Set(text); err != nil || time.Duration(d) != want {
			t.Errorf("%q: %v, %v, want %v", text, time.Duration(d), err, want)
		}
	}
}
