//go:build unix

package lin_test

import (
	"testing"
	"time"
)

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

// regressing is that of a value whose watch goes by the version, which begins again in a recreated node.
var regressing = bugs{
	{"counter/value.go", "Mzxid: c.stat.Mzxid", "Mzxid: int64(c.stat.Version)"},
	{"counter/watch.go", "now.Mzxid > w.newest", "now.Mzxid != w.newest"},
}

// unremoved is that of a process that leaves its request to another process behind.
var unremoved = bugs{
	{"counter/guest.go", "q.remove(created)\n", "_ = created\n"},
	{"counter/host.go", "b.Delete(reg.requestsDir()+\"/\"+g.name, anyVersion).Abandon()", "_ = g.name"},
}

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

func TestValueIsFoundWhoseWatchGoesBack(t *testing.T) {
	t.Parallel()
	findInCounters(t, regressing, "after the one with")
}

func TestCounterIsFoundWhoseGuestsLeaveRequestsBehind(t *testing.T) {
	t.Parallel()
	findInCounters(t, unremoved, "-requests/")
}

func findInCounters(t *testing.T, b builder, want string) {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds and runs a program")
	}
	found(t, counterTrial{}, want, func(a *arena) { a.exe, a.patience = b.program(t), 6*time.Second })
}
