package certainty_test

// A timeout that changes from handshake to handshake.

import (
	"fmt"
	"slices"
	"testing"
)

// terms say with which timeout a client counts.
type terms uint8

const (
	// smallest is the client's rule: it counts with the timeout that its session was created with, which it asks for at
	// every handshake. Where a server grants less, the session ends.
	smallest terms = iota
	// last is the timeout of the last handshake.
	last
)

// granted is what the client does with a handshake, sent at the given age, that is granted another timeout than the one
// with which it counts. It returns false if the session ends.
func (m *model) granted(c *client, timeout int8, sent age) bool {
	if m.terms == smallest {
		if timeout < c.timeout {
			c.credit = c.timeout
			return false
		}
		return true
	}
	left := m.life(c.timeout) - c.credit
	if timeout < c.timeout { // since the handshake the leader counts with the new one
		left = min(left, m.life(timeout)-sent)
	}
	*c = newClient(timeout, min(timeout, m.life(timeout)-left))
	return true
}

// unequal is an ensemble whose servers grant 4 or 8 units, which 4 is long enough for.
var unequal = model{timeout: 8, interval: 1, margin: 2, inFlight: 1, grants: []int8{4, 8}, rule: ours(1)}

// one is one server, which was started with other limits in between.
var one = model{
	timeout: 8, interval: 1, margin: 2, inFlight: 2, grants: []int8{4, 8}, rule: ours(1), single: true, slow: true,
}

// Counting with the timeout of the last handshake fails in two ways. A new leader counts with that of the creation, and
// a handshake whose answer is lost has shortened the clock all the same.
//
// Promise: 2
func TestTimeoutOfTheLastHandshakeFails(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name            string
		created, grants int8
		by              action
	}{
		{"grow", 4, 8, elect},
		{"shrink", 8, 4, arrive},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m := unequal
			m.terms, m.created, m.grants = last, test.created, []int8{test.grants}
			r := wantFails(t, m)
			if !slices.ContainsFunc(r.trace, func(e event) bool { return e.what == test.by }) {
				t.Errorf("got a history without the cause that was expected:\n%s", m.format(r))
			}
		})
	}
}

// Servers with a longer minimum grant more than was asked for.
//
// Promise: 2
func TestTimeoutOfTheCreationHolds(t *testing.T) {
	t.Parallel()
	m := base
	m.inFlight, m.grants, m.rule = 1, []int8{8, 12}, ours(base.interval)
	wantHolds(t, m)
}

// It is an assumption that no server grants less: a handshake may have arrived whose answer has not, or may arrive when
// the client has long had another answer.
//
// Promise: 2
func TestTimeoutOfTheCreationNeedsServersThatGrantIt(t *testing.T) {
	t.Parallel()
	wantFails(t, unequal)
	t.Run("settled by a later answer", func(t *testing.T) {
		t.Parallel()
		// The client holds nothing while a handshake has no answer.
		m := unequal
		m.wary = true
		wantFails(t, m)
	})
}

// The embedded server needs no such assumption, whichever rule its clients follow.
//
// Promise: 2
func TestServerThatKeepsTheLargerTimeoutNeedsNoAssumption(t *testing.T) {
	t.Parallel()
	for _, rule := range []struct {
		name string
		rule rule
	}{
		{"certificates", ours(1)},
		{"any answer", newestAnswered(anyKind)},
	} {
		for _, terms := range []terms{smallest, last} {
			for _, created := range []int8{4, 8} {
				name := fmt.Sprintf("%s, terms %d, created with %d", rule.name, terms, created)
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					m := one
					m.rule, m.terms, m.created = rule.rule, terms, created
					m.keeps = true
					wantHolds(t, m)
				})
			}
		}
	}
}

func TestServerThatTakesTheNewTimeoutAtOnceFails(t *testing.T) {
	t.Parallel()
	for _, terms := range []terms{smallest, last} {
		m := one
		m.terms = terms
		wantFails(t, m)
	}
}
