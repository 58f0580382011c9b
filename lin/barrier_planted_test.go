//go:build unix

package lin_test

import (
	"testing"
	"time"
)

// Bugs of barriers that the run must find.

// hasty is that of a waiter which takes the end of its time, or of its session, for the barrier's removal.
var hasty = bug{
	"barrier/barrier.go", "event.Type == zk.EventDeleted {\n\t\t\t\treturn none, err",
	"event.Type == zk.EventDeleted {\n\t\t\t\treturn none, nil",
}

// tooFew is that of a double barrier which opens when one party is missing.
var tooFew = bug{"barrier/double.go", "parties: parties}", "parties: parties - 1}"}

// tooEarly is that of a member which leaves last although another one is inside.
var tooEarly = bug{
	"barrier/member.go", "case len(c.names) == 0 && inside:", "case len(c.names) <= 1 && inside:",
}

// staying is that of a party which gives up entering, and leaves its node behind.
var staying = bug{"barrier/double.go", "{ e.removal = line.Remove(e.sess, e.path()) }", "{ _ = e.path() }"}

// tooFewRound is that of rounds which are passed when one party is missing.
var tooFewRound = bug{"barrier/commit.go", "c.arrived >= r.cfg.Parties {", "c.arrived >= r.cfg.Parties-1 {"}

// ungathered is that of rounds which begin before enough have joined.
var ungathered = bug{"barrier/commit.go", "c.rec.Gathered || c.arrived+len(dead) >= r.cfg.Parties", "r.cfg.Parties > 0"}

// arrived is that of rounds in which a party counts as arrived as soon as it has joined.
var arrived = bug{"barrier/join.go", "dir := rec.Behind[0]", "dir := rec.Arrived"}

// miscounting is that of rounds which tell of a loss although no party is lost.
var miscounting = bug{"barrier/commit.go", "Lost: len(dead)}, []string{", "Lost: len(dead) + 1}, []string{"}

func TestBarrierIsFoundWhoseWaitersAreHasty(t *testing.T) {
	t.Parallel()
	findInBarriers(t, hasty, "let through what it should not")
}

func TestBarrierIsFoundThatOpensWithoutOne(t *testing.T) {
	t.Parallel()
	findInBarriers(t, tooFew, "entered before 3 had come")
}

func TestBarrierIsFoundThatAPartyLeavesTooEarly(t *testing.T) {
	t.Parallel()
	findInBarriers(t, tooEarly, "left before all were ready to")
}

func TestBarrierIsFoundThatKeepsAPartyThatGaveUp(t *testing.T) {
	t.Parallel()
	findInBarriers(t, staying, "not all were served")
}

func TestBarrierIsFoundWhoseRoundsPassWithoutOne(t *testing.T) {
	t.Parallel()
	findInBarriers(t, tooFewRound, "by 2 of 3 parties")
}

func TestBarrierIsFoundWhoseRoundsBeginWithoutOne(t *testing.T) {
	t.Parallel()
	findInBarriers(t, ungathered, "round 1 was passed by")
}

func TestBarrierIsFoundWhoseRoundsDoNotWait(t *testing.T) {
	t.Parallel()
	findInBarriers(t, arrived, "was left behind whose session lived")
}

func TestBarrierIsFoundWhoseRoundsTellOfLossesThatWereNone(t *testing.T) {
	t.Parallel()
	findInBarriers(t, miscounting, "parties were lost up to round")
}

func findInBarriers(t *testing.T, b bug, want string) {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds and runs a program")
	}
	found(t, barrierTrial{}, want, func(a *arena) {
		a.exe, a.length, a.patience = b.program(t), 4*time.Second, 6*time.Second
	})
}
