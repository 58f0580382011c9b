//go:build unix

package lin_test

import "testing"

// Bugs of counters that the run must find.

// repeated is that of a counter that does a call again whose reply is lost, although it was done.
var repeated = bug{"counter/register.go", "case err == nil && done == 0:", "case err == nil && done >= 0:"}

// takesNothingBack is that of a process that has asked another to make its calls, and makes them itself without being
// sure that the other will not.
var takesNothingBack = bug{"counter/guest.go", "stat, err := q.resolve(ctx)", "stat, err := zk.Stat{}, errLost"}

// overlapping is that of a sequence whose blocks share an id with the next.
var overlapping = bug{"counter/sequence.go", "span{end - n + 1, n}", "span{end - n + 1, n + 1}"}

// versioned is that of a value that tells by the version alone whether it was changed.
var versioned = bug{"counter/value.go", "now.stat.Mzxid != old.Mzxid", "now.stat.Version != old.Version"}

func TestCounterIsFoundThatRepeatsAfterALostReply(t *testing.T) {
	t.Parallel()
	findInCounters(t, repeated, "is not that of a counter")
}

func TestCounterIsFoundWhoseGuestsDoNotTakeTheirRequestsBack(t *testing.T) {
	t.Parallel()
	findInCounters(t, takesNothingBack, "is not that of a counter")
}

func TestSequenceIsFoundThatRepeatsAnId(t *testing.T) {
	t.Parallel()
	findInCounters(t, overlapping, "was given out twice")
}

func TestValueIsFoundThatComparesTheVersionOfARecreatedNode(t *testing.T) {
	t.Parallel()
	findInCounters(t, versioned, "is not that of a value")
}

func findInCounters(t *testing.T, b bug, want string) {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds and runs a program")
	}
	found(t, counterTrial{}, want, func(a *arena) { a.exe = b.program(t) })
}
