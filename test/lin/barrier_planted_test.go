//go:build unix

package lin_test

import "time"

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
var staying = bug{"barrier/entrant.go", "{ e.removal = attempt.Remove(e.sess, e.path()) }", "{ _ = e.path() }"}

// tooFewRound is that of rounds which are passed when one party is missing.
var tooFewRound = bug{"barrier/commit.go", "c.arrived >= r.cfg.Parties {", "c.arrived >= r.cfg.Parties-1 {"}

// ungathered is that of rounds which begin before enough have joined.
var ungathered = bug{"barrier/commit.go", "c.rec.Gathered || c.arrived+len(dead) >= r.cfg.Parties", "r.cfg.Parties > 0"}

// arrived is that of rounds in which a party counts as arrived as soon as it has joined.
var arrived = bug{"barrier/join.go", "dir := rec.Behind[0]", "dir := rec.Arrived"}

// miscounting is that of rounds which tell of a loss although no party is lost.
var miscounting = bug{"barrier/commit.go", "Lost: len(dead)}, []string{", "Lost: len(dead) + 1}, []string{"}

var brokenBarriers = []plant{
	brokenBarrier("hasty-waiters", hasty, "let through what it should not"),
	brokenBarrier("opens-without-one", tooFew, "entered before 3 had come"),
	brokenBarrier("leaves-too-early", tooEarly, "left before all were ready to"),
	brokenBarrier("stays-after-giving-up", staying, "not all were served"),
	brokenBarrier("rounds-pass-without-one", tooFewRound, "by 2 of 3 parties"),
	brokenBarrier("rounds-begin-without-one", ungathered, "round 1 was passed by"),
	brokenBarrier("rounds-do-not-wait", arrived, "was left behind whose session lived"),
	brokenBarrier("losses-that-were-none", miscounting, "parties were lost up to round"),
}

func brokenBarrier(name string, b bug, want string) plant {
	return plant{
		name: name, trial: barrierTrial{}, bug: b, want: want, length: 4 * time.Second, patience: 6 * time.Second,
	}
}
