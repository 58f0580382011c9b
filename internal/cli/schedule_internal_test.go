package cli

import (
	"testing"
	"time"
)

func TestCommandIsKilledBeforeTheDeadline(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		timeout, grace time.Duration
		mode           string
		term, kill     time.Duration // before the deadline
	}{
		{10 * time.Second, time.Second, onLostTerm, 1250 * time.Millisecond, 250 * time.Millisecond},
		{10 * time.Second, time.Hour, onLostTerm, 2750 * time.Millisecond, 250 * time.Millisecond},
		{10 * time.Second, 0, onLostTerm, 250 * time.Millisecond, 250 * time.Millisecond},
		{10 * time.Second, time.Second, onLostKill, 250 * time.Millisecond, 250 * time.Millisecond},
		{4 * time.Second, 2 * time.Second, onLostTerm, 1100 * time.Millisecond, 100 * time.Millisecond},
	} {
		l := &runner{grace: duration(test.grace), onLost: choice{value: test.mode}}
		s, deadline := l.schedule(test.timeout), time.Now()
		if got := deadline.Sub(s.term(deadline)); got != test.term {
			t.Errorf("%+v: SIGTERM %v before the deadline", test, got)
		}
		if got := deadline.Sub(s.kill(deadline)); got != test.kill {
			t.Errorf("%+v: SIGKILL %v before the deadline", test, got)
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
