//go:build unix

package lin_test

import (
	"testing"
	"time"
)

// Bugs of counters that the run must find.

// repeated is that of a counter that does a call again whose reply is lost, although it was done.
var repeated = bug{"internal/attempt/txn.go", "if done == 0 {", "if done >= 0 {"}

// overlapping is that of a sequence whose blocks share an id with the next.
var overlapping = bug{"counter/sequence.go", "span{end - n + 1, n}", "span{end - n + 1, n + 1}"}

// versioned is that of a value that tells by the version alone whether it was changed.
var versioned = bug{"counter/value.go", "now.stat.Mzxid != old.Mzxid", "now.stat.Version != old.Version"}

// regressing is that of a value whose watch goes by the version, which begins again in a recreated node.
var regressing = bugs{
	{"counter/value.go", "Mzxid: c.stat.Mzxid", "Mzxid: int64(c.stat.Version)"},
	{"counter/watch.go", "older := !w.fresh && ", "older := false && "},
}

func TestCounterIsFoundThatRepeatsAfterALostReply(t *testing.T) {
	t.Parallel()
	findInCounters(t, repeated, "is not that of a counter")
}

func TestSequenceIsFoundThatRepeatsAnId(t *testing.T) {
	t.Parallel()
	findInCounters(t, overlapping, "was given out twice")
}

func TestValueIsFoundThatComparesTheVersionOfARecreatedNode(t *testing.T) {
	t.Parallel()
	findInCounters(t, versioned, "is not that of a value")
}

func TestValueIsFoundWhoseWatchGoesBack(t *testing.T) {
	t.Parallel()
	findInCounters(t, regressing, "after the one with")
}

func findInCounters(t *testing.T, b builder, want string) {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds and runs a program")
	}
	found(t, counterTrial{}, want, func(a *arena) { a.exe, a.patience = b.program(t), 6*time.Second })
}
