package certainty_test

// The verdicts on each rule.

import (
	"os"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/test/soak"
)

// base is a timeout of 8 units in an ensemble with the longest possible ticks: the leader's PINGs are a quarter of
// the timeout apart. The margin is a quarter, too.
var base = model{timeout: 8, interval: 2, margin: 2, inFlight: 2}

// with returns m with another rule.
func (m model) with(r rule) model {
	m.rule = r
	return m
}

// Promise: 2
func TestRuleHoldsInEveryInterleaving(t *testing.T) {
	t.Parallel()
	wantHolds(t, base.with(ours(base.interval)))
}

// A client that held nothing for a while is certain again after one write, if no PING is delayed by more than the gap
// allows.
//
// Promise: 2
func TestRuleHoldsForAClientThatWasIdle(t *testing.T) {
	t.Parallel()
	idle := base
	idle.idle, idle.stuck, idle.inFlight = true, 1, 1
	t.Run("PINGs within the gap", func(t *testing.T) {
		t.Parallel()
		wantHolds(t, idle.with(ours(idle.interval+idle.stuck+1)))
	})
	t.Run("PINGs beyond the gap", func(t *testing.T) {
		t.Parallel()
		wantFails(t, idle.with(ours(idle.interval)))
	})
}

// Promise: 2
func TestWeakerRulesFail(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		rule rule
	}{
		{"newest answer of any kind", newestAnswered(anyKind)},
		{"newest answered handshake", newestAnswered(func(k kind) bool { return k == handshake })},
		{"newest answered sync", newestAnswered(func(k kind) bool { return k == sync })},
		{"newest answered write", newestAnswered(isWrite)},
		{"sent a gap before an answered write", sentBeforeWrite(base.interval)},
		{"sent a gap before an answered relay", sentBeforeRelay(base.interval)},
		{"answered a gap before an answered write", answeredBeforeWrite(base.interval)},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			wantFails(t, base.with(test.rule))
		})
	}
}

// The margin does not make up for a late PING, because a client that was silent for a while loses more than that. A
// longer gap does.
//
// Promise: 2
func TestLatePingNeedsLongerGap(t *testing.T) {
	t.Parallel()
	late := base
	late.late, late.inFlight = 1, 1
	t.Run("gap of one interval", func(t *testing.T) {
		t.Parallel()
		wantFails(t, late.with(ours(late.interval)))
	})
	t.Run("gap of one interval and the delay", func(t *testing.T) {
		t.Parallel()
		wantHolds(t, late.with(ours(late.interval+late.late)))
	})
}

// Models with more faults have one request in flight. With TURNSTILE_CERTAINTY set they have two or three, which
// takes minutes and 10 GB, so they run one at a time.
func TestRuleHoldsInLargerModels(t *testing.T) {
	large := os.Getenv("TURNSTILE_CERTAINTY") != ""
	for _, test := range []struct {
		name   string
		run    bool
		change func(*model)
	}{
		{"slow answers", true, func(m *model) { m.slow = true }},
		{"late PINGs", true, func(m *model) { m.late = 1 }},
		{"three in flight", large, func(m *model) { m.inFlight = 3 }},
		{"finer time, one in flight", large || soak.All(), func(m *model) {
			m.timeout, m.interval, m.margin, m.inFlight = 12, 3, 3, 1
		}},
	} {
		if !test.run {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			m := base
			test.change(&m)
			if !large {
				m.inFlight = 1
			}
			wantHolds(t, m.with(ours(m.interval+m.late)))
		})
	}
}

// What a relay proves needs no margin. The margin is for clocks that drift, for clients that act late, and for what a
// write alone proves.
func TestRelayNeedsNoMargin(t *testing.T) {
	t.Parallel()
	m := base
	m.margin, m.inFlight = 0, 1
	wantHolds(t, m.with(answeredBeforeRelay(m.interval)))
}

// A rule that never credits anything would hold, too.
func TestRuleRenewsCertainty(t *testing.T) {
	t.Parallel()
	m := base.with(ours(base.interval))
	for _, test := range []struct {
		name  string
		found func(from, to *state) bool
	}{
		{"by a handshake", func(from, to *state) bool {
			return to.client.credit < from.client.credit && to.client.credit == from.client.base
		}},
		{"by an older answer", func(from, to *state) bool {
			return to.client.credit < min(from.client.credit, from.client.base)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if r := explore(m, test.found); r.trace == nil {
				t.Errorf("got no history of %d states that renews the client's certainty", r.states)
			}
		})
	}
}

func wantHolds(t *testing.T, m model) {
	t.Helper()
	if r := refute(t, m); r.trace != nil {
		t.Errorf("got a history that refutes the rule:\n%s", m.format(r))
	}
}

func wantFails(t *testing.T, m model) result {
	t.Helper()
	r := refute(t, m)
	if r.trace == nil {
		t.Fatal("got no history that refutes the rule, want one")
	}
	t.Logf("a shortest history that refutes the rule:\n%s", m.format(r))
	return r
}
